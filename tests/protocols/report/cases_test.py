# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Case table: order, content; case view; charts by hand."""

import pathlib

import numpy as np
from absl.testing import absltest

from protocols.report import case_view, cases, charts, sources
from protocols.report.sources import Study
from tests.protocols.report import examples


class CaseTableTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    folder = pathlib.Path(self.create_tempdir().full_path)
    records = [
      examples.pdi_record("a", "good", pdi=0.1),
      examples.pdi_record("a", "bad", pdi=0.9, category="partial_occlusion"),
      examples.pdi_record("b", "gone", pdi=None, status="missing", reason="r"),
      examples.pdi_record("b", "broken", pdi=None, status="failed", reason="s"),
      examples.pdi_record(
        "b", "flat", pdi=None, status="degenerate", reason="t"
      ),
    ]
    examples.write_pdi_run(folder, records)
    self.run_ = sources.load([folder])[0][0]

  def test_failures_come_first_then_the_worst_scores(self):
    table = cases.build(self.run_)
    order = [entry.case_id for entry in table.entries]
    self.assertEqual(order, ["broken", "gone", "flat", "bad", "good"])
    self.assertEqual(table.groups, ("category",))

  def test_payload_stores_texts_once_and_missing_values_as_none(self):
    table = cases.build(self.run_)
    content = cases.payload(
      table,
      pages="p",
      studies=(),
      ranking=("b", "a"),
      shots={3: [("f.jpg", "c")]},
    )
    self.assertEqual(content["systems"], ["a", "b"])
    self.assertEqual(content["order"], [1, 0])
    first, last = content["rows"][0], content["rows"][-1]
    self.assertEqual(content["reasons"][first[3]], "s")
    self.assertEqual(content["statuses"][first[2]], "failed")
    self.assertEqual(first[5], [None] * 4)
    self.assertEqual(last[3], -1)
    self.assertEqual(last[5], [0.1] * 4)
    self.assertEqual(content["shots"], {"3": [("f.jpg", "c")]})

  def test_paired_studies_give_their_intervals(self):
    row = {
      "contrast": "a - b",
      "score": "pdi",
      "point": 0.1,
      "low": 0.0,
      "high": 0.2,
    }
    study = Study(pathlib.Path("s"), "paired", {"rows": [row]})
    content = cases.payload(
      cases.build(self.run_), pages="p", studies=(study,), ranking=(), shots={}
    )
    self.assertEqual(content["paired"]["a - b"][0]["high"], 0.2)


class CaseViewTest(absltest.TestCase):
  def test_series_end_at_their_last_frame_and_peaks_are_marked(self):
    record = examples.pdi_record("a", "1", pdi=0.2)
    view = case_view.build(record, cases.COLUMNS["pdi"])
    scale, traj, _ = view.charts
    self.assertEqual(scale.x_ticks[-1].text, str(examples.FRAMES - 1))
    # The trajectory's last value belongs to the last frame but one.
    self.assertEqual(traj.x_ticks[-1].text, str(examples.FRAMES - 2))
    self.assertStartsWith(scale.marks[0].text, "frame 11: 0.1")
    self.assertStartsWith(traj.marks[0].text, "frame 10: 0.2")
    self.assertEqual(view.events[0], (11, "peak of the scale-depth residual"))

  def test_a_missing_value_is_called_none(self):
    record = examples.pdi_record(
      "a", "1", pdi=None, status="failed", reason="x"
    )
    view = case_view.build(record, cases.COLUMNS["pdi"])
    self.assertEqual({tile.text for tile in view.tiles}, {"none"})
    self.assertEmpty(view.charts)

  def test_objects_are_boxes_with_links_between_matches(self):
    row = {
      "id": "c__step2",
      "objects": [
        {
          "gt_idx": 0,
          "status": "match",
          "gt_box": [0, 0, 10, 10],
          "pred_box": [10, 10, 20, 20],
        },
        {
          "gt_idx": 1,
          "status": "missing",
          "gt_box": [0, 20, 10, 40],
          "pred_box": None,
        },
        {"status": "hallucination", "gt_box": None, "pred_box": [5, 5, 6, 6]},
      ],
    }
    record = examples.pdi_record("a", "1", pdi=0.2)
    (plan,) = case_view.build(record, (), ssp=[row]).boxes
    self.assertEqual(plan.title, "Objects, step 2")
    self.assertStartsWith(plan.description, "1 matched, 1 missing, 1 extra")
    kinds = [box.kind for box in plan.boxes]
    self.assertEqual(kinds, ["target", "match", "missing", "hallucination"])
    # 360 units for 20 pixels: the centre (5, 5) lies at 5 * 18 + 8.
    self.assertEqual(plan.links, ((98.0, 98.0, 278.0, 278.0),))


class ChartsTest(absltest.TestCase):
  def test_hand_worked_path_with_a_gap(self):
    chart = charts.line_chart(
      [0.0, None, 2.0, "nan", 1.0],
      title="x",
      first_frame=3,
      peak=5,
      tone=0,
    )
    # x: 46 + 662 k / 4; y: 128 for 0, 12 for the top.
    self.assertEqual(chart.path, "M46 128M377 12M708 70")
    self.assertEqual((chart.marks[0].x, chart.marks[0].y), (377.0, 12.0))
    self.assertIn("2 frames have no value", chart.description)

  def test_nothing_finite_is_no_chart(self):
    self.assertIsNone(
      charts.line_chart(
        [None, "inf"], title="x", first_frame=0, peak=None, tone=0
      )
    )

  def test_a_single_value_and_constant_zero_are_drawn(self):
    chart = charts.line_chart([0.0], title="x", first_frame=0, peak=0, tone=0)
    self.assertEqual(chart.path, "M46 128")

  def test_plans_show_forward_up_and_down_low(self):
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 2, 3] = [0, 1, 2]  # forward
    poses[:, 1, 3] = [0, 0, 1]  # downward
    above, side = charts.plans({"camera": poses}, unit="m")
    start, end = above.tracks[0].start, above.tracks[0].end
    self.assertEqual(start.x, end.x)
    self.assertLess(end.y, start.y)  # forward is up on the page
    start, end = side.tracks[0].start, side.tracks[0].end
    self.assertGreater(end.x, start.x)  # forward is to the right
    self.assertGreater(end.y, start.y)  # down is down
    self.assertEqual(side.scale_text, "1 m")
    # Two metres fill 300 - 2 * 26 units.
    self.assertEqual(side.scale_width, 124.0)

  def test_no_finite_pose_is_no_plan(self):
    poses = np.full((2, 4, 4), np.nan)
    self.assertEmpty(charts.plans({"camera": poses}, unit="m"))


if __name__ == "__main__":
  absltest.main()
