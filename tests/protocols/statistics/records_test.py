# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Studies on records that the protocols themselves wrote."""

from __future__ import annotations

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.common import outputs, runner, store
from protocols.common.records import Record
from protocols.egogeneval import constants as ego_constants
from protocols.egogeneval import evidence_files
from protocols.egogeneval import run as ego_run
from protocols.orbia import (
  aggregate,
  baselines,
  builtin,
  dataset,
  dataset_writer,
  normalisation,
  tiers,
)
from protocols.orbia import constants as orbia_constants
from protocols.orbia import run as orbia_run
from protocols.pdi import run as pdi_run
from protocols.statistics import (
  adapters,
  cases,
  config,
  plan,
  sampling,
  scope,
  studies,
)
from protocols.statistics.sampling import Runtime
from tests.protocols.egogeneval import sample_rows
from tests.protocols.orbia import tiny_world
from tests.protocols.pdi import small_world

_TIERS = ("T1", "T2", "T3", "T4", "T5", "T6", "overall")


def _study(name: str, **changes: object) -> config.StudyConfig:
  return dataclasses.replace(config.load(name), replicates=256, **changes)


def _run(name: str, folder: pathlib.Path, **changes: object) -> dict:
  return studies.run(
    _study(name, **changes),
    adapters.from_records([folder]),
    Runtime(),
    ratings_path=None,
  )


class RecordsTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.output = self.root / "out"
    self.options = runner.RunOptions(output=self.output, allow_partial=True)

  def test_pdi(self) -> None:
    small_world.write_run(self.root / "in", systems=("a", "b"), cases=3)
    pdi_run.evaluate(
      pdi_run.PdiConfig(
        variant="paper",
        inputs=pdi_run.PdiInputs(observations=self.root / "in"),
        perception=pdi_run.PerceptionConfig(),
      ),
      self.options,
    )
    result = _run("pdi_intervals", self.output)
    rows = self._pdi_means()
    for row in result["rows"]:
      if row["score"] == "pdi_mean":
        self.assertAlmostEqual(row["point"], rows[row["system"]], places=12)
    self.assertLen(result["rows"], 4)
    self.assertLen(_run("pdi_ranking", self.output)["rows"], 2)

  def _pdi_means(self) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for record in store.read_scored(self.output).values():
      value = record.values["pdi"]
      assert value is not None
      found.setdefault(record.system, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}

  def test_egogeneval(self) -> None:
    ids = [
      f"{sample_rows.case_id(protocol, scene)}__step{step}"
      for scene in ("s1", "s2")
      for protocol in ego_constants.PROTOCOLS
      for step in range(1, ego_constants.STEPS_OF_PROTOCOL[protocol] + 1)
    ]
    evidence = self.root / "evidence"
    for system, estimate in (("good", 0.38), ("poor", 0.1)):
      evidence_files.write_system(
        evidence / system,
        [sample_rows.cmg_row(i, estimate=estimate) for i in ids],
        [sample_rows.ssp_row(i, targets=2) for i in ids],
        [],
      )
    ego_run.evaluate(
      ego_run.EgoGenEvalConfig(variant="paper", evidence=evidence),
      self.options,
    )
    scores = outputs.read_json(self.output / "scores.json")["systems"]
    result = _run("egogeneval_ranking", self.output)
    self.assertEqual([r["system"] for r in result["rows"]], ["good", "poor"])
    for row in result["rows"]:
      expected = scores[row["system"]]["overall"]
      self.assertAlmostEqual(row["point"], expected, places=12)
    # The same from the evidence, step by step.
    steps = adapters.from_evidence([evidence], variant="paper")
    found = studies.run(
      _study("egogeneval_ranking"), steps, Runtime(), ratings_path=None
    )
    self.assertEqual(found["rows"], result["rows"])
    self.assertEqual(
      set(steps.groups["protocol"]), set(ego_constants.PROTOCOLS)
    )

  def test_orbia(self) -> None:
    worlds = {f"tiny{seed}": tiny_world.Wall(seed=seed) for seed in (0, 1)}
    dataset_writer.write_dataset(
      self.root,
      [tiny_world.case_content(w, case_id=n) for n, w in worlds.items()],
    )
    for case in dataset.read_dataset(self.root):
      for name in ("perfect", "swap"):
        world = worlds[case.case_id]
        builtin.write_video(
          self.root, case, world, baselines.BASELINES[name], name
        )
    orbia_run.evaluate(
      orbia_run.OrbiaConfig(
        variant="paper",
        inputs=orbia_run.OrbiaInputs(
          dataset=self.root, videos=self.root / builtin.VIDEOS
        ),
        tiers=("T1", "T4"),
      ),
      self.options,
    )
    result = _run("orbia_intervals", self.output)
    table = {
      row["model"]: row
      for row in outputs.read_json(self.output / "scores.json")["rows"]
    }
    self.assertEqual({row["score"] for row in result["rows"]}, {"T1", "T4"})
    for row in result["rows"]:
      self.assertAlmostEqual(
        row["point"], table[row["system"]][row["score"]], places=9
      )
    (note,) = result["notes"]
    self.assertIn("quality_hps", note)
    self.assertTrue(note.endswith("overall"), note)
    # What was meant to order the models is not replaced by something else.
    with self.assertRaisesRegex(InputError, "found overall, which"):
      _run("orbia_ranking", self.output)
    pair = _run("orbia_tiers", self.output)["rows"]
    self.assertEqual([(r["first"], r["second"]) for r in pair], [("T1", "T4")])


def _orbia_records(variant: str) -> list[Record]:
  """Complete and incomplete cases of three models; raw values are invented."""
  rng = np.random.default_rng(5)
  records = []
  for system in ("a", "b", "c"):
    for number in range(9):
      same, different = ((1, 0), (0, 1), (1, 1))[number % 3]
      values: dict[str, float | None] = {
        "same_pairs": float(same),
        "different_pairs": float(different),
        "temporal": rng.uniform(20, 90),
      }
      values |= {
        f"{kind}_{name}": rng.uniform(10, 100)
        for kind, names in (
          ("control", normalisation.CONTROL),
          ("quality", normalisation.QUALITY),
        )
        for name in names
      }
      for name in normalisation.LEAVES:
        scale = 20.0 if name.endswith("psnr") else 0.5
        values[name] = scale * rng.uniform(0.2, 1.0)
      for name in rng.choice(sorted(values), 4, replace=False):
        # Leaves go missing case by case, not the counts of pairs.
        values[name] = None if not name.endswith("pairs") else values[name]
      record = Record(
        protocol="orbia",
        variant=variant,
        system=system,
        case_id=f"case{number}",
        status="ok",
        values=values,
        groups={
          "group": "world",
          "control_profile": "pose_and_action",
          "horizon": "long" if number < 4 else "short",
        },
      )
      own = tiers.control_tier(
        [aggregate.case_scores(record)],
        {},
        profile="pose_and_action",
        c=orbia_constants.PAPER,
      )
      records.append(dataclasses.replace(record, values={**values, "T1": own}))
  return records


class OrbiaTreeTest(parameterized.TestCase):
  @parameterized.parameters(
    ("paper", "orbia_intervals"), ("released", "orbia_intervals_released")
  )
  def test_replicates_repeat_the_order_of_the_protocol(
    self, variant: str, name: str
  ) -> None:
    records = _orbia_records(variant)
    folder = pathlib.Path(self.create_tempdir().full_path)
    with store.RecordLog(folder / "records.jsonl") as log:
      for record in records:
        log.append(record)
    study = _study(name)
    steps = adapters.from_records([folder])
    study, notes = scope.scored_part(steps, study)
    self.assertEqual(notes, [])
    table = cases.from_steps(steps, study)
    planned = plan.build(table, study.resampling, keep_protocols=False)
    point = plan.point(planned)
    names = [axis.name for axis in table.axes]
    # The whole sample, and a resample with repetitions.
    drawn = np.array([2, 2, 0, 1, 1, 0, 0, 2, 1])
    of_unit = plan.unit_counts(planned.streams[0], drawn[None])[0]
    with jax.enable_x64(True):
      found = np.asarray(
        planned.finish((jnp.asarray(of_unit)[:, None],), planned.tables)
      )[..., 0]
    for scores, counts in ((point, np.ones(9, int)), (found, drawn)):
      for s, system in enumerate(table.systems):
        mine = [r for r in records if r.system == system]
        expected = aggregate.scores_of(
          [
            dataclasses.replace(r, case_id=f"{r.case_id}/{copy}")
            for r, count in zip(mine, counts, strict=True)
            for copy in range(count)
          ],
          c=orbia_constants.constants(variant),
        )
        for target in _TIERS:
          value = sampling.panel(names, target, study)(scores)[s]
          wanted = (
            expected.overall if target == "overall" else expected.tiers[target]
          )
          self.assertIsNotNone(wanted)
          self.assertAlmostEqual(float(value), wanted, places=9)

  def test_correlations_of_one_horizon(self) -> None:
    horizon = "long"
    records = _orbia_records("paper")
    folder = pathlib.Path(self.create_tempdir().full_path)
    with store.RecordLog(folder / "records.jsonl") as log:
      for record in records:
        log.append(record)
    expected = {
      (row["first"], row["second"]): row["model_level"]
      for row in aggregate.tier_correlations(records, c=orbia_constants.PAPER)
      if row["horizon"] == horizon
    }
    rows = _run(f"orbia_tiers_{horizon}", folder)["rows"]
    self.assertLen(rows, 15)
    for row in rows:
      pair = tuple(
        "T6" if name.startswith("temporal") else name
        for name in (row["first"], row["second"])
      )
      self.assertAlmostEqual(row["spearman"], expected[pair])


if __name__ == "__main__":
  absltest.main()
