#!/usr/bin/env python3
"""--schedule=fair: threads one at a time, in an order that is the program's alone, so that every run
gives the same file: tests/programs/hosted/schedules.c."""

import itertools
import signal
import subprocess
import time
import os
import unittest

import support
from support import ASSAY, GEOMETRY, PROGRAMS, profile, read_events, run

PROGRAM = PROGRAMS / "schedules"
RUNS = int(os.environ.get("ASSAY_RUNS", "5"))  # 20 take a minute
# What is the same in each run. Not the ways whose course depends on the kernel: times, pipes between
# threads, other processes, mutexes with priorities.
WAYS = ["mutex", "conditions", "broadcast", "barrier", "spinning", "yielding", "tree", "detached",
        "memory", "readers", "robust"]
OTHERS = ["priorities", "child", "pipe", "interruptions"]
SMALL = ["--I1=8192,2,64", "--D1=8192,2,64", "--LL=65536,4,64"]  # much is in the last level only


class Schedule(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def file(self, ways, schedule, *options, plugin="cache", geometry=SMALL):
        """What a run has written, but for the process id."""
        out = self.folder / "events"
        if plugin == "cache":
            options = (*geometry, *options)
        result = profile([PROGRAM, *ways], f"--schedule={schedule}", "--quiet", *options,
                         plugin=plugin, out=out)
        self.assertEqual((result.returncode, result.stderr), (0, ""), (ways, schedule))
        self.output = result.stdout
        lines = out.read_text().splitlines()
        return [line for line in lines if not line.startswith("fl=#! pid ")]

    def assert_same(self, ways, schedule, runs, **more):
        first = self.file(ways, schedule, **more)
        for _ in range(runs - 1):
            self.assertEqual(self.file(ways, schedule, **more), first, (ways, schedule))

    def test_same_file(self):
        """All columns, by line and function, with caches that threads share, and whatever N."""
        for schedule in ["fair", "fair:10k", "fair:777"]:
            with self.subTest(schedule):
                self.assert_same(WAYS, schedule, RUNS)

    def test_each_way(self):
        for way in WAYS:
            with self.subTest(way):
                self.assert_same([way], "fair:2000", 3)

    def test_same_with_more_captured(self):
        """Objects, contexts, threads; other profilers, and bursts."""
        for plugin, options in [("cache", ["--objects", "--contexts", "--threads"]),
                                ("cache", ["--level1=profiler"]), ("cache", ["--sample=1k/20k"]),
                                ("effective_address", []), ("used_bytes", []),
                                ("branch", [])]:
            with self.subTest(plugin, options=options):
                first = self.file(WAYS[:5], "fair:5k", *options, plugin=plugin)
                for _ in range(3):
                    again = self.file(WAYS[:5], "fair:5k", *options, plugin=plugin)
                    self.assertEqual(again, first)

    def test_output(self):
        """What the program does is what it does natively."""
        native = run([PROGRAM, *WAYS, *OTHERS]).stdout
        for schedule in ["fair", "fair:100", "fair:1M"]:
            with self.subTest(schedule):
                self.file([*WAYS, *OTHERS], schedule)
                self.assertEqual(self.output, native)

    def test_order(self):
        """Threads take turns: the shorter they are, the more often."""
        turns = {}
        for schedule in ["fair:100", "fair:10k", "fair:10M"]:
            self.file(["order"], schedule)
            order = self.output.split()[1]
            self.assertEqual(sorted(order), sorted("abcd" * 40))
            turns[schedule] = len(list(itertools.groupby(order)))
        self.assertGreater(turns["fair:100"], 120)
        self.assertGreater(turns["fair:10k"], 8)
        self.assertLess(turns["fair:10k"], turns["fair:100"])
        self.assertEqual(turns["fair:10M"], 4)

    def test_counts(self):
        """The schedule changes what is in a shared cache, not what is executed or referenced."""
        totals = {}
        for schedule in ["parallel", "fair:1k"]:
            self.file(["order"], schedule, geometry=GEOMETRY)
            found = read_events(self.folder / "events")
            totals[schedule] = found.functions["take_numbers"], found.functions["touch"]
            columns = [found.events.index(name) for name in ("Ir", "Dr", "Dw")]
        for function in (0, 1):
            self.assertEqual([totals["parallel"][function][column] for column in columns],
                             [totals["fair:1k"][function][column] for column in columns])

    def test_description(self):
        def description(program, *options):
            out = self.folder / "described"
            self.assertEqual(profile(program, *options, out=out).returncode, 0)
            return [text for text in read_events(out).descriptions if text.startswith("Schedule")]
        self.assertEqual(description([PROGRAM, "order"], "--schedule=fair:10k"),
                         ["Schedule: fair, one thread at a time for 10000 instructions"])
        self.assertIn("parallel, 5 threads", description([PROGRAM, "order"])[0])
        self.assertEqual(description([PROGRAM]), [])

    def test_deadlock(self):
        """It stays one, and a signal ends it."""
        process = subprocess.Popen(
            [ASSAY, "--plugin=cache", f"--out={self.folder / 'deadlock'}", "--schedule=fair:1k", "--",
             PROGRAM, "deadlock"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "deadlock\n")
        time.sleep(1.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertIn("incomplete", (self.folder / "deadlock").read_text())

    def test_killed(self):
        process = subprocess.Popen(
            [ASSAY, "--plugin=cache", f"--out={self.folder / 'killed'}", "--schedule=fair:1k", "--",
             PROGRAM, *WAYS * 50], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        children = []
        while not children and process.poll() is None:
            children = run(["pgrep", "-P", process.pid, "-x", "schedules"]).stdout.split()
        time.sleep(1)
        self.assertEqual(len(children), 1)
        run(["kill", "-KILL", children[0]])
        process.communicate(timeout=300)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertIn("incomplete", (self.folder / "killed").read_text())

    def test_wrong_values(self):
        for value in ["fair:", "fair:99", "fair:2G", "fair:x", "fare", "fair:1k:2", ""]:
            with self.subTest(value):
                result = profile(["true"], f"--schedule={value}")
                self.assertEqual(result.returncode, 125)
                self.assertIn(f'--schedule: "{value}" is not parallel, fair, or fair:N',
                              result.stderr)


if __name__ == "__main__":
    unittest.main()
