#!/usr/bin/env python3
"""The page of assay sweep in a headless Chromium: lines and their places, what one can choose, and that
it fits narrow windows."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

import browser
import support
from support import ASSAY, PROGRAMS, run
from test_report import CONTRAST, MISPLACED, UNNAMED

HOSTILE = "</script><img src=x onerror=document.body.dataset.hacked=1>"


def make_page(folder, name, *options, program=(PROGRAMS / "work",)) -> str:
    result = run([ASSAY, "sweep", "-q", "--plugin=cache", "--I1=32768,8,64", *options, "-o", name, "--",
                  *program], cwd=folder)
    if result.returncode not in (0, 1):
        raise RuntimeError(result.stderr)
    return (folder / name / "sweep.html").as_uri()


@unittest.skipUnless(browser.CHROMIUM, "Chromium is not installed")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = support.temporary_folder_of_class(cls)
        cls.page = make_page(folder, "sizes", "--D1=4K,4,64..64K,4,64", "--LL=1M,16,64;8M,16,64",
                             "--rep=once,iterations")
        cls.names = make_page(folder, "names", "--rep=iterations,once", program=["echo", HOSTILE])
        cls.single = make_page(folder, "single")
        cls.failed = make_page(folder, "failed", "--rep=iterations,once", program=["false"])
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.console.clear()

    def tearDown(self):
        self.assertEqual(self.browser.console, [])  # no error, nothing blocked, nothing loaded

    def texts(self, selector) -> list[str]:
        return self.browser.evaluate(
            f"[...document.querySelectorAll({selector!r})].map(each => each.textContent.trim())")

    def numbers(self, selector, attribute) -> list[float]:
        return self.browser.evaluate(f"[...document.querySelectorAll({selector!r})].map("
                                     f"each => Number(each.getAttribute({attribute!r})))")

    def choose(self, select, text):
        self.browser.evaluate(
            f"(select => {{ select.value = {text!r}; select.dispatchEvent(new Event('change')); }})"
            f"(document.querySelectorAll('select')[{select}])")
        self.browser.settle()

    def test_fits_and_is_legible(self):
        for page in (self.page, self.names, self.single, self.failed):
            for width, dark in ((1400, False), (1400, True), (390, False), (390, True)):
                self.browser.open(page, width, 844, dark)
                self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
                self.assertEqual(self.browser.evaluate(UNNAMED), [])
                self.assertEqual(self.browser.evaluate(MISPLACED), [], (page, width))
                self.assertGreaterEqual(self.browser.evaluate(CONTRAST), 4.5)
        self.assertIsNone(self.browser.evaluate("document.body.dataset.hacked || null"))

    def test_lines_over_sizes(self):
        self.browser.open(self.page, 1400)
        self.choose(0, "D1mr")
        self.assertEqual(len(self.texts("polyline")), 4)
        self.assertEqual(len(self.texts("circle")), 20)
        first = self.numbers("circle", "cx")[:5]
        steps = [b - a for a, b in zip(first, first[1:])]
        for step in steps:  # sizes double: a logarithmic axis has them at equal distances
            self.assertAlmostEqual(step, steps[0], places=3)
        heights = self.numbers("circle", "cy")[:5]
        self.assertGreater(heights[-1], heights[0])  # fewer misses lie lower
        for label in ("4K", "8K", "16K", "32K", "64K", "--D1"):
            self.assertIn(label, self.texts("svg.plot text"))
        self.assertIn("LL=1M,16,64  rep=once", self.texts(".legend span"))

    def test_event_and_axis_can_be_chosen(self):
        self.browser.open(self.page, 1400)
        self.choose(0, "D1 miss rate")
        self.assertTrue(any(text.endswith("%") for text in self.texts("svg.plot text")))
        self.assertIn("D1 miss rate =", self.texts(".status")[0])
        self.choose(1, "--rep")
        self.assertEqual((len(self.texts("polyline")), len(self.texts("circle"))), (10, 20))
        self.assertIn("iterations", self.texts("svg.plot text"))
        self.browser.evaluate("document.querySelector('circle').dispatchEvent(new Event('focus'))")
        self.assertRegex(self.texts(".status")[0], r"^D1 miss rate [\d.]+ %: --D1=4K,4,64 --LL=1M,16,64 --rep=")
        self.choose(0, "Dr")
        before = self.numbers("circle", "cy")[0]
        self.browser.evaluate("document.querySelector('input[type=checkbox]').click()")
        self.browser.settle()
        self.assertNotEqual(self.numbers("circle", "cy")[0], before)

    def test_table_and_what_is_missing(self):
        self.browser.open(self.page, 1400)
        self.assertEqual(len(self.texts("tr")), 21)
        self.browser.open(self.single, 1400)
        self.assertIn("nothing to plot", self.texts(".panel p")[0])
        self.browser.open(self.failed, 1400)
        self.assertEqual(self.texts(".warning"), ["2 of 2 points are not finished."])
        self.assertEqual(self.texts("td"), ["1", "iterations", "2", "once"])


if __name__ == "__main__":
    unittest.main()
