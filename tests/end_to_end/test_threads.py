#!/usr/bin/env python3
"""Counts by thread, of a program whose threads do what is known: tests/programs/hosted/named_threads.c."""

import json
import unittest

import support
from support import ASSAY, PROGRAMS, profile, run

PLUGINS = ["cache", "branch", "bbv", "used_bytes", "effective_address", "classic"]
OWN_SLOTS = 256


class Threads(unittest.TestCase):
    def profile(self, *arguments, program="named_threads", plugin="cache", options=()):
        self.out = support.temporary_folder(self) / "events"
        result = profile([PROGRAMS / program, *arguments], "--threads", *options, out=self.out,
                         plugin=plugin)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.groups("--threshold=0")

    def groups(self, *options):
        result = run([ASSAY, "annotate", "--json", "--by=thread", *options, self.out])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.document = json.loads(result.stdout)
        self.events = [event["name"] for event in self.document["events"]]
        return self.document["groups"]

    def counts(self, groups, event, function=None):
        """By name, those of a function if it is given."""
        column = self.events.index(event)
        counts = {}
        for group in groups:
            rows = [group] if function is None else [line for line in group["lines"]
                                                     if line["function"] == function]
            counts[group["name"]] = counts.get(group["name"], 0) + sum(
                row["counts"][column] for row in rows)
        return counts

    def test_known_work(self):
        """The loop has one store, which each thread executes as often as it is told to."""
        writes = self.counts(self.profile(), "Dw", "store")
        least = writes["named_threads"] - 500
        self.assertEqual({name: count - least for name, count in writes.items()},
                         {"ends-1000": 1000, "ends-2000": 2000, "stays": 5000, "named_threads": 500})
        self.assertIn(least, range(8))

    def test_numbers(self):
        groups = self.profile()
        self.assertEqual({group["name"]: group["attributes"]["number"] for group in groups},
                         {"named_threads": "1", "ends-1000": "2", "ends-2000": "3", "stays": "4"})

    def test_all_profilers(self):
        """Each tells what every thread has of all that it counts, by itself and among others, which
        have a process of their own."""
        for plugin in PLUGINS + [",".join(PLUGINS[:2])]:
            with self.subTest(plugin):
                groups = self.profile(plugin=plugin)
                for event in self.events:
                    total = self.document["totals"][self.events.index(event)]
                    told = sum(self.counts(groups, event).values())
                    if event == "Refs":  # but for repeated string instructions
                        self.assertIn(total - told, range(1000))
                    elif plugin != "effective_address":  # else what is told of operands as a whole
                        self.assertEqual(told, total, event)

    def test_with_contexts_and_objects(self):
        plain = self.profile()
        expected = self.counts(plain, "D1mw", "store")
        for options in (["--contexts"], ["--objects"], ["--contexts", "--objects", "--types"]):
            with self.subTest(options):
                groups = self.profile(options=options)
                self.assertEqual(self.counts(groups, "D1mw", "store"), expected)
                writes = self.counts(groups, "Dw", "store")
                self.assertEqual(writes["stays"] - writes["ends-1000"], 4000)

    def test_blocks_left_early(self):
        """Each fault ends the tenth round of a loop of five instructions."""
        for options in ([], ["--contexts"], ["--schedule=fair"]):
            with self.subTest(options):
                groups = self.profile("faults_in_loops", program="thread_signals", options=options)
                of_loop = [[count for group in groups for line in group["lines"]
                            if line["function"] == "fault_in_loop" and group["attributes"]["number"] == number
                            for count in [line["counts"][self.events.index("Ir")]]]
                           for number in ("1", "2")]
                first, second = (sum(counts) for counts in of_loop)
                self.assertEqual((first % 20, second, first // 20 > 9 * 5), (0, first * 30 // 20, True))
                self.assertEqual(sum(group["counts"][0] for group in groups), self.document["totals"][0])

    def test_many(self):
        """The first have groups of their own, also if they have ended; the rest is one."""
        writes = self.counts(self.profile(str(OWN_SLOTS)), "Dw", "store")
        each = writes["stays"] - 5000 + 10
        self.assertEqual(writes.pop("(later threads)"), 4 * each)
        # Those that have no names of their own have their process's.
        self.assertEqual(writes["named_threads"], (OWN_SLOTS - 4) * each + each - 10 + 500)

    def test_merged(self):
        """Threads of one number and name are one."""
        self.profile()
        once = self.counts(self.groups(), "Dw")
        merged = self.out.with_name("merged")
        result = run([ASSAY, "merge", "-o", merged, self.out, self.out])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.out = merged
        self.assertEqual(self.counts(self.groups(), "Dw"),
                         {name: 2 * count for name, count in once.items()})

    def test_refusals(self):
        result = profile([PROGRAMS / "named_threads"], "--threads", "--sample=1/20")
        self.assertIn("--threads cannot be combined with --sample", result.stderr)
        self.assertNotEqual(result.returncode, 0)
        out = support.temporary_folder(self) / "events"
        profile([PROGRAMS / "named_threads"], out=out)
        result = run([ASSAY, "annotate", "--by=thread", out])
        self.assertIn("was measured without threads: run with --threads", result.stderr)
        self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main()
