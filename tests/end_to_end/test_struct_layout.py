#!/usr/bin/env python3
"""Layouts of structs, and that the misses which are foretold come true."""

import re
import unittest

import support
from support import PROGRAMS, profile, read_events

SHAPES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"]
PARTICLES = 4096
ROUNDS = 10
# Of twelve members, 96 bytes together, two are hot: they lie in both lines that a struct touches
# where these are its own, and in the second one that two structs share.
LINES = PARTICLES * 96 // 64
HOT_LINES = PARTICLES * 16 // 64
ROW = re.compile(r"  (.*?) +([\d,]+) +([\d,]+) +([\d,]+) +([\d.]+)%$", re.MULTILINE)


class StructLayout(unittest.TestCase):
    def profile(self, program, *options, plugin="struct_layout"):
        self.out = support.temporary_folder(self) / "events"
        result = profile([PROGRAMS / program], *SHAPES, *options, plugin=plugin, out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = re.sub(r"^==\d+== ?", "", result.stderr, flags=re.MULTILINE)
        rows = {row[0]: [int(number.replace(",", "")) for number in row[1:4]]
                for row in ROW.findall(text)}
        return text, rows

    def misses(self, program):
        """What the cache profiler counts."""
        self.profile(program, plugin="cache")
        events = read_events(self.out)
        total = dict(zip(events.events, events.summary))
        return [total["D1mr"] + total["D1mw"], total["DLmr"] + total["DLmw"]]

    def test_foretold_misses_come_true(self):
        text, rows = self.profile("particles", "--objects")
        now, split = rows["as it is"], rows["split, 2 of 12 in the first"]
        # Filled once, all of it, then read round by round.
        self.assertEqual(now[1], LINES + ROUNDS * LINES)
        self.assertEqual(rows["reordered"][1], LINES + ROUNDS * PARTICLES)
        self.assertEqual(split[1], LINES + ROUNDS * HOT_LINES)
        self.assertEqual([now[0], now[2]], self.misses("particles"))
        self.assertEqual([split[0], split[2]], self.misses("particles_split"))
        self.assertIn("split, 2 of 12 in the first: 51,200 D1 misses fewer", text)
        self.assertRegex(text, r"struct particle \{\n *long int mass; +// 0\n"
                               r" *long int charge; +// 8\n *\};  // 16 bytes, now 96")

    def test_use(self):
        text, _ = self.profile("particles", "--objects")
        self.assertIn("used together in 90.9% of 45,056 visits: mass, charge\n", text)
        self.assertIn("never used: color, unused\n", text)

    def test_what_is_good_stays(self):
        text, rows = self.profile("particles_split", "--objects", "--struct=particle")
        self.assertIn("No layout that was tried has fewer D1 misses and no more LL misses", text)
        self.assertEqual(rows["as it is"][1], HOT_LINES * (ROUNDS + 1))

    def test_without_objects(self):
        """Where arrays begin is not known then: members can change places only."""
        text, rows = self.profile("particles")
        self.assertEqual(rows["reordered"][1], LINES + ROUNDS * PARTICLES)
        self.assertNotIn("split, 2 of 12 in the first", rows)
        self.assertIn("which --objects finds", text)

    def test_blocks(self):
        """The list in an array of the heap is freed before the program ends."""
        text, rows = self.profile("members", "--objects", "--struct=node")
        self.assertIn("struct node, 104 bytes", text)
        self.assertTrue(any(name.startswith("split") for name in rows), text)

    def test_events(self):
        self.profile("particles")
        events = read_events(self.out)
        self.assertEqual(events.events, ["Dref", "D1m", "DLm"])
        self.assertEqual(events.functions["attract"][0], ROUNDS * PARTICLES * 2 + ROUNDS)
        self.assertIn(events.functions["attract"][1] - ROUNDS * LINES, range(20))

    def test_a_recording_that_is_too_small(self):
        result = profile([PROGRAMS / "work"], "--record=0", plugin="struct_layout",
                         out=support.temporary_folder(self) / "events")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--record=0", result.stderr)

    def test_samples(self):
        out = support.temporary_folder(self) / "events"
        result = profile(["/bin/echo", "begun"], "--sample=1/10", plugin="struct_layout", out=out)
        self.assertEqual(result.returncode, 125)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn("--plugin=struct_layout cannot be combined with --sample", result.stderr)
        self.assertFalse(out.exists())

    def test_an_unknown_struct(self):
        text, _ = self.profile("particles", "--struct=wave")
        self.assertIn("no references to a struct wave are known", text)


if __name__ == "__main__":
    unittest.main()
