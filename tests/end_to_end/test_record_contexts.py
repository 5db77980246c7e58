#!/usr/bin/env python3
"""Calling contexts of a trace: what a replay counts by context is what a run counts."""

import shutil
import unittest

from recording_case import QUERY, RecordingCase, text_of
from support import PROGRAMS

# Of the first, misses say in which contexts they are; the others follow calls.
PROFILERS = [
    ["--plugin=cache", "--contexts"],
    ["--plugin=branch", "--contexts"],
    ["--plugin=cache,branch,opcode_mix", "--contexts"],
]
LEVEL = "--cpu=x86-64-v2"  # there is no vDSO, which executes more or less as time goes by


class RecordedContexts(RecordingCase):
    def contexts(self):
        """How many the events file that was compared last has."""
        return (self.folder / "again").read_text().count("#! stack ")

    def test_programs_without_libc(self):
        """Recursion, repeated strings, locked instructions, references across lines."""
        for name in ("callers", "recursion", "repeat", "atomics", "straddle", "matrix"):
            self.compare([PROGRAMS / name], PROFILERS, extra=["--dump-instr=yes"])
            self.assertGreater(self.contexts(), 2, name)

    def test_recursion(self):
        """As many entries as are kept."""
        for kept in ("1", "3", "all"):
            self.compare([PROGRAMS / "calling", "recursion"],
                         [[*words, f"--recursion={kept}"] for words in PROFILERS[:2]])

    def test_handlers_of_signals(self):
        """Also of faults, which end blocks early, and on stacks of their own."""
        for case in ("raised", "nested", "siginfo", "fault_and_retry", "debug_trap"):
            self.compare([PROGRAMS / "signals", case], PROFILERS[:2], LEVEL)
        self.compare([PROGRAMS / "thread_signals", "faults_in_loops"], PROFILERS[:2], LEVEL,
                     "--schedule=fair:10000")
        for case in ("signals", "alternate_stack"):
            self.compare([PROGRAMS / "calling", case], PROFILERS[:2], LEVEL)
            self.assertIn(" interrupted=", (self.folder / "again").read_text())

    def test_frames_that_are_left(self):
        """By longjmp, exceptions, and for another stack."""
        for case in ("long_jump", "coroutines", "switches", "children"):
            self.compare([PROGRAMS / "calling", case], PROFILERS[:2], LEVEL)
        self.compare([PROGRAMS / "caught"], PROFILERS[:2], LEVEL)

    def test_threads_in_turns(self):
        self.compare([PROGRAMS / "threads"], [*PROFILERS, [*PROFILERS[0], "--threads"]],
                     "--schedule=fair:10000")

    def test_real_programs(self):
        script = self.folder / "q.sql"
        script.write_text(QUERY)
        for program in (["sqlite3", ":memory:", f".read {script}"],
                        ["bzip2", "-c", "-k", str(PROGRAMS / "work")]):
            if shutil.which(program[0]):
                self.compare(program, PROFILERS[:2], LEVEL)

    def test_processes(self):
        """Of several images, each has its own."""
        program = ["sh", "-c", "ls /usr > /dev/null; exec true"]
        trace = self.record(program, LEVEL)
        self.assay("-q", *PROFILERS[0], LEVEL, "-o", self.folder / "live.%n.%p", "--", *program)
        self.assay("replay", "-q", *PROFILERS[0], "-o", self.folder / "again.%n.%p", trace)
        wanted = self.texts_of_processes("live")
        self.assertEqual(len(wanted), 2)
        self.assertEqual(wanted, self.texts_of_processes("again"))

    def test_a_sweep(self):
        """Points with other first levels have segments of their own, with the same nodes."""
        trace = self.record([PROGRAMS / "work"], LEVEL)
        folder = self.folder / "sweep"
        sizes = ("16K,8,64", "32K,8,64", "64K,8,64")
        self.assay("sweep", "-q", "--plugin=cache", "--contexts", "--D1=" + ";".join(sizes),
                   "-o", folder, trace)
        for point, size in enumerate(sizes, 1):
            self.assay("replay", "-q", *PROFILERS[0], f"--D1={size}", "-o", self.folder / "again",
                       trace)
            self.assertEqual(text_of(folder / "points" / str(point) / "assay.out"),
                             text_of(self.folder / "again"))
            self.assertGreater(self.contexts(), 10)

    def test_what_has_none(self):
        """Where calls were not recorded."""
        trace = self.record([PROGRAMS / "work"], "--capture=references")
        errors = self.assay("replay", *PROFILERS[0], "-o", "/dev/null", trace, status=125)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertRegex(errors, "calls.*--capture=")


if __name__ == "__main__":
    unittest.main()
