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
RUNS = int(os.environ.get("ASSAY_RUNS", "3"))
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
                self.assert_same([way], "fair:2000", RUNS - 1)

    def test_same_with_more_captured(self):
        """Objects, contexts, threads; other profilers, and bursts."""
        for plugin, options in [("cache", ["--objects", "--contexts", "--threads"]),
                                ("cache", ["--level1=profiler"]), ("cache", ["--sample=1k/20k"]),
                                ("effective_address", []), ("used_bytes", []),
                                ("branch", [])]:
            with self.subTest(plugin, options=options):
                first = self.file(WAYS[:5], "fair:5k", *options, plugin=plugin)
                for _ in range(RUNS - 2):
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


# Threads write their own counters in one line, between barriers. Threads that take turns after each
# increment take the line from each other each time.
COUNTERS = """
#include <pthread.h>
enum { kThreads = 3, kRounds = 2, kTimes = 500 };
static volatile long counters[kThreads] __attribute__((aligned(64)));
static pthread_barrier_t barrier;
static void* count(void* own) {
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kTimes; ++i) {
            ++*(volatile long*)own;
            for (volatile int wait = 0; wait < 20; ++wait) {}
        }
        pthread_barrier_wait(&barrier);
    }
    return 0;
}
int main(void) {
    pthread_t threads[kThreads];
    pthread_barrier_init(&barrier, 0, kThreads);
    for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], 0, count, (void*)&counters[i]);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
}"""
CORES = """
machine: cores
cores: 4
coherence: mesi
caches:
  D1: {level: 1, holds: data, of: core, size: 32K, ways: 8, writes: back}
  I1: {level: 1, holds: instructions, of: core, size: 32K, ways: 8}
"""


@support.needs("gcc")
class Replays(unittest.TestCase):
    """Threads of a recording take turns anew."""
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.trace = self.folder / "trace"
        self.machine = self.folder / "cores.yaml"
        self.machine.write_text(CORES)

    def record(self, program, *options):
        recorded = run([ASSAY, "record", "-q", *options, "-o", self.trace, "--", *program])
        self.assertEqual((recorded.returncode, recorded.stderr), (0, ""))

    def replay(self, *options):
        out = self.folder / "replayed"
        replayed = run([ASSAY, "replay", "-q", f"--out={out}", *options, self.trace])
        self.assertEqual((replayed.returncode, replayed.stderr), (0, ""), options)
        return out

    def false_sharing(self, *options):
        events = read_events(self.replay("--plugin=cache", f"--machine={self.machine}", *options))
        return events.totals()[events.events.index("FalseSharing")]

    def test_false_sharing(self):
        (self.folder / "counters.c").write_text(COUNTERS)
        program = self.folder / "counters"
        built = run(["gcc", "-O1", "-pthread", "-o", program, self.folder / "counters.c"])
        self.assertEqual(built.returncode, 0, built.stderr)
        increments = 3 * 2 * 500
        self.record([program], "--schedule=fair:1k")
        self.assertLess(self.false_sharing(), increments / 4)
        for slices in ("fair:1", "fair:20"):
            self.assertGreater(self.false_sharing(f"--schedule={slices}"), 0.95 * increments)
        # As in a run, and as recorded, in that order.
        self.record([program], "--schedule=fair:100")
        as_run = profile([program], "-q", f"--machine={self.machine}", "--schedule=fair:100",
                         out=self.folder / "run")
        self.assertEqual(as_run.returncode, 0, as_run.stderr)
        as_run = read_events(self.folder / "run")
        self.assertEqual(self.false_sharing("--schedule=fair:100"),
                         as_run.totals()[as_run.events.index("FalseSharing")])
        coarse = self.false_sharing("--schedule=fair:10k")
        self.assertLess(coarse, increments / 20)
        # What waits is not known from threads that ran in parallel.
        self.record([program])
        self.assertGreater(self.false_sharing("--schedule=fair:1"), 0.5 * increments)

    def test_what_depends_on_no_order(self):
        """Branches, contexts and threads of all ways in which threads wait."""
        self.record([PROGRAM, *WAYS], "--schedule=fair:1k")
        def counts(*options):
            return [line for line in self.replay("--plugin=branch", "--threads", "--contexts", *options)
                    .read_text().splitlines() if not line.startswith(("desc: ", "fl=#! pid"))]
        recorded = counts()
        for slices in ("fair:30", "fair:1k", "fair:100k"):
            self.assertEqual(counts(f"--schedule={slices}"), recorded, slices)

    def test_description(self):
        self.record([PROGRAM, "mutex"], "--schedule=fair:1k")
        for options, said in (((), "1000"), (("--schedule=fair:50",), "50")):
            self.assertIn(f"one thread at a time for {said} instructions",
                          self.replay("--plugin=branch", *options).read_text())

    def test_refusals(self):
        self.record([PROGRAM, "mutex"], "--schedule=fair:1k", "--sample=1k/20k")
        for option, message in (("--schedule=fair:10", "has only a part of the run"),
                                ("--schedule=fair:0", "fair:N with N from 1 to 1G")):
            replayed = run([ASSAY, "replay", "--plugin=branch", f"--out={self.folder / 'none'}", option,
                            self.trace])
            self.assertEqual(replayed.returncode, 125)
            self.assertIn(message, replayed.stderr)


if __name__ == "__main__":
    unittest.main()
