#!/usr/bin/env python3
"""The level-1 caches that the program's own threads simulate beside those that the cache profiler
simulates from records."""

import re
import subprocess
import unittest

import support
from support import PLUGINS, PROGRAMS, read_events

SHAPES = (
    (),
    ("--I1=32768,8,64", "--D1=49152,12,64"),
    ("--I1=256,1,64", "--D1=64,1,64"),
    ("--I1=1024,16,64", "--D1=4096,64,64"),  # one set
    ("--I1=512,2,16", "--D1=1024,4,16", "--LL=65536,8,16"),
    ("--I1=12288,3,64", "--D1=20480,5,64"),
)
COUNTED = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
# The vDSO reads the time anew if the kernel sets it meanwhile. Its inner functions have no symbols.
OF_THE_CLOCK = re.compile(r"(__vdso_)?(clock_gettime|gettimeofday|time)|\[vdso\]\+0x[0-9a-f]+")
DRIVER = support.BUILD / "framework/driver/native/assay-driver-native"


class FirstLevel(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def counts(self, program, plugin, *options):
        """By function, of what is counted."""
        out = self.folder / "out"
        ran = support.profile(program, *options, plugin=plugin, out=out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        events = read_events(out)
        columns = [events.events.index(name) for name in COUNTED if name in events.events]
        return {function: [counts[column] for column in columns]
                for function, counts in events.functions.items()
                if not OF_THE_CLOCK.fullmatch(function)}

    def check(self, program, *options):
        with self.subTest(program=program[0], options=options):
            alone = self.counts(program, "cache", *options)
            from_records = self.counts(program, "cache", "--level1=profiler", *options)
            for count in range(len(next(iter(alone.values())))):
                self.assertGreater(sum(counts[count] for counts in alone.values()), 0)
            self.assertEqual(alone, from_records)

    def test_beside_a_profiler_that_wants_all_references(self):
        program = [PROGRAMS / "work"]
        beside = self.counts(program, "cache,effective_address")
        for function, counts in self.counts(program, "cache").items():
            self.assertEqual(beside[function], counts, function)

    def test_sampled(self):
        self.check([PROGRAMS / "work"], "--sample=2k/10k")

    def test_shapes(self):
        for shape in SHAPES:
            self.check([PROGRAMS / "work"], *shape)

    def test_programs(self):
        """References of vectors, across lines, of series, of strings; code that is large."""
        text = str(self.folder / "text")
        with open(text, "w", encoding="ascii") as file:
            file.writelines(f"{i * 7919 % 1000} line {i}\n" for i in range(3000))
        for program in (["ls", "-l", "/usr/lib"], ["sort", text], ["gzip", "-c", text],
                        ["bc", "--version"]):
            if not support.installed(program[0]):
                continue
            self.check(program)
            self.check(program, "--I1=1024,2,32", "--D1=2048,2,64")

    def test_freestanding_programs(self):
        for name in ("repeat", "straddle", "series", "unusual", "sse", "mixed", "modify",
                     "branches", "recursion", "scattered", "switch"):
            self.check([PROGRAMS / name], "--D1=128,1,64", "--I1=64,1,16")

    def test_stress(self):
        """Rare things happen often: code leaves between any two blocks, and is forgotten."""
        plain = self.counts([PROGRAMS / "work"], "cache")
        self.assertEqual(self.counts([PROGRAMS / "work"], "cache", "--stress=yes"), plain)
        self.check([PROGRAMS / "work"], "--stress=yes", "--I1=256,2,32", "--D1=512,2,64")

    def test_signals(self):
        for case in ("fault_and_retry", "no_defer", "jump_from_handler"):
            self.check([PROGRAMS / "signals", case], "--I1=512,2,32", "--D1=1024,2,64")

    def test_threads(self):
        """How they wait for one another differs, but not what each of them computes."""
        program, function = [PROGRAMS / "threads", "atomic_counter"], "add_atomically"
        counts = [self.counts(program, "cache", f"--level1={where}")[function]
                  for where in ("program", "profiler")]
        self.assertGreater(counts[0][0], 100_000)
        for name, program_count, profiler_count in zip(COUNTED, *counts):
            if not name.startswith(("IL", "DL")):
                self.assertEqual(program_count, profiler_count, name)

    def test_children(self):
        """Each begins with empty caches."""
        program = ["xargs", "-a", "/dev/null", "ls", "/"]
        summaries = []
        for where in ("program", "profiler"):
            folder = self.folder / where
            folder.mkdir()
            ran = support.profile(program, f"--level1={where}", "--cpu=x86-64-v2",
                                  out=folder / "%p")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            summaries.append(sorted(read_events(file).summary for file in folder.iterdir()
                                    if not file.name.startswith("index.")))
        self.assertEqual(len(summaries[0]), 3)
        self.assertEqual(*summaries)

    def test_what_translated_code_calls_changes_no_vector(self):
        """And calls nothing that might: vectors are the program's there."""
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", "assay_in_translated_code",
                               DRIVER],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
        functions = set(re.findall(r"<([^>]+)>:$", code, re.MULTILINE))
        self.assertIn("assay_first_level_fetch", functions)
        self.assertEqual(re.findall(r"%(?:[xyz]?mm|st)\d*", code), [])
        for called in re.findall(r"\bcall\s+\w+ <([^>+]+)", code):
            self.assertIn(called, functions)
        self.assertNotIn("call   *", code)


if __name__ == "__main__":
    unittest.main()
