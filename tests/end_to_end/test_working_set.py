#!/usr/bin/env python3
"""Working sets: known answers, and that the filter of the capture loses nothing of any interval."""

import csv
import re
import unittest

import support
from support import PROGRAMS, profile, read_events


class WorkingSet(unittest.TestCase):
    def profile(self, program, *options, plugin="working_set"):
        folder = support.temporary_folder(self)
        result = profile([PROGRAMS / program], f"--over-time={folder / 'csv'}", *options,
                         plugin=plugin, out=folder / "events")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.text = re.sub(r"^==\d+== ?", "", result.stderr, flags=re.MULTILINE)
        with open(folder / "csv", encoding="ascii") as file:
            self.rows = [{key: int(value) for key, value in row.items()}
                         for row in csv.DictReader(file)]
        self.events = read_events(folder / "events")
        return dict(zip(self.events.events, self.events.summary))

    def test_beside_profilers_that_want_other_references(self):
        """All of them, and those that a filter leaves which notes the bytes that are touched."""
        for program in ("matrix", "list", "straddle", "strings", "series", "threads"):
            own = self.profile(program, "--interval-size=1000")
            rows = self.rows
            self.assertGreater(len(rows), 3)
            for other in ("effective_address", "used_bytes"):
                both = self.profile(program, "--interval-size=1000",
                                    plugin=f"working_set,{other}")
                with self.subTest(program=program, other=other):
                    if program == "threads":
                        # What its threads do differs from run to run; that of the first does not
                        # as long as it is alone.
                        self.assertEqual(self.rows[:3], rows[:3])
                        continue
                    self.assertEqual(self.rows, rows)
                    self.assertEqual({name: both[name] for name in own}, own)

    def test_a_pointer_chase(self):
        """Each interval of the chase touches as many lines as nodes, and they lie anywhere."""
        totals = self.profile("list", "--interval-size=10000")
        self.assertEqual(self.events.events, ["WSl", "WSp", "FPl", "FPp"])
        self.assertEqual(self.events.totals(), self.events.summary)
        chase = self.rows[-2]
        self.assertIn(chase["lines"], range(300, 5000))
        self.assertIn(chase["pages"], range(100, 140))  # of 128, and the stack's
        self.assertEqual([row["instructions"] for row in self.rows],
                         [10000 * i for i in range(len(self.rows))])
        # All but the last, unfinished interval.
        missing = totals["WSl"] - sum(row["lines"] for row in self.rows)
        self.assertIn(missing, range(0, 5000))
        self.assertIn(f"intervals of 10,000 instructions: {len(self.rows)}\n", self.text)

    def test_one_interval(self):
        """Then all of it is new to the interval as it is to the run."""
        for program in ("matrix", "list"):
            totals = self.profile(program, "--interval-size=1000000000000")
            self.assertEqual(self.rows, [])
            self.assertEqual(totals["WSl"], totals["FPl"])
            self.assertEqual(totals["WSp"], totals["FPp"])
            # No reference of these lies across two lines.
            out = support.temporary_folder(self) / "events"
            profile([PROGRAMS / program], plugin="reuse", out=out)
            events = read_events(out)
            self.assertEqual(totals["FPl"], events.summary[events.events.index("New")])

    def test_contexts_and_objects(self):
        for option, kind in (("--contexts", "stack"), ("--objects", "group")):
            self.profile("matrix", option, "--interval-size=10000")
            self.assertTrue(any(line.startswith(f"#! {kind} ") for line in self.events.remarks))

    def test_sampled(self):
        self.profile("matrix", "--sample=1k/9k", "--interval-size=1000")
        self.assertEqual(self.events.events, ["FPl", "FPp"])
        self.assertEqual(self.rows, [])
        self.assertIn("no working sets with --sample", self.text)

    def test_refusals(self):
        for option, why in (("--interval-size=10", "--interval-size=10: use 1000 to"),
                            ("--line-size=32", "--line-size=32: use 64 to 4096"),
                            ("--line-size=96", "--line-size=96: use a power of two")):
            result = profile([PROGRAMS / "matrix"], option, plugin="working_set")
            self.assertEqual(result.returncode, 125)
            self.assertIn(why, result.stderr)


if __name__ == "__main__":
    unittest.main()
