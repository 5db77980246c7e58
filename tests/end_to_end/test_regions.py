#!/usr/bin/env python3
"""Profiling a part of a program, and ending a run before the program ends."""

import os
import signal
import subprocess
import time
import unittest

import support
from support import ASSAY, PLUGINS, PROGRAMS, profile, read_events

REGIONS = PROGRAMS / "regions"
# Instructions of the program's loop(): one before the 100 rounds of two, and the return.
LOOP = 1 + 100 * 2 + 1
TIMED_OUT = 124  # framework/collector/launch/deadline.h


class Case(unittest.TestCase):
    def setUp(self):
        self.out = support.temporary_folder(self) / "events"

    def functions(self):
        """Executed instructions by the function's name."""
        events = read_events(self.out)
        column = events.events.index("Ir")
        return {name: row[column] for name, row in events.functions.items()}

    def instructions(self, *options, program):
        result = profile(program, "-q", *options, out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.functions(), result

    def incomplete(self):
        return [line for line in read_events(self.out).remarks if "incomplete" in line]


class Regions(Case):
    def test_between_markers(self):
        counts, result = self.instructions("--collect-at-start=no", program=[REGIONS, "markers"])
        self.assertEqual(counts.pop("loop"), 2 * LOOP)
        self.assertEqual(set(counts), {"markers", "assay_marker", "assay_start_collecting",
                                       "assay_stop_collecting"})
        self.assertEqual(result.stdout, "profiled: 1\n")

    def test_collecting_at_the_start(self):
        counts, _ = self.instructions(program=[REGIONS, "markers"])
        self.assertEqual(counts["loop"], 2 * LOOP)
        self.assertIn("main", counts)

    def test_markers_often(self):
        for stress in ("no", "yes"):
            with self.subTest(stress):
                counts, _ = self.instructions("--collect-at-start=no", f"--stress={stress}",
                                              program=[REGIONS, "often"])
                self.assertEqual(counts["loop"], 100000 * LOOP)

    def test_references_as_in_a_whole_run(self):
        """Nothing is recorded while collecting is off, and all while it is on."""
        self.instructions(program=[PROGRAMS / "work"])
        whole = read_events(self.out).functions
        self.instructions("--toggle=fill_cells", program=[PROGRAMS / "work"])
        part = read_events(self.out)
        column = {name: part.events.index(name) for name in ("Ir", "Dr", "Dw")}
        self.assertEqual(list(part.functions), ["fill_cells"])
        for event, at in column.items():
            self.assertEqual(part.functions["fill_cells"][at], whole["fill_cells"][at], event)

    def test_natively_markers_do_nothing(self):
        result = support.run([REGIONS, "markers"])
        self.assertEqual((result.returncode, result.stdout), (0, "profiled: 0\n"))

    def test_names(self):
        _, result = self.instructions(program=[REGIONS, "names"])
        self.assertEqual(result.stdout, "known: 0\n")

    def test_other_threads_follow(self):
        counts, result = self.instructions("--collect-at-start=no", program=[REGIONS, "threads"])
        rounds = int(result.stdout)
        # Four instructions for each round, and 20 times as many rounds are not collected.
        self.assertGreater(counts["work_alone"], 3 * rounds)
        self.assertLess(counts["work_alone"], 20 * rounds)

    def test_functions(self):
        for case in ("recursion", "longjmp"):
            for stress in ("no", "yes"):
                with self.subTest(case, stress=stress):
                    counts, _ = self.instructions("--toggle=descend", f"--stress={stress}",
                                                  program=[REGIONS, case])
                    # Five calls each time, and what follows is not inside.
                    self.assertEqual(counts["loop"], 10 * 5 * LOOP)
                    self.assertNotIn("after", counts)
                    self.assertNotIn("main", counts)

    def test_functions_by_pattern(self):
        counts, _ = self.instructions("--toggle=ins*", "--toggle=after,nothing",
                                      program=[REGIONS, "recursion"])
        self.assertEqual(counts, {"loop": (50 + 10) * LOOP, "inside": 50 * 2, "after": 10 * 2})

    def test_no_such_function(self):
        result = profile([PROGRAMS / "work"], "--toggle=no_such_function", out=self.out)
        self.assertEqual(result.returncode, 0)
        self.assertIn("no_such_function", result.stderr)

    def test_ranges_of_instructions(self):
        work = [PROGRAMS / "work_static"]
        whole = sum(self.instructions(program=work)[0].values())
        sums = {}
        for stress in ("no", "yes"):
            bounds = [1, 1000001, 2000001]
            ends = [1000000, 2000000, whole]
            parts = [sum(self.instructions(f"--from-instruction={begin}", f"--stress={stress}",
                                           f"--to-instruction={end}", program=work)[0].values())
                     for begin, end in zip(bounds, ends)]
            # Exact up to a basic block, and each block belongs to one of them.
            self.assertEqual(sum(parts), whole)
            self.assertAlmostEqual(parts[0], 1000000, delta=64)
            self.assertAlmostEqual(parts[1], 1000000, delta=64)
            sums[stress] = parts
        self.assertEqual(sums["no"], sums["yes"])

    def test_from_an_instruction_on(self):
        work = [PROGRAMS / "work_static"]
        whole = sum(self.instructions(program=work)[0].values())
        rest = sum(self.instructions("--from-instruction=1000001", program=work)[0].values())
        self.assertAlmostEqual(rest, whole - 1000000, delta=64)

    def test_unusable_values(self):
        for option in ("--from-instruction=0", "--to-instruction=x", "--toggle=", "--toggle=a,,b",
                       "--collect-at-start=maybe", "--timeout=0", "--timeout=1x", "--timeout="):
            with self.subTest(option):
                result = profile(["true"], option, out=self.out)
                self.assertEqual(result.returncode, 125)
                self.assertIn(option.partition("=")[0], result.stderr)


class Endings(Case):
    def started(self, *program, **more):
        command = [ASSAY, "--plugin=cache", "-q", f"--out={self.out}", "--", *program]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                                **more)

    def ended_by(self, number, *program):
        process = self.started(*program)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(number)
        return process.wait(timeout=60)

    def test_signals_end_the_program(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                status = self.ended_by(number, "sh", "-c", "echo ready; while :; do :; done")
                self.assertEqual(status, -number)
                self.assertEqual(len(self.incomplete()), 1)
                self.assertIn(f"signal {int(number)}", self.incomplete()[0])

    def test_handlers_run(self):
        for name in ("INT", "TERM"):
            with self.subTest(name):
                status = self.ended_by(getattr(signal, "SIG" + name), "sh", "-c",
                                       f"trap 'exit 7' {name}; echo ready; while :; do :; done")
                self.assertEqual(status, 7)
                self.assertEqual(self.incomplete(), [])

    def timed(self, *options, program, plugin="cache", **more):
        start = time.monotonic()
        result = profile(program, "-q", *options, plugin=plugin, out=self.out, **more)
        self.assertEqual(result.returncode, TIMED_OUT, result.stderr)
        self.assertIn("--timeout=0.5s", result.stderr)
        return time.monotonic() - start

    def test_timeout(self):
        self.assertLess(self.timed("--timeout=0.5s", program=["sleep", "600"]), 300)
        self.assertIn("--timeout=0.5s", self.incomplete()[0])

    def test_timeout_of_a_program_that_ignores_it(self):
        program = ["sh", "-c", "trap '' TERM; while :; do :; done"]
        self.assertLess(self.timed("--timeout=0.5s", program=program), 300)
        self.assertIn("--timeout=0.5s", self.incomplete()[0])

    def test_timeout_leaves_time_to_clean_up(self):
        """SIGKILL comes only some seconds behind SIGTERM."""
        program = ["sh", "-c", "trap 'sleep 1; echo cleaned up; exit 0' TERM; while :; do :; done"]
        result = profile(program, "-q", "--timeout=4s", "--trace-children=no", out=self.out)
        self.assertEqual((result.returncode, result.stdout), (TIMED_OUT, "cleaned up\n"),
                         result.stderr)

    def test_timeout_that_is_not_reached(self):
        result = profile(["true"], "--timeout=1h", out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.incomplete(), [])

    def test_timeout_of_a_profiler(self):
        """The others' columns are kept."""
        for function in ("vp_prof_process", "vp_finish"):
            with self.subTest(function):
                environment = dict(os.environ, ASSAY_CRASH_IN=function, ASSAY_CRASH_BY="hang")
                self.timed("--timeout=0.5s", program=[PROGRAMS / "work"], env=environment,
                           plugin=f"{PLUGINS / 'crash.so'},cache")
                self.assertNotIn("Crashes", read_events(self.out).events)
                self.assertIn("Ir", read_events(self.out).events)


if __name__ == "__main__":
    unittest.main()
