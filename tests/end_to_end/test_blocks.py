#!/usr/bin/env python3
"""Records of the executions of basic blocks: beside other captures, in runs and in replays."""

import unittest

from support import (ASSAY, PLUGINS, PROGRAMS, profile, read_events, run, temporary_folder)

BLOCKS = PLUGINS / "blocks.so"
# What a profiler can capture besides, which decides how the program is translated.
WITH = ["", "references", "filter", "writes", "misses", "footprints", "runs",
        "filter,fetches", "misses,fetches", "references,fetches,values", "references,code",
        "filter,code,branches", "calls,fetches", "predictions", "predictions,filter,fetches",
        "intervals", "intervals,filter,fetches", "misses,calls,branches,systemcalls"]


class Blocks(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        self.out = self.folder / "out"

    def run_program(self, program, captures, *options, status=0):
        result = profile([PROGRAMS / program], f"--with={captures}", *options, plugin=BLOCKS,
                         out=self.out)
        self.assertEqual(result.returncode, status, result.stderr)
        return self.check(read_events(self.out))

    def check(self, events):
        """The records tell of each instruction how often it was executed, as the counts do."""
        self.assertEqual(events.events, ["Ir", "Counted", "Strays", "Backwards"])
        wrong = {name: row for name, row in events.functions.items()
                 if row[0] != row[1] or row[2:] != [0, 0]}
        self.assertEqual(wrong, {})
        self.assertGreater(events.summary[0], 0)
        return events

    def test_every_instruction(self):
        for program in ("recursion", "indirect", "repeat", "scattered", "atomics", "straddle"):
            for captures in WITH:
                with self.subTest(program=program, captures=captures):
                    self.run_program(program, captures)

    def test_whatever_happens(self):
        """Faults, signals, code that changes, threads; with everything anew all the time."""
        for program in ("faulting_strings", "signals", "generated_code", "threads",
                        "thread_signals"):
            for captures in ("", "filter,fetches", "references,calls"):
                with self.subTest(program=program, captures=captures):
                    self.run_program(program, captures)
        self.run_program("signals", "filter,fetches,predictions", "--stress=yes")

    def test_replays(self):
        """A trace tells the same: also where it has fewer and longer blocks."""
        for program in ("atomics", "repeat", "faulting_strings", "generated_code"):
            trace = self.folder / "trace"
            result = run([ASSAY, "record", "--cpu=x86-64-v2", "-o", trace, "--",
                          PROGRAMS / program])
            self.assertEqual(result.returncode, 0, result.stderr)
            for captures in ("", "filter,fetches", "references,code", "predictions,fetches",
                             "misses,fetches", "intervals,filter,fetches", "calls,branches"):
                with self.subTest(program=program, captures=captures):
                    result = run([ASSAY, "replay", f"--plugin={BLOCKS}", f"--with={captures}",
                                  "-o", self.out, trace])
                    self.assertEqual(result.returncode, 0, result.stderr)
                    found = self.check(read_events(self.out))
                    wanted = self.run_program(program, captures, "--cpu=x86-64-v2")
                    self.assertEqual(found.functions, wanted.functions)

    def test_bursts(self):
        """What is not captured is not told."""
        for captures in ("", "filter,fetches"):
            events = self.run_program("sort", captures, "--sample=2k/20k")
            whole = self.run_program("sort", captures)
            self.assertAlmostEqual(events.summary[0] / whole.summary[0], 1, delta=0.01)


if __name__ == "__main__":
    unittest.main()
