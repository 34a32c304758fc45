# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Plans and the engine: the same bits however they are run."""

from __future__ import annotations

import dataclasses
import pathlib
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import bootstrap_blocks
from perception.errors import InputError
from protocols.statistics import checkpoint, engine, plan, sampling
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Axis, Resampling
from tests.protocols.statistics import small_study

CASES = Resampling("case", "subtype", "shared")
SCENES = Resampling("scene", "source", "shared")


def run(planned: plan.Plan, **options: object) -> np.ndarray:
  settings = {
    "seed": 3,
    "replicates": 700,
    "dtype": "float32",
    "batch": engine.DEFAULT_BATCH,
    "store": None,
    "advance": None,
    **options,
  }
  return engine.run(planned, **settings)


def finish(planned: plan.Plan, counts: list[np.ndarray]) -> np.ndarray:
  with jax.enable_x64(True):
    tables = jax.tree.map(jnp.asarray, planned.tables)
    found = jax.jit(planned.finish)(
      tuple(jnp.asarray(c)[:, None] for c in counts), tables
    )
    return np.asarray(found)[..., 0][:, :, planned.distinct]


class PlanTest(parameterized.TestCase):
  @parameterized.parameters(CASES, SCENES)
  def test_given_draws_equal_plain_loops(self, rule: Resampling) -> None:
    table = small_study.case_table()
    planned = plan.build(table, rule, keep_protocols=True)
    stream = planned.streams[0]
    rng = np.random.default_rng(0)
    drawn = rng.integers(stream.start, stream.start + stream.size)
    counts = np.bincount(drawn, minlength=stream.num_units).astype(float)
    repeated = [
      c for unit in drawn for c in stream.cases[stream.unit_of_case == unit]
    ]
    np.testing.assert_allclose(
      finish(planned, [counts])[:, 0],
      small_study.oracle(table, np.array(repeated)),
      rtol=0,
      atol=1e-13,
    )

  def test_point_is_the_plain_mean(self) -> None:
    table = small_study.case_table()
    found = plan.point(plan.build(table, CASES, keep_protocols=False))
    everything = np.arange(len(table.cases))
    np.testing.assert_allclose(
      found[:, 0], small_study.oracle(table, everything), atol=1e-13
    )

  def test_strata_are_contiguous_and_complete(self) -> None:
    planned = plan.build(small_study.case_table(), SCENES, keep_protocols=False)
    stream = planned.streams[0]
    self.assertEqual(stream.num_units, 10)
    np.testing.assert_array_equal(stream.stratum, np.repeat([0, 1], 5))
    np.testing.assert_array_equal(stream.start, np.repeat([0, 5], 5))
    self.assertLen(set(stream.units), 10)

  def test_independent_draws_use_scored_cases(self) -> None:
    rule = dataclasses.replace(CASES, draws="independent")
    planned = plan.build(small_study.case_table(), rule, keep_protocols=False)
    self.assertEqual([s.num_units for s in planned.streams], [24, 19])
    drawn = run(planned)
    rho = np.corrcoef(drawn[:, 0, 0, 0], drawn[:, 1, 0, 0])[0, 1]
    self.assertLess(abs(rho), 0.15)  # 4 standard errors of 700

  def test_missing_protocol(self) -> None:
    table = small_study.case_table()
    stream = plan.build(table, SCENES, keep_protocols=True).streams[0]
    chain = [
      set(table.groups["protocol"][stream.cases[stream.unit_of_case == u]])
      for u in range(stream.num_units)
    ]
    counts = np.array([float("chain" not in held) for held in chain])
    self.assertGreater(counts.sum(), 0)
    dropped = finish(plan.build(table, SCENES, keep_protocols=True), [counts])
    self.assertTrue(np.isnan(dropped[:, 0]).all())
    rule = dataclasses.replace(SCENES, missing_protocol="renormalise")
    mean = finish(plan.build(table, rule, keep_protocols=True), [counts])
    np.testing.assert_allclose(
      mean[:, 0], np.nanmean(mean[:, 1:], axis=1), atol=1e-13
    )

  def test_scene_in_two_strata_is_refused(self) -> None:
    rule = dataclasses.replace(SCENES, strata="subtype")
    with self.assertRaisesRegex(InputError, "within one stratum"):
      plan.build(small_study.case_table(), rule, keep_protocols=False)

  def test_strata_of_one_unit_never_vary(self) -> None:
    table = small_study.case_table()
    groups = {**table.groups, "subtype": np.array(table.cases)}
    single = dataclasses.replace(table, groups=groups)
    planned = plan.build(single, CASES, keep_protocols=False)
    drawn = run(planned, dtype="float64")
    np.testing.assert_array_equal(drawn, np.broadcast_to(drawn[0], drawn.shape))
    np.testing.assert_allclose(drawn[0], plan.point(planned), atol=1e-14)

  @parameterized.parameters(("median", 0.5), ("quantile", 0.9))
  def test_quantiles_equal_numpy(self, kind: str, q: float) -> None:
    values = np.random.default_rng(1).random((1, 2, 9))
    table = _plain(values, Axis("x", ("x",), statistic=kind, quantile=q))
    planned = plan.build(table, Resampling(), keep_protocols=False)
    counts = np.array([2.0, 0, 1, 1, 0, 3, 1, 0, 1])
    expected = [
      np.quantile(np.repeat(row, counts.astype(int)), q) for row in values[0]
    ]
    np.testing.assert_allclose(finish(planned, [counts])[0, 0], expected)

  def test_ratio_of_sums(self) -> None:
    values = np.array([[[1.0, 2.0, 6.0]]])
    axis = Axis("x", ("x",), statistic="ratio", denominator="n")
    table = dataclasses.replace(
      _plain(values, axis), weights=np.array([[[2.0, 4.0, 2.0]]])
    )
    planned = plan.build(table, Resampling(), keep_protocols=False)
    found = finish(planned, [np.array([1.0, 0.0, 2.0])])
    self.assertAlmostEqual(found[0, 0, 0], 13 / 6)


class EngineTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls) -> None:
    super().setUpClass()
    cls.planned = plan.build(
      small_study.case_table(), SCENES, keep_protocols=False
    )
    cls.base = run(cls.planned, replicates=1400)

  @parameterized.parameters(1, 512, 4096)
  def test_batch_changes_no_bit(self, batch: int) -> None:
    found = run(self.planned, replicates=1400, batch=batch)
    np.testing.assert_array_equal(found, self.base)

  def test_more_units_than_a_pair_holds(self) -> None:
    with mock.patch.object(bootstrap_blocks, "MAX_UNITS", 4):
      found = run(self.planned, replicates=1400)
    np.testing.assert_array_equal(found, self.base)

  def test_blocks_of_accelerators_hold_the_same_draws(self) -> None:
    with mock.patch.object(engine, "_on_cpu", return_value=False):
      self.assertGreater(engine.block_size(), 1400)
      found = run(self.planned, replicates=1400)
    np.testing.assert_allclose(found, self.base, atol=1e-6)

  def test_fewer_replicates_are_the_first_ones(self) -> None:
    np.testing.assert_array_equal(
      run(self.planned, replicates=5), self.base[:5]
    )

  def test_progress_counts_every_replicate(self) -> None:
    steps: list[int] = []
    run(self.planned, replicates=700, batch=512, advance=steps.append)
    self.assertEqual(sum(steps), 700)
    self.assertGreater(len(steps), 1)

  def test_resume_gives_the_same_bits(self) -> None:
    folder = pathlib.Path(self.create_tempdir().full_path) / "c"
    identity = checkpoint.fingerprint(self.planned, seed=3, dtype="float32")

    def store() -> checkpoint.ReplicateStore:
      return checkpoint.ReplicateStore(folder, identity=identity, every=512)

    def stop(_: int) -> None:
      raise KeyboardInterrupt

    with self.assertRaises(KeyboardInterrupt):
      run(self.planned, replicates=1400, batch=512, store=store(), advance=stop)
    drawn: list[int] = []
    found = run(
      self.planned,
      replicates=1400,
      batch=512,
      store=store(),
      advance=drawn.append,
    )
    # The first entry is what the interrupted run left behind.
    self.assertGreaterEqual(drawn[0], 512)
    self.assertLess(drawn[0], 1400)
    self.assertEqual(sum(drawn), 1400)
    np.testing.assert_array_equal(found, self.base)
    again = run(self.planned, replicates=1400, batch=512, store=store())
    np.testing.assert_array_equal(again, self.base)
    other = checkpoint.ReplicateStore(folder, identity="other", every=512)
    with self.assertRaisesRegex(InputError, "another table, study, seed"):
      run(self.planned, replicates=1400, store=other)

  def test_equal_systems_are_equal_to_the_bit(self) -> None:
    table = small_study.case_table()
    twice = dataclasses.replace(
      table,
      systems=(*table.systems, "copy of a"),
      values=table.values[:, [0, 1, 2, 0]],
      weights=table.weights[:, [0, 1, 2, 0]],
    )
    planned = plan.build(twice, SCENES, keep_protocols=False)
    self.assertEqual(planned.num_distinct, 3)
    found = run(planned)
    np.testing.assert_array_equal(found[..., 0], found[..., 3])

  def test_refused_when_a_protocol_is_missing(self) -> None:
    rule = Resampling("scene", "none", "shared", "refuse")
    table = small_study.case_table().keep_cases(
      np.array([c % 3 == 0 or c < 3 for c in range(24)])
    )
    study = small_study.study(resampling=rule)
    with self.assertRaisesRegex(InputError, "without a case of some protocol"):
      sampling.sample(table, study, sampling.Runtime(), label="x")
    dropping = small_study.study(
      resampling=dataclasses.replace(rule, missing_protocol="drop")
    )
    found = sampling.sample(table, dropping, sampling.Runtime(), label="x")
    self.assertGreater(found.left_out, 0)
    self.assertLen(found.replicates, 600 - found.left_out)


def _plain(values: np.ndarray, axis: Axis) -> CaseTable:
  """A table of one axis without groups."""
  number = values.shape[-1]
  names = tuple(f"c{i}" for i in range(number))
  empty = np.full(number, "")
  return CaseTable(
    source_name="x",
    axes=(axis,),
    systems=tuple(f"s{i}" for i in range(values.shape[1])),
    cases=names,
    groups={
      "scene": np.array(names),
      "source": empty,
      "subtype": empty,
      "protocol": empty,
    },
    values=values,
    weights=np.ones(values.shape),
  )


if __name__ == "__main__":
  absltest.main()
