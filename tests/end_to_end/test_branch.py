#!/usr/bin/env python3
"""The branch predictors beside Cachegrind's, on branches whose mispredictions are known on paper:
tests/programs/freestanding/branches.S. (Cachegrind's own are compared in compare_cachegrind.py.)"""

import unittest

import support
from support import PROGRAMS, read_events

# More are not mispredicted while tables learn: there are up to 14 histories while that fills with its
# 14 bits, and 11 in the longest pattern that fits; a counter needs at most two outcomes.
LEARNING = 2 * (14 + 11)
PATTERNS = ("loop_of_10", "loop_of_60", "alternate", "period_of_5")


class BranchPredictors(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def profile(self, *options):
        """By function, a dictionary of its counts."""
        ran = support.profile([PROGRAMS / "branches"], *options, plugin="branch",
                              out=self.folder / "out")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        events = read_events(self.folder / "out")
        self.assertEqual(events.totals(), events.summary)
        return {name: dict(zip(events.events, counts)) for name, counts in events.functions.items()}

    def mispredicted(self, event, *options):
        return {name: counts[event] for name, counts in self.profile(*options).items()}

    def check_patterns(self, counts, wrong):
        """`wrong`: functions and how many are mispredicted beyond learning; the others none."""
        for name in PATTERNS:
            with self.subTest(function=name):
                self.assertIn(counts[name] - wrong.get(name, 0), range(LEARNING))

    def test_executions(self):
        counts = self.profile("--predictor=bimodal", "--return-stack=8")
        for name, branches in (("loop_of_10", 11_000), ("loop_of_60", 61_000), ("alternate", 4_000),
                               ("period_of_5", 4_000), ("cycle_targets", 2_000), ("descend", 20)):
            self.assertEqual(counts[name]["Bc"], branches, name)
        for name in ("cycle_targets", "call_one"):
            self.assertEqual(counts[name]["Bi"], 2_000)
        self.assertEqual(counts["called"]["Br"], 2_000)

    def test_bimodal(self):
        """Counters begin at 1, weakly not taken."""
        counts = self.mispredicted("Bcm", "--predictor=bimodal")
        # The inner loop's branch: its first execution, and the last iteration of each; the outer
        # loop's: the first and the last.
        self.assertEqual(counts["loop_of_10"], 1 + 1_000 + 2)
        self.assertEqual(counts["loop_of_60"], 1 + 1_000 + 2)
        # 1 predicts not taken and 2 taken: always wrong. The loop around it: the first, the last.
        self.assertEqual(counts["alternate"], 2_000 + 2)
        # Of 1 1 0 1 0, both zeros; and the first one of all.
        self.assertEqual(counts["period_of_5"], 1 + 2 * 400 + 2)
        self.assertEqual(counts["cycle_targets"], 2)
        # Its only taken branch, the last one.
        self.assertEqual(counts["descend"], 1)

    def test_gshare(self):
        # 14 bits of history tell apart the iterations of a loop of 10, but not of one of 60.
        self.check_patterns(self.mispredicted("Bcm", "--predictor=gshare"), {"loop_of_60": 1_000})
        # With 8 bits, the last three iterations of 10 look the same, and two of them are taken.
        # Those of the patterns, with the loop in between, are 4 outcomes: enough for 1 1 0 1 0.
        self.check_patterns(self.mispredicted("Bcm", "--predictor=gshare", "--predictor-bits=8"),
                            {"loop_of_10": 1_000, "loop_of_60": 1_000})

    def test_tournament(self):
        # 10 outcomes of the branch itself, or 12 of all.
        self.check_patterns(self.mispredicted("Bcm", "--predictor=tournament"),
                            {"loop_of_60": 1_000})

    def test_tage(self):
        # Up to 130 outcomes: also the 61 of the longer loop.
        self.check_patterns(self.mispredicted("Bcm", "--predictor=tage"), {})

    def test_indirect_predictors(self):
        """The last target is always the wrong one of a cycle; histories of targets know the
        next."""
        for predictor, cycle in (("last", 2_000), ("target-cache", 0), ("ittage", 0)):
            with self.subTest(predictor=predictor):
                counts = self.mispredicted("Bim", f"--indirect-predictor={predictor}")
                self.assertIn(counts["cycle_targets"] - cycle, range(LEARNING))
                # The first call; and while the target cache's history of 9 bits, 3 of each
                # target, forgets what was before.
                self.assertIn(counts["call_one"], range(1, 5 if predictor == "target-cache" else 2))

    def test_return_stack(self):
        # descend() is entered 20 times; below it are descend_once() and program(). The latest calls
        # are in the stack, and those that do not fit are mispredicted.
        for depth in (16, 19, 20, 21, 64):
            with self.subTest(depth=depth):
                counts = self.mispredicted("Brm", f"--return-stack={depth}")
                self.assertEqual(counts["descend"], max(0, 20 - depth))
                self.assertEqual(counts["descend_once"], 1 if depth < 21 else 0)
                self.assertEqual(counts["called"], 0)
                # Both returns go past a call, and so leave two addresses in the stack, for which
                # the returns below are mispredicted.
                self.assertEqual(counts["skipping"], 2)
                self.assertEqual(counts["skip_twice"], 1)
                self.assertEqual(counts["program"], 1)


if __name__ == "__main__":
    unittest.main()
