# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Records: what makes a score comparable, where a PDI comes from."""

import dataclasses
from unittest import mock

from absl.testing import absltest, parameterized

from perception import observation
from protocols.pdi import cases, constants, observe, score
from tests.protocols.pdi import small_world

_STACK = {"masks": "sam2", "tracks": "cotracker3", "geometry": "megasam"}


def _record(constants_, *, backends=_STACK, weights="ab12"):
  content = small_world.arrays(seed=0)
  made = {
    "masks": small_world.masks(content),
    "tracks": small_world.tracks(content),
    "geometry": small_world.geometry(content),
  }
  for role, name in backends.items():
    source = observation.Provenance("0" * 64, name, "1", weights_sha256=weights)
    made[role] = dataclasses.replace(made[role], provenance=source)
  found = observe.Observed(
    frames=None, fps=24.0, source_sha256="0", absent={}, **made
  )
  case = cases.PdiCase("m", "c", observations={"geometry": "x"})
  with mock.patch.object(score, "observe", return_value=found):
    return score.score_case(
      case, config=observe.PerceptionConfig(), constants=constants_
    )


class EntryTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ("published", constants.RELEASED, _STACK, "ab12", True),
    ("paper_variant", constants.PAPER, _STACK, "ab12", False),
    ("random_weights", constants.RELEASED, _STACK, "random", False),
    ("no_weights", constants.RELEASED, _STACK, "", False),
    (
      "other_geometry",
      constants.RELEASED,
      {**_STACK, "geometry": "depth_anything3"},
      "ab12",
      False,
    ),
  )
  def test_comparable_only_for_the_published_stack(
    self, variant, backends, weights, comparable
  ):
    record = _record(variant, backends=backends, weights=weights)
    self.assertEqual(record.comparable_to_published, comparable)

  def test_shares_add_up_to_the_pdi_and_are_sorted(self):
    record = _record(constants.PAPER)
    shares = [peak["share"] for peak in record.details["peaks"]]
    self.assertAlmostEqual(sum(shares), record.values["pdi"], places=12)
    self.assertEqual(shares, sorted(shares, reverse=True))
    for peak in record.details["peaks"]:
      self.assertBetween(peak["worst_frame"], 0, small_world.FRAMES - 1)


if __name__ == "__main__":
  absltest.main()
