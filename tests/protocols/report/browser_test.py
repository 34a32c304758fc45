# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: Chromium, network off, opened from disk.

Needs the packages `chromium` (Debian) and `playwright` (pip); each test is
skipped with a message where one is absent.
"""

import pathlib
import tempfile
import unittest
import unittest.mock

from absl.testing import absltest, parameterized

from protocols.report import write
from tests.protocols.report import examples, worlds

_CHROMIUM = pathlib.Path("/usr/bin/chromium")
_ARGUMENTS = (
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
)

_CONTRAST = (pathlib.Path(__file__).parent / "contrast.js").read_text()


class Browser(parameterized.TestCase):
  """A browser with the network off."""

  output: pathlib.Path

  @classmethod
  def setUpClass(cls) -> None:
    super().setUpClass()
    if not _CHROMIUM.exists():
      raise unittest.SkipTest("no /usr/bin/chromium (apt install chromium)")
    try:
      from playwright import sync_api
    except ImportError as error:
      raise unittest.SkipTest(
        "no playwright (pip install playwright)"
      ) from error
    cls.root = pathlib.Path(
      cls.enterClassContext(tempfile.TemporaryDirectory())
    )
    cls.output = cls.root / "report"
    cls.play = cls.enterClassContext(sync_api.sync_playwright())
    cls.browser = cls.play.chromium.launch(
      executable_path=str(_CHROMIUM), args=list(_ARGUMENTS)
    )
    cls.addClassCleanup(cls.browser.close)

  def open(self, name: str = "index.html", *, width: int = 1600, **options):
    """A page with the network off; `self.errors` collects what goes wrong."""
    context = self.browser.new_context(
      viewport={"width": width, "height": 1000}, offline=True, **options
    )
    self.addCleanup(context.close)
    page = context.new_page()
    self.errors: list[str] = []
    page.on("console", lambda message: self.errors.append(message.text))
    page.on("pageerror", lambda error: self.errors.append(str(error)))
    page.on(
      "request",
      lambda request: (
        self.errors.append(request.url)
        if not request.url.startswith(("file:", "data:"))
        else None
      ),
    )
    page.goto((self.output / name).as_uri())
    return page

  def assert_readable(self, page, width: int) -> None:
    """Contrast, width of the page, and nothing on the console."""
    found = page.evaluate(_CONTRAST)
    self.assertGreater(found["checked"], 20)
    self.assertEmpty(found["bad"])
    wide = page.evaluate("document.documentElement.scrollWidth")
    self.assertLessEqual(wide, width)
    self.assertEmpty(self.errors)


class PageTest(Browser):
  @classmethod
  def setUpClass(cls) -> None:
    super().setUpClass()
    cls.records = examples.hostile_run(cls.root / "run")
    write.write(write.ReportConfig((cls.root / "run",), cls.output))

  def column(self, page, number: int) -> list[str]:
    rows = page.locator("tr.row")
    return [
      rows.nth(i).locator("td").nth(number).inner_text()
      for i in range(min(8, rows.count()))
    ]

  @parameterized.product(
    name=["index.html", "cases/r0/0.html", "cases/r0/30.html"],
    width=[400, 1600],
    scheme=["light", "dark"],
  )
  def test_opens_without_errors_fits_and_is_readable(self, name, width, scheme):
    page = self.open(name, width=width, color_scheme=scheme)
    self.assert_readable(page, width)

  def test_hostile_names_are_displayed_as_text_and_run_nothing(self):
    page = self.open()
    self.assertEqual(page.title(), "worldgauge report")
    shown = page.locator("table.board").inner_text()
    for name in (examples.HOSTILE[0], examples.HOSTILE[3]):
      self.assertIn(name, shown)
    page.fill("[data-role=search]", "<img")
    self.assertEqual(page.locator("tr.row").count(), len(examples.HOSTILE))
    self.assertEqual(page.locator("img").count(), 0)
    page.locator("tr.row a").first.click()
    page.wait_for_load_state()
    self.assertIn("<img src=x onerror", page.locator("h1").inner_text())
    self.assertNotEqual(page.title(), "hacked")
    self.assertEmpty(self.errors)

  def test_cases_are_worst_first_and_sort_both_ways(self):
    page = self.open()
    self.assertEqual(set(self.column(page, 2)[:4]), {"failed"})
    self.assertIn("found 0 </td>", self.column(page, 7)[0])
    head = page.locator("[data-role=cases] th", has_text="PDI")
    head.locator("button").click()
    self.assertEqual(head.get_attribute("aria-sort"), "ascending")
    low = [float(text) for text in self.column(page, 3)]
    self.assertEqual(low, sorted(low))
    head.locator("button").click()
    self.assertEqual(head.get_attribute("aria-sort"), "descending")
    high = [float(text) for text in self.column(page, 3)]
    self.assertEqual(high, sorted(high, reverse=True))
    self.assertGreater(high[0], low[0])

  def test_missing_values_are_never_blank_or_zero(self):
    page = self.open()
    page.select_option("[data-role=status]", label="degenerate")
    self.assertEqual(set(self.column(page, 3)), {"none"})
    self.assertEqual(set(self.column(page, 7)), {"the object does not move"})

  def test_filters_narrow_and_clear(self):
    page = self.open()
    count = page.locator("[data-role=count]")
    self.assertEqual(count.inner_text(), "160 of 160 cases")
    page.select_option("[data-role=system]", index=1)
    self.assertEqual(count.inner_text(), "40 of 160 cases")
    page.locator("[data-role=groups] select").select_option(
      label=examples.CATEGORIES[1]
    )
    self.assertEqual(count.inner_text(), "20 of 160 cases")
    page.fill("[data-role=search]", "/011")
    self.assertEqual(count.inner_text(), "1 of 160 cases")
    page.fill("[data-role=search]", "no such case")
    self.assertEqual(page.locator("tr.row").count(), 0)
    page.click("[data-role=reset]")
    self.assertEqual(count.inner_text(), "160 of 160 cases")

  def test_leaderboard_sorts_by_keyboard(self):
    page = self.open()
    head = page.locator("table.board th", has_text="PDI").first
    head.locator("button").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    self.assertEqual(head.get_attribute("aria-sort"), "descending")
    first = page.locator("table.board tbody th").first.inner_text()
    self.assertIn("O'Brien", first)

  def test_every_control_is_reached_by_the_tab_key(self):
    page = self.open()
    wanted = page.evaluate(
      "[...document.querySelectorAll('a[href], button, select, input,"
      ' summary, [tabindex="0"]\')].filter((e) => e.getClientRects().length'
      " && !e.closest('tr.row')).length"
    )
    seen = set()
    for _ in range(wanted + 60):
      page.keyboard.press("Tab")
      seen.add(
        page.evaluate(
          "(() => { const e = document.activeElement;"
          " return [...document.querySelectorAll('*')].indexOf(e); })()"
        )
      )
    self.assertGreaterEqual(len(seen), wanted)

  def test_focus_survives_scrolling_of_the_table(self):
    page = self.open()
    page.locator("tr.row a").first.focus()
    for _ in range(30):
      page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.closest('tr.row') !== null")
    self.assertTrue(focused)

  def test_headers_and_figures_have_text_alternatives(self):
    page = self.open()
    nameless = page.evaluate(
      "[...document.querySelectorAll('[role=img]')].filter((e) =>"
      " !e.getAttribute('aria-label')).length"
    )
    self.assertEqual(nameless, 0)
    self.assertGreater(page.locator("[role=img]").count(), 3)
    self.assertEqual(page.locator("th:not([scope])").count(), 0)
    self.assertEqual(page.locator("table:not(:has(caption))").count(), 0)

  def test_comparison_counts_pairs_and_names_drivers(self):
    page = self.open()
    text = page.locator("[data-role=comparison] p").first.inner_text()
    # Of 40 shared cases three have no score; the first system is best in all.
    self.assertIn("is better on 37 and worse on 0 of 37 shared cases", text)
    page.select_option("#r0-compare [data-role=b]", index=0)
    self.assertIn(
      "Choose two different systems",
      page.locator("[data-role=comparison]").inner_text(),
    )

  def test_print_shows_rows_without_controls(self):
    page = self.open()
    page.emulate_media(media="print")
    self.assertFalse(page.locator(".filters").first.is_visible())
    self.assertFalse(page.locator("nav.top").is_visible())
    self.assertTrue(page.locator("tr.row").first.is_visible())
    # Room for the rows that are not drawn would be empty paper.
    self.assertFalse(page.locator("tr.space").last.is_visible())

  def test_of_five_thousand_cases_a_screenful_is_drawn(self):
    root = self.root
    examples.hostile_run(root / "large", cases=1250)
    output = root / "large_report"
    # Only the table of the page is looked at.
    with (
      unittest.mock.patch.object(write.case_pages, "write"),
      unittest.mock.patch.object(write, "_figures", return_value=[]),
    ):
      write.write(write.ReportConfig((root / "large",), output))
    page = self.open(output / "index.html")
    page.wait_for_selector("tr.row")
    self.assertLess(page.locator("tr.row").count(), 60)
    view = page.locator(".viewport")
    view.evaluate("(node) => { node.scrollTop = node.scrollHeight; }")
    page.wait_for_selector("tr.row[aria-rowindex='5001']")
    self.assertLess(page.locator("tr.row").count(), 60)
    self.assertEmpty(self.errors)


class PictureTest(Browser):
  """Pages with pictures, of all three protocols."""

  @classmethod
  def setUpClass(cls) -> None:
    super().setUpClass()
    records = []
    for number, system in enumerate((examples.HOSTILE[0], "b")):
      folder = cls.root / "clips" / str(number)
      examples.write_clip(folder)
      source = str(folder / "clip.mp4")
      records.append(
        examples.pdi_record(
          system, "<b>1</b>", pdi=0.2 + 0.1 * number, source=source
        )
      )
    examples.write_pdi_run(cls.root / "pdi", records)
    video = worlds.write_orbia_data(cls.root / "data")
    orbia = worlds.write_run(cls.root / "orbia", worlds.orbia_record(video))
    (cls.root / "ego").mkdir()
    ego, _ = worlds.write_egogeneval(cls.root / "ego")
    inputs = (cls.root / "pdi", orbia, ego)
    write.write(write.ReportConfig(inputs, cls.output))

  @parameterized.product(
    name=["index.html", *(f"cases/r{k}/0.html" for k in range(3))],
    width=[400, 1600],
    scheme=["light", "dark"],
  )
  def test_opens_without_errors_fits_and_is_readable(self, name, width, scheme):
    page = self.open(name, width=width, color_scheme=scheme)
    self.assert_readable(page, width)

  @parameterized.parameters((0, 7), (1, 12), (2, 18))
  def test_pictures_are_lazy_load_and_have_texts(self, run, at_least):
    page = self.open(f"cases/r{run}/0.html")
    pictures = page.locator("img")
    self.assertGreaterEqual(pictures.count(), at_least)
    found = page.evaluate(
      "Promise.all([...document.images].map(async (i) => {"
      " const lazy = i.loading === 'lazy'; i.loading = 'eager';"
      " await i.decode(); return lazy && i.alt !== '' && i.naturalWidth > 0;"
      "}))"
    )
    self.assertTrue(all(found))
    self.assertGreater(page.locator("ul.legend li").count(), 4)
    self.assertEmpty(self.errors)

  def test_frames_of_two_systems_stand_side_by_side(self):
    page = self.open()
    block = page.locator("#r0-compare .versus")
    names = block.locator(".name").all_inner_texts()
    self.assertEqual(names, [examples.HOSTILE[0], "b"])
    shown = block.locator("img")
    self.assertEqual(shown.count(), 4)  # two peaks of each system
    self.assertIn(", of b", shown.nth(1).get_attribute("alt"))
    sources = [shown.nth(k).get_attribute("src") for k in range(4)]
    # Rows are worst first: the better system is row 1.
    self.assertStartsWith(sources[0], "cases/r0/1-")
    self.assertStartsWith(sources[1], "cases/r0/0-")
    for source in sources:
      self.assertTrue((self.output / source).exists())
    # One system alone has nobody to stand beside.
    text = page.locator("#r1-compare").inner_text()
    self.assertIn("a single system", text)

  def test_print_keeps_pictures_within_the_paper(self):
    for name in ("index.html", "cases/r2/0.html"):
      page = self.open(name, width=1050)
      page.emulate_media(media="print")
      wide = page.evaluate("document.documentElement.scrollWidth")
      self.assertLessEqual(wide, 1050)


if __name__ == "__main__":
  absltest.main()
