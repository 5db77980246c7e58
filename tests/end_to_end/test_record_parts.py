#!/usr/bin/env python3
"""A part of a recording that has everything: a replay says the same as a run of that part."""

import re
import unittest

from recording_case import MAIN_PROFILERS, RecordingCase, text_of
from support import ASSAY, PROGRAMS, read_events, run

MORE_PROFILERS = [
    ["--plugin=cache,branch,opcode_mix"],
    ["--plugin=cache", "--branch-sim=yes", "--dump-instr=yes"],
    ["--plugin=reuse"],
    ["--plugin=syscalls"],
    ["--plugin=struct_layout"],
]
OFTEN = ["--sample=2k/20k", "--warm-up=4k"]


class Ranges(RecordingCase):
    def test_each_profiler(self):
        self.compare([PROGRAMS / "work"], MAIN_PROFILERS + MORE_PROFILERS,
                     extra=["--from-instruction=100k", "--to-instruction=200k"])

    def test_each_bound(self):
        for bounds in (["--from-instruction=50001"], ["--to-instruction=70k"],
                       ["--from-instruction=1G"]):
            self.compare([PROGRAMS / "work"], MAIN_PROFILERS[:3], extra=bounds)

    def test_boundaries_anywhere(self):
        """In blocks that string instructions and locked ones divide for some profilers, and in those
        that faults end."""
        profilers = [MAIN_PROFILERS[0], MAIN_PROFILERS[1], ["--plugin=branch", "--contexts"]]
        for name in ("repeat", "atomics", "straddle"):
            for first in range(100, 140, 5):
                self.compare([PROGRAMS / name], profilers,
                             extra=[f"--from-instruction={first}", f"--to-instruction={first + 700}"])

    def test_threads_and_types(self):
        self.compare([PROGRAMS / "callers"], [["--plugin=cache", "--threads", "--types"]],
                     extra=["--from-instruction=2000", "--to-instruction=9000"])

    def test_contexts(self):
        """Contexts begin in the range. Their order depends on the numbers of blocks."""
        bounds = ["--from-instruction=2000", "--to-instruction=9000"]
        trace = self.record([PROGRAMS / "callers"])
        for words in (["--plugin=cache"], ["--plugin=branch"], ["--plugin=cache", "--recursion=all"]):
            live, again = self.folder / "live", self.folder / "again"
            words = ["-q", *words, "--contexts", *bounds]
            self.assay(*words, "-o", live, "--", PROGRAMS / "callers")
            self.assay("replay", *words, "-o", again, trace)
            paths = [sorted(run([ASSAY, "export", "--format=folded", out]).stdout.splitlines())
                     for out in (live, again)]
            self.assertGreater(len(paths[0]), 4)
            self.assertEqual(*paths)

    def test_signals(self):
        for case in ("raised", "nested", "siginfo"):
            self.compare([PROGRAMS / "signals", case], MAIN_PROFILERS[:2], "--cpu=x86-64-v2",
                         extra=["--from-instruction=100k", "--to-instruction=120k"])

    def test_threads(self):
        """The other threads are captured while the first one is in the range."""
        for program, profilers in (([PROGRAMS / "threads"], MAIN_PROFILERS),
                                   ([PROGRAMS / "phases", "threads"], MAIN_PROFILERS[:2])):
            self.compare(program, profilers, "--schedule=fair:1000",
                         extra=["--from-instruction=100k", "--to-instruction=130k"])

    def test_parts_add_up(self):
        trace = self.record([PROGRAMS / "work_static"])
        def instructions(*options):
            self.assay("replay", "-q", "--plugin=opcode_mix", *options, "-o", self.folder / "part",
                       trace)
            return read_events(self.folder / "part").totals()[0]
        whole = instructions()
        parts = [instructions("--to-instruction=1M"),
                 instructions("--from-instruction=1000001", "--to-instruction=2M"),
                 instructions("--from-instruction=2000001")]
        self.assertEqual(sum(parts), whole)
        self.assertAlmostEqual(parts[1], 1000000, delta=64)


class Samples(RecordingCase):
    def test_each_profiler(self):
        self.compare([PROGRAMS / "work"], MAIN_PROFILERS + MORE_PROFILERS[:-1], extra=OFTEN)

    def test_each_sample(self):
        for sample in (["--sample=2k/20k"], ["--sample=3k/50k", "--warm-up=0"],
                       ["--sample=2k/20k", "--warm-up=18k"]):
            self.compare([PROGRAMS / "work"], MAIN_PROFILERS[:3], extra=sample)

    def test_instructions_of_all_kinds(self):
        without_vectors = [words for words in MAIN_PROFILERS if "bbv" not in words[0]]
        for name in ("repeat", "atomics", "straddle", "callers", "matrix"):
            for sample in (OFTEN, ["--sample=1k/3k", "--warm-up=0"]):
                self.compare([PROGRAMS / name], without_vectors, extra=sample)

    def test_bursts_lie_as_in_a_sampled_recording(self):
        program = ["sh", "-c", "ls /usr > /dev/null"]
        whole = self.record(program, "--cpu=x86-64-v2").rename(self.folder / "whole")
        sampled = self.record(program, "--cpu=x86-64-v2", *OFTEN)
        for words in MAIN_PROFILERS[:2]:
            self.assay("replay", "-q", *words, *OFTEN, "-o", self.folder / "whole.%n", whole)
            self.assay("replay", "-q", *words, "-o", self.folder / "sampled.%n", sampled)
            texts = [sorted(text_of(file) for file in self.folder.glob(f"{kind}.*"))
                     for kind in ("whole", "sampled")]
            self.assertEqual(*texts)

    def test_threads_in_turns(self):
        self.compare([PROGRAMS / "threads"], MAIN_PROFILERS, "--schedule=fair:10000", extra=OFTEN)
        self.compare([PROGRAMS / "phases", "threads"], MAIN_PROFILERS[:2], "--schedule=fair:10000",
                     extra=OFTEN)

    def test_estimates_say_so(self):
        trace = self.record([PROGRAMS / "phases"])
        self.assay("replay", "-q", "--plugin=cache", *OFTEN, "-o", self.folder / "out", trace)
        self.assertRegex((self.folder / "out").read_text(),
                         "desc: Sampled: 2,000 of every 20,000 instructions of each thread, in "
                         r"[\d,]+ bursts, after 4,000 to warm up")


class Refusals(RecordingCase):
    def refused(self, trace, *options):
        result = run([ASSAY, "replay", "--plugin=cache", "-o", self.folder / "none", *options, trace])
        self.assertEqual(result.returncode, 125)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        return result.stderr

    def test_a_trace_of_bursts(self):
        trace = self.record([PROGRAMS / "work"], *OFTEN)
        for option in ("--sample=1/100", "--from-instruction=100", "--to-instruction=100"):
            name = re.match("--[a-z-]+", option)[0]
            self.assertIn(f"has only a part of the run, but {name} needs all of it",
                          self.refused(trace, option))

    def test_options_that_exclude_each_other(self):
        trace = self.record([PROGRAMS / "work"])
        self.assertIn("--sample cannot be combined with --from-instruction",
                      self.refused(trace, "--sample=1/100", "--from-instruction=5"))
        self.assertIn("--warm-up", self.refused(trace, "--warm-up=5"))
        self.assertIn("--toggle", self.refused(trace, "--toggle=main"))


if __name__ == "__main__":
    unittest.main()
