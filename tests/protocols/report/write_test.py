# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The whole report: files, hostile names, failures shown, pictures."""

import json
import pathlib
import re
import tempfile

import markupsafe
from absl.testing import absltest

from perception.errors import InputError
from protocols.report import drawing, render, write
from tests.protocols.report import examples


class WriteTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls) -> None:
    super().setUpClass()
    root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
    cls.records = examples.hostile_run(root / "run", cases=12)
    rows = [
      {
        "system": name,
        "rank": k + 1,
        "point": 0.1 * k,
        "low": 0.1 * k - 0.05,
        "high": 0.1 * k + 0.05,
        "p_flip": None if k == 3 else 0.2,
        "tie_group": 1 + k // 2,
      }
      for k, name in enumerate(examples.HOSTILE)
    ]
    examples.write_study(root / "study", "ranking", rows, target="pdi")
    cls.output = root / "report"
    write.write(write.ReportConfig((root / "run", root / "study"), cls.output))
    cls.page = (cls.output / "index.html").read_text(encoding="utf-8")

  def _payload(self) -> dict:
    found = re.search(r'data-run="r0">(.*?)</script>', self.page, re.S)
    return json.loads(found[1])

  def test_one_page_stands_alone(self):
    without_policy = re.sub(r"<meta http-equiv[^>]*>", "", self.page)
    namespaces = re.sub(r'xmlns(:xlink)?="[^"]*"', "", without_policy)
    self.assertNotRegex(namespaces, r"https?://[^ ]*\.(js|css|woff)")
    self.assertNotIn("<link", self.page)
    self.assertNotRegex(self.page, r"<script[^>]*\bsrc=")

  def test_hostile_names_are_text_everywhere(self):
    for path in self.output.rglob("*.html"):
      text = path.read_text(encoding="utf-8")
      self.assertNotIn("<script>document", text)
      self.assertNotIn("<img src=x", text)
    self.assertIn(str(markupsafe.escape(examples.HOSTILE[3])), self.page)

  def test_every_case_has_a_page_in_the_order_of_the_table(self):
    rows = self._payload()["rows"]
    self.assertLen(rows, len(self.records))
    folder = self.output / "cases" / "r0"
    self.assertLen(list(folder.glob("*.html")), len(rows))
    text = (folder / "0.html").read_text(encoding="utf-8")
    self.assertIn(str(markupsafe.escape(rows[0][1])), text)
    self.assertIn("1 of 48, worst first", text)

  def test_failures_are_shown_with_reasons_and_never_as_zero(self):
    content = self._payload()
    failed = [r for r in content["rows"] if r[2] == 3]
    self.assertLen(failed, 4)
    for row in failed:
      self.assertEqual(row[5], [None] * len(content["columns"]))
      self.assertEqual(content["reasons"][row[3]], examples.FAILED_TEXT)
    text = (self.output / "cases/r0/0.html").read_text(encoding="utf-8")
    self.assertIn("No score: failed", text)
    self.assertIn(str(markupsafe.escape(examples.FAILED_TEXT)), text)
    self.assertIn('<dd class="none">none</dd>', text)
    self.assertIn("Partial totals", self.page)
    self.assertIn("Not comparable with published tables", self.page)

  def test_ties_and_study_are_shown(self):
    self.assertIn('<span class="tie" title="p_flip', self.page)
    self.assertIn("ranking: study", self.page)

  def test_figures_and_tables_are_files(self):
    for name in ("pdi_components", "pdi_categories"):
      for ending in ("svg", "png"):
        path = self.output / "figures/r0" / f"{name}.{ending}"
        self.assertGreater(path.stat().st_size, 1000)
    for ending in ("tex", "md"):
      self.assertTrue((self.output / f"tables/r0_pdi.{ending}").exists())
    targets = re.findall(r'href="((?:figures|tables)/[^"]*)"', self.page)
    self.assertNotEmpty(targets)
    for target in targets:
      self.assertTrue((self.output / target).exists(), target)

  def test_ids_are_unique(self):
    ids = re.findall(r'\bid="([^"]*)"', self.page)
    self.assertLen(set(ids), len(ids))

  def test_the_same_input_gives_the_same_bytes(self):
    again = self.output.with_name("again")
    root = self.output.parent
    write.write(write.ReportConfig((root / "run", root / "study"), again))
    self.assertEqual(
      (again / "index.html").read_bytes(),
      (self.output / "index.html").read_bytes(),
    )

  def test_the_input_folder_is_never_written(self):
    root = self.output.parent
    with self.assertRaisesRegex(InputError, "a folder of its own"):
      write.write(write.ReportConfig((root / "run",), root / "run"))


class RenderTest(absltest.TestCase):
  def test_json_cannot_close_its_element(self):
    text = str(render.json_data({"a": "</script><!-- ü"}))
    self.assertNotIn("<", text)
    self.assertEqual(json.loads(text), {"a": "</script><!-- ü"})

  def test_text_that_is_no_unicode_is_replaced(self):
    path = pathlib.Path(self.create_tempdir().full_path) / "page.html"
    render.write(path, "a\ud800b")
    self.assertEqual(path.read_text(encoding="utf-8"), "a?b")

  def test_letters(self):
    found = [render.letter(n) for n in (1, 2, 26, 27, 53)]
    self.assertEqual(found, ["A", "B", "Z", "AA", "BA"])


class DrawingTest(absltest.TestCase):
  def test_colours_follow_the_theme_and_files_keep_them(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    made, axes = drawing.figure()
    axes.plot([0, 1], color=drawing.colour(0))
    axes.set_title(drawing.label("$x_1$ <b>\x00"), parse_math=False)
    made_picture = drawing.finish(
      made, folder, name="x", title="X", description="About x."
    )
    self.assertIn("var(--s0)", made_picture.svg)
    self.assertIn("?x_1? &lt;b&gt;?", made_picture.svg)
    self.assertNotIn("var(", (folder / "x.svg").read_text())

  def test_missing_cells_say_none(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    made, axes = drawing.figure()
    drawing.heat_map(
      axes,
      [[1.0, None]],
      rows=["r"],
      columns=["a", "b"],
      low=0.0,
      high=1.0,
      digits=1,
    )
    picture = drawing.finish(
      made, folder, name="h", title="H", description="About h."
    )
    self.assertIn(">none<", picture.svg)
    self.assertIn(">1.0<", picture.svg)


if __name__ == "__main__":
  absltest.main()
