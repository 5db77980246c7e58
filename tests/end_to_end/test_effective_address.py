#!/usr/bin/env python3
"""The effective-address profiler on programs whose addresses are known on paper:
tests/programs/freestanding/addresses.c, tests/programs/hosted/sharing.c and runs.c."""

import re
import unittest

import support
from support import PROGRAMS, profile, read_events

COLUMNS = ["Refs", "StrC", "StrF", "StrI", "Lines", "Pages", "Misal", "LineX", "PageX"]
# The return of each function reads its address: once, without a stride, one line, one page.
RETURN = (1, 0, 0, 1, 1, 1, 0, 0, 0)

EXPECTED = {
    "constant": (1000, 999, 0, 1, 1, 1, 0, 0, 0),
    "strided": (4096, 4095, 0, 1, 1024, 16, 0, 0, 0),
    "rows": (100, 90, 9, 1, 20, 10, 0, 0, 0),
    "short_rows": (6000, 4500, 1499, 1, 938, 15, 0, 0, 0),
    "hot": (1000, 800, 199, 1, 1, 1, 0, 0, 0),
    "crossing": (64, 63, 0, 1, 65, 2, 64, 64, 1),
    "misaligned": (100, 99, 0, 1, 13, 1, 100, 0, 0),
}


SHARING = ("first_together", "second_together", "both_common", "first_apart", "second_apart")


class EffectiveAddress(unittest.TestCase):
    def run_under(self, program, *options, plugin="effective_address"):
        folder = support.temporary_folder(self)
        self.report = folder / "report"
        result = profile([PROGRAMS / program], f"--address-report={self.report}", *options,
                         plugin=plugin, out=folder / "events")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.stderr = result.stderr
        self.events = read_events(folder / "events")
        return {name: dict(zip(self.events.events, counts))
                for name, counts in self.events.functions.items()}

    def test_patterns(self):
        found = self.run_under("addresses")
        for function, expected in EXPECTED.items():
            with self.subTest(function):
                counts = [found[function][column] for column in COLUMNS]
                self.assertEqual(counts, [a + b for a, b in zip(expected, RETURN)])

    def test_irregular(self):
        """Everything but the strides, which are sampled, is exact."""
        found = self.run_under("addresses")["irregular"]
        self.assertEqual([found[column] for column in ("Refs", "Lines", "Pages", "Misal", "LineX")],
                         [8192 + 1, 1024 + 1, 16 + 1, 0, 0])
        self.assertGreater(found["StrI"], 0.95 * found["Refs"])
        self.assertEqual(found["Refs"], found["StrC"] + found["StrF"] + found["StrI"])

    def test_report(self):
        self.run_under("addresses")
        report = self.report.read_text()
        self.assertIn("1,000 reads of 8 bytes\n  strides: constant 0\n"
                      "  touched: 1 lines in 1 pages\n  most frequent:", report)
        self.assertIn("4,096 writes of 8 bytes\n  strides: constant 16\n"
                      "  touched: 1,024 lines in 16 pages\n", report)
        self.assertIn("100 reads of 8 bytes\n  strides: few: 8 90.0%, 4024 9.0%\n", report)
        self.assertRegex(report, r"8,192 reads of 8 bytes\n  strides: irregular\n")
        self.assertRegex(report, r"strides: few: 0 80.0%, -8 10.0%, 8 9.9%\n"
                                 r"  touched: 1 lines in 1 pages\n"
                                 r"  most frequent: 0x\w+ 90.0%   0x\w+ 10.0%\n")
        self.assertIn("misaligned: 64, across lines: 64, across pages: 1\n", report)

    def test_runs_through_threads_and_handlers(self):
        """A thread begins without a predecessor, a handler goes on with its thread's: 999 + 99 + 1
        references, 3 x 999 in threads and 50 at the end have a stride, all but one that of 8."""
        self.run_under("runs")
        report = self.report.read_text()
        self.assertIn("4,150 reads of 8 bytes\n  strides: constant 8\n"
                      "  touched: 144 lines in ", report)
        # Those that fault are two of them; the second walk begins 16 KB further back.
        self.assertIn("130 reads of 1 bytes\n  strides: constant 256\n"
                      "  touched: 65 lines in 5 pages\n", report)
        found = self.run_under("runs", "--dump-instr=yes")
        self.assertEqual(found["walk"]["Refs"], 4150 + 6)
        self.assertEqual(found["read_on"]["Refs"], 130)
        self.assertEqual([found["read_on"][column] for column in ("StrC", "StrF", "StrI")],
                         [128, 1, 1])

    def test_what_is_left_out(self):
        """Beside a profiler that has all references recorded, every number is the same."""
        for program, functions in (("addresses", EXPECTED), ("sharing", SHARING),
                                   ("runs", ("walk", "read_on", "in_thread", "in_handler"))):
            alone = self.run_under(program)
            beside = self.run_under(program, plugin="effective_address,used_bytes")
            for function in functions:
                with self.subTest(program=program, function=function):
                    self.assertEqual(alone[function],
                                     {column: beside[function][column]
                                      for column in alone[function]})

    def test_frequent_addresses(self):
        """hot() has one address 900 times, and the next one 100 times."""
        self.run_under("addresses", "--dump-instr=yes")
        lists = [remark for remark in self.events.remarks if " value " in remark]
        self.assertTrue(any(re.search(r" 1000 (0x\w+):900 (0x\w+):100$", line) for line in lists),
                        lists)
        self.run_under("addresses", "--dump-instr=yes", "--hottest=1")
        lists = [remark for remark in self.events.remarks if " value " in remark]
        self.assertTrue(any(re.search(r" 1000 error=100 (0x\w+):900$", line) for line in lists), lists)
        self.assertTrue(all(line.count(":") <= 2 for line in lists), lists)
        refused = profile(["true"], "--hottest=129", plugin="effective_address")
        self.assertEqual((refused.returncode, refused.stderr),
                         (125, "assay: effective_address: --hottest=129: at most 128\n"))

    def test_sharing(self):
        found = self.run_under("sharing")
        each = 2 * 100_000  # a read and a write
        for function, falsely, truly in (("first_together", each, 0), ("second_together", each, 0),
                                         ("both_common", 0, 2 * each), ("first_apart", 0, 0),
                                         ("second_apart", 0, 0), ("write_once", 0, 0),
                                         ("read_later", 0, 0)):
            with self.subTest(function):
                self.assertEqual((found[function]["FShr"], found[function]["TShr"]),
                                 (falsely, truly))
        self.assertEqual(found["main"]["FShr"], 0)

    def test_both_sides_of_false_sharing(self):
        self.run_under("sharing")
        for text in (self.stderr, self.report.read_text()):
            self.assertNotIn("read_later", text[:text.find("Instructions")])
            line = text[text.index("at most 399,999 transfers, 400,000 references"):]
            for number, thread in ((0, 1), (8, 2)):
                self.assertRegex(line, rf"bytes {number}-{number + 7} written 100,000 times by "
                                       rf"thread {thread + 1} at \S*sharing.c:\d+ "
                                       rf"\({['first', 'second'][thread - 1]}_together\)")

    def test_what_parts_them(self):
        """The members of both sides, and a declaration that is followed in the second program."""
        self.run_under("ping_pong")
        self.assertRegex(self.stderr, r"bytes 8-15 written 10,000 times by thread 2 at .*: counters.first\n")
        self.assertRegex(self.stderr, r"bytes 16-23 written 10,000 times by thread 3 at .*: counters.second\n")
        self.assertRegex(self.stderr, r"to part them: alignas\(64\) for counters.first and counters.second "
                                      r"\(counters: 32 -> 192 bytes\)\n")
        self.assertRegex(self.stderr, r"to part them: alignas\(64\) for slot \(16 -> 64 bytes\)\n")
        self.assertRegex(self.stderr, r"lines shared falsely: +2 *\n")
        self.run_under("ping_pong_parted")
        self.assertRegex(self.stderr, r"lines shared falsely: +0 *\n")


if __name__ == "__main__":
    unittest.main()
