#!/usr/bin/env python3
"""Recordings of simulation points: their bounds, what they stand for, and files that do not fit."""

import re
import signal
import subprocess
import time
import unittest

import support
from support import ASSAY, GEOMETRY, PROGRAMS, read_events

PHASED = [PROGRAMS / "phased", "1"]  # A, B, A and B, for 5 intervals of 10,000 each
PHASES = [PROGRAMS / "phases"]
SIZE = 10_000


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.trace = self.folder / "trace"

    def assay(self, *words, status=0):
        result = support.run([ASSAY, *words])
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def points(self, *points):
        """Files of (interval, weight)."""
        files = [self.folder / "points", self.folder / "weights"]
        files[0].write_text("".join(f"{at} {i}\n" for i, (at, _) in enumerate(points)))
        files[1].write_text("".join(f"{weight} {i}\n" for i, (_, weight) in enumerate(points)))
        return f"--simpoints={files[0]},{files[1]}"

    def record(self, program, *options, size=SIZE, status=0):
        return self.assay("record", "-o", self.trace, f"--interval-size={size}", *options, "--",
                          *program, status=status)

    def replay(self, *options, plugin="cache"):
        out = self.folder / "events"
        self.assay("replay", "-q", f"--plugin={plugin}", *options, "-o", out, self.trace)
        return read_events(out)

    def run_of(self, program, *options, plugin="cache"):
        out = self.folder / "run"
        self.assay("-q", f"--plugin={plugin}", *options, "-o", out, "--", *program)
        return read_events(out)

    def choose(self, program, size):
        """What assay simpoint says of it."""
        self.assay("-q", "--plugin=bbv", f"--interval-size={size}",
                   f"--bb-out-file={self.folder}/bb", "-o", self.folder / "bb.events", "--",
                   *program)
        self.assay("simpoint", self.folder / "bb")
        return f"--simpoints={self.folder}/bb"


THREADS = [PROGRAMS / "threads", "mutex"]


def totals(events):
    return dict(zip(events.events, events.summary))


class Bounds(Case):
    def test_vectors_of_other_threads(self):
        size = 1000
        self.choose(THREADS, size)
        other, merged = self.folder / "bb.2", self.folder / "all"
        self.assertTrue(other.exists())
        said = self.assay("record", "-o", self.trace, f"--simpoints={self.folder}/bb",
                          f"--interval-size={size}", "--", *THREADS)
        executed = [int(re.search(r"Total instructions: (\d+)", path.read_text()).group(1))
                    for path in [self.folder / "bb", *self.folder.glob("bb.[0-9]")]]
        share = round(100 * sum(executed[1:]) / sum(executed))
        self.assertIn(f"only the first of {len(executed)} threads is recorded: the others, with "
                      f"{share} % of the instructions", said)
        self.assay("merge", "--one-run", "-o", merged, self.folder / "bb", other)
        for file, words in ((other, "vectors of thread 2"), (merged, "vectors of 2 files")):
            self.assay("simpoint", file)
            for points in (file, f"{file}.simpts,{file}.weights"):
                with self.subTest(points):
                    said = self.assay("record", "-o", self.trace, f"--simpoints={points}",
                                      f"--interval-size={size}", "--", *THREADS, status=125)
                    self.assertEqual(said.count("\n"), 1, said)
                    self.assertIn(words, said)
                    self.assertIn(str(file), said)

    def test_an_interval_is_the_region_of_its_instructions(self):
        """To the block, as bbv numbers them, and so are all counts that need no state."""
        for program, intervals in ((PHASED, (0, 1, 2, 7, 19)), (PHASES, (0, 3, 200))):
            for interval in intervals:
                begin = 0 if interval == 0 else interval * SIZE + 1
                region = (f"--from-instruction={begin + 1}",
                          f"--to-instruction={(interval + 1) * SIZE + 1}")
                for warm_up in ("1000", "1M"):
                    with self.subTest(program=program[0].name, interval=interval, warm_up=warm_up):
                        self.record(program, self.points((interval, 1)), f"--warm-up={warm_up}")
                        for plugin, events in (("cache", ("Ir", "Dr", "Dw")),
                                               ("branch", ("Bc", "Bi"))):
                            part = self.replay("--weights=no", "--dump-instr=yes", plugin=plugin)
                            whole = self.run_of(program, *region, "--dump-instr=yes",
                                                plugin=plugin)
                            for event in events:
                                self.assertEqual(totals(part)[event], totals(whole)[event], event)
                            self.assertEqual(set(part.functions), set(whole.functions))

    def test_neighbours_have_one_another_as_warm_up(self):
        self.record(PHASED, self.points((3, 0.25), (4, 0.25), (5, 0.5)))
        region = self.run_of(PHASED, f"--from-instruction={3 * SIZE + 2}",
                             f"--to-instruction={6 * SIZE + 1}")
        self.assertEqual(totals(self.replay("--weights=no"))["Ir"], totals(region)["Ir"])

    def test_numbers_of_instructions_in_the_listing(self):
        self.record(PHASED, self.points((7, 1)), "--warm-up=1000")
        listing = support.run([ASSAY, "trace", "--kind=block", "--format=csv", self.trace]).stdout
        numbers = [int(line.split(",")[3]) for line in listing.splitlines()[1:]]
        self.assertLess(abs(numbers[0] - (7 * SIZE - 1000)), 300)
        self.assertLess(abs(numbers[-1] - 8 * SIZE), 20)


class Estimates(Case):
    def test_phases_known_on_paper(self):
        """Ir is that of the program, and each loop has its half, whatever the intervals."""
        whole = self.run_of(PHASED)
        chosen = self.choose(PHASED, SIZE)
        self.record(PHASED, chosen)
        estimate = self.replay()
        self.assertEqual(totals(estimate)["Ir"], totals(whole)["Ir"])
        by_function = {name[-1]: counts[0] for name, counts in estimate.functions.items()}
        exact = {name[-1]: counts[0] for name, counts in whole.functions.items()}
        for name in ("a", "b"):
            self.assertLess(abs(by_function[name] - exact[name]), 0.01 * exact[name])

    def test_weights(self):
        self.record(PHASED, self.points((1, 0.25), (6, 0.75)))
        total = totals(self.run_of(PHASED))["Ir"]
        by_function = {name[-1]: counts[0] for name, counts in self.replay().functions.items()}
        self.assertEqual(by_function, {"a": round(total / 4), "b": total - round(total / 4)})
        raw = self.replay("--weights=no")
        self.assertLess(abs(totals(raw)["Ir"] - 2 * SIZE), 20)

    def test_a_program_of_libc(self):
        self.record(PHASES, self.choose(PHASES, 100_000), size=100_000)
        whole = totals(self.run_of(PHASES, *GEOMETRY, "--branch-sim=yes", plugin="cache"))
        estimate = totals(self.replay(*GEOMETRY, "--branch-sim=yes", plugin="cache"))
        self.assertEqual(set(whole) - set(estimate), {"ILmr", "DLmr", "DLmw"})
        self.assertEqual(estimate["Ir"], whole["Ir"])
        for event, part in (("Dr", 0.05), ("Dw", 0.05), ("Bc", 0.05), ("D1mr", 0.15)):
            self.assertLess(abs(estimate[event] - whole[event]), part * whole[event], event)

    def test_replays_are_the_same_each_time(self):
        self.record(PHASES, self.choose(PHASES, 100_000), size=100_000)
        first = self.replay("--dump-instr=yes", plugin="cache,branch,opcode_mix")
        again = self.replay("--dump-instr=yes", plugin="cache,branch,opcode_mix")
        self.assertEqual(first.functions, again.functions)
        self.assertEqual(first.summary, again.summary)

    def test_what_is_estimated_says_so(self):
        self.record(PHASED, self.points((1, 0.5), (6, 0.5)), "--warm-up=2k")
        said = [line for line in self.replay().descriptions if line.startswith("Sampled")]
        self.assertEqual(len(said), 1)
        for words in ("2 intervals of 10,000 instructions", "2,000 to warm up", "estimates for all"):
            self.assertIn(words, said[0])
        told = self.assay("replay", "--plugin=cache", "-o", self.folder / "events", self.trace)
        self.assertIn("2 intervals of 10,000", told)
        self.assertRegex(told, r"Ir +\d+,\d+")
        self.assertIn("of these alone", " ".join(self.replay("--weights=no").descriptions))

    def test_other_threads_are_left_out(self):
        self.record([PROGRAMS / "threads"], self.points((0, 1)))
        shown = {thread: support.run([ASSAY, "trace", "--format=csv", f"--thread={thread}",
                                      self.trace]).stdout.count("\n") for thread in (1, 2)}
        self.assertGreater(shown[1], SIZE // 10)
        self.assertLessEqual(shown[2], 1)


class Refused(Case):
    def refused(self, *options, words):
        errors = self.record(["true"], *options, status=125)
        self.assertEqual(errors.count("\n"), 1, errors)
        for word in words:
            self.assertIn(word, errors)

    def test_files_that_do_not_fit(self):
        points, weights = self.folder / "p", self.folder / "w"
        for text, weight, words in (
                ("5 0\n", "0.5 0\n", ("w: ", "add up to 0.5")),
                ("5 0\n", "1 1\n", ("p:1: ", "cluster 0 has no weight")),
                ("5 0\n", "0.5 0\n0.5 1\n", ("p: ", "cluster 1", "no interval")),
                ("5 0\n5 1\n", "0.5 0\n0.5 1\n", ("p: ", "interval 5 stands for two")),
                ("5\n", "1 0\n", ("p:1: ", "expected a cluster")),
                ("\nx 0\n", "1 0\n", ("p:2: ", "expected an interval")),
                ("5 0 0\n", "1 0\n", ("p:1: ", "the line's end")),
                ("99999999999999999 0\n", "1 0\n", ("p:1: ", "too late")),
                ("5 0\n", "2 0\n", ("w:1: ", "not from 0 to 1")),
                ("5 0\n", "1 0\n0 0\n", ("w:2: ", "has a weight already")),
                ("", "1 0\n", ("p: ", "no intervals")),
        ):
            with self.subTest(text=text, weight=weight):
                points.write_text(text)
                weights.write_text(weight)
                self.refused(f"--simpoints={points},{weights}", words=words)
        self.refused(f"--simpoints={self.folder}/none", words=["none.weights"])

    def test_options_that_do_not_fit(self):
        fits = self.points((1, 1))
        self.refused(fits, "--from-instruction=5", words=["--from-instruction"])
        self.refused(fits, "--toggle=main", words=["--toggle"])
        self.refused(fits, "--trace-children=yes", words=["--trace-children"])
        self.refused(fits, "--warm-up=10", words=["--warm-up", "at least 1000"])
        self.refused("--warm-up=10k", words=["is for --simpoints"])
        self.record(PHASED, self.points((1, 0.5), (6, 0.5)))
        for words in (["--plugin=bbv"], ["--plugin=cache", "--threads"],
                      ["--plugin=cache", "--types"], ["--plugin=cache", "--contexts"],
                      ["--plugin=struct_layout"],
                      ["--plugin=cache", "--weights=maybe"]):
            errors = self.assay("replay", *words, "-o", "/dev/null", self.trace, status=125)
            self.assertEqual(errors.count("\n"), 1, errors)

    def test_reports_of_one_interval(self):
        self.record(PHASED, self.points((1, 0.5), (6, 0.5)))
        errors = self.assay("replay", "--plugin=used_bytes", f"--usage-report={self.folder}/r",
                            "-o", "/dev/null", self.trace, status=125)
        self.assertIn("2 simulation points", errors)


class Incomplete(Case):
    def test_intervals_behind_the_end(self):
        errors = self.record(PHASED, self.points((1, 0.5), (100, 0.5)))
        self.assertIn("interval 100", errors)
        self.assertIn("1 of 2 intervals are recorded", errors)
        events = self.replay()
        self.assertEqual(totals(events)["Ir"], totals(self.run_of(PHASED))["Ir"])
        self.assertTrue(any("1 of 2 simulation points" in line for line in events.remarks))
        self.record(PHASED, self.points((100, 1)))
        errors = self.assay("replay", "--plugin=cache", "-o", "/dev/null", self.trace, status=125)
        self.assertIn("no complete simulation point", errors)

    def test_a_program_that_is_killed(self):
        """What it did until then; also where assay is killed with it."""
        loop = ["sh", "-c", "while :; do :; done"]
        self.assay("record", "-q", "-o", self.trace, self.points((1, 1)), "--interval-size=100k",
                   "--timeout=4", "--", *loop, status=124)
        events = self.replay()
        self.assertTrue(any("incomplete" in line for line in events.remarks))
        self.assertGreater(totals(events)["Ir"], 200_000)
        with subprocess.Popen([ASSAY, "record", "-q", "-o", self.trace, self.points((1, 1)),
                               "--interval-size=100k", "--", *loop]) as run:
            for _ in range(600):
                time.sleep(0.1)
                if self.trace.exists() and self.trace.stat().st_size > 10_000:
                    break
            run.send_signal(signal.SIGKILL)
        errors = support.run([ASSAY, "replay", "-q", "--plugin=cache", "-o",
                              self.folder / "events", self.trace])
        self.assertIn(errors.returncode, (0, 125), errors.stderr)
        self.assertTrue(any("incomplete" in line
                            for line in read_events(self.folder / "events").remarks))

    def test_damage_is_one_line(self):
        self.record(PHASED, self.points((1, 0.25), (6, 0.75)))
        counts = self.replay().functions
        whole = self.trace.read_bytes()
        broken = self.folder / "broken"
        for at in range(20, len(whole), len(whole) // 40):
            with self.subTest(at=at):
                damaged = bytearray(whole)
                damaged[at] ^= 0x10
                broken.write_bytes(damaged)
                result = support.run([ASSAY, "replay", "-q", "--plugin=cache", "-o",
                                      self.folder / "events", broken])
                if result.returncode == 0:  # behind the last point
                    self.assertEqual(read_events(self.folder / "events").functions, counts)
                    continue
                self.assertEqual(result.returncode, 125)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(str(broken), result.stderr)
        for cut in (10, 100, len(whole) // 2, len(whole) - 1):
            with self.subTest(cut=cut):
                broken.write_bytes(whole[:cut])
                result = support.run([ASSAY, "replay", "-q", "--plugin=cache", "-o", "/dev/null",
                                      broken])
                self.assertEqual(result.returncode, 125)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
