#!/usr/bin/env python3
"""Recordings of bursts: a replay says the same as a run that is sampled alike."""

import csv
import json
import re
import shutil
import unittest

from recording_case import MAIN_PROFILERS, QUERY, RecordingCase, text_of
from support import ASSAY, PROGRAMS, read_events, run

OFTEN = ["--sample=2k/20k", "--warm-up=4k"]
MORE_PROFILERS = [
    ["--plugin=cache,branch,opcode_mix"],
    ["--plugin=cache", "--branch-sim=yes", "--dump-instr=yes"],
    ["--plugin=reuse"],
    ["--plugin=prefetch"],
    ["--plugin=working_set", "--interval-size=100k"],
    ["--plugin=syscalls"],
]


class Sampled(RecordingCase):
    def sampled(self, words):
        return next(line for line in words.splitlines() if line.startswith("desc: Sampled"))

    def test_a_small_program_with_every_profiler(self):
        self.compare([PROGRAMS / "work"], MAIN_PROFILERS + MORE_PROFILERS, *OFTEN)
        said = self.sampled((self.folder / "again").read_text())
        self.assertIn("2,000 of every 20,000 instructions of each thread", said)
        self.assertIn("after 4,000 to warm up", said)

    def test_warm_ups(self):
        """None, one that leaves nothing between bursts, and those that profilers ask for."""
        program = [PROGRAMS / "work"]
        self.compare(program, MAIN_PROFILERS[:3], "--sample=3k/50k", "--warm-up=0")
        self.compare(program, MAIN_PROFILERS[:3], "--sample=2k/20k", "--warm-up=18k")
        for words in ([*MAIN_PROFILERS[0], "--I1=4096,1,64", "--D1=4096,1,64"], MAIN_PROFILERS[1]):
            live, again = self.folder / "live", self.folder / "again"
            self.assay("-q", *words, "--sample=2k/200k", "-o", live, "--", *program)
            wanted = re.search(r"after ([\d,]+) to warm up", live.read_text())
            trace = self.record(program, "--sample=2k/200k",
                                f"--warm-up={wanted[1].replace(',', '') if wanted else 0}")
            self.assay("replay", "-q", *words, "-o", again, trace)
            self.assertEqual(text_of(live), text_of(again))

    def test_instructions_of_all_kinds(self):
        """Repeated strings and locked instructions, which end blocks for some profilers only."""
        for name in ("repeat", "atomics", "straddle", "callers", "matrix"):
            for sample in (OFTEN, ["--sample=1k/3k", "--warm-up=0"]):
                self.compare([PROGRAMS / name],
                             [words for words in MAIN_PROFILERS if "bbv" not in words[0]], *sample)

    def test_signals(self):
        for case in ("raised", "nested", "siginfo"):
            self.compare([PROGRAMS / "signals", case], [MAIN_PROFILERS[i] for i in (0, 1, 3, 4)],
                         "--sample=1k/5k", "--warm-up=1k", "--cpu=x86-64-v2")

    def test_real_programs(self):
        script = self.folder / "q.sql"
        script.write_text(QUERY)
        for program in (["sqlite3", ":memory:", f".read {script}"],
                        ["bzip2", "-c", "-k", str(PROGRAMS / "work")]):
            if shutil.which(program[0]):
                self.compare(program, MAIN_PROFILERS, "--sample=5k/50k", "--warm-up=10k",
                             "--cpu=x86-64-v2")

    def test_threads_in_turns(self):
        self.compare([PROGRAMS / "threads"], MAIN_PROFILERS, *OFTEN, "--schedule=fair:10000")
        self.compare([PROGRAMS / "phases", "threads"], MAIN_PROFILERS[:2], *OFTEN,
                     "--schedule=fair:1000")

    def test_a_part_of_the_program(self):
        self.compare([PROGRAMS / "phases"], MAIN_PROFILERS[:2], *OFTEN, "--toggle=walk")

    def test_processes(self):
        program = ["sh", "-c", "ls /usr > /dev/null; true | cat; exec true"]
        options = ["--sample=1k/5k", "--warm-up=2k", "--cpu=x86-64-v2"]
        trace = self.record(program, *options)
        for words in MAIN_PROFILERS[:2]:
            live, again = (f"{name}.{words[0][9:]}" for name in ("live", "again"))
            self.assay("-q", *words, *options, "-o", self.folder / f"{live}.%n.%p", "--", *program)
            self.assay("replay", "-q", *words, "-o", self.folder / f"{again}.%n.%p", trace)
            wanted = self.texts_of_processes(live)
            self.assertGreaterEqual(len(wanted), 3)
            self.assertEqual(wanted, self.texts_of_processes(again))

    def test_a_trace_is_as_much_smaller_as_less_is_recorded(self):
        program = ["bzip2", "-c", "-k", str(ASSAY.parent / "build.ninja")]
        if not shutil.which(program[0]):
            self.skipTest("no bzip2")
        whole = self.record(program).stat().st_size
        part = self.record(program, "--sample=40k/400k", "--warm-up=10k").stat().st_size
        self.assertLess(part, 0.25 * whole)

    def test_estimates(self):
        """Whoever wants more to warm up than was recorded, is told so in one line."""
        program, out = [PROGRAMS / "phases"], self.folder / "out"
        self.assay("-q", "--plugin=cache", "-o", out, "--", *program)
        exact = dict(zip(read_events(out).events, read_events(out).summary))
        trace = self.record(program, "--sample=5k/50k", "--warm-up=5k")
        errors = self.assay("replay", "--plugin=cache", "--D1=32768,8,64", "--I1=32768,8,64",
                            "-o", out, trace)
        told = [line for line in errors.splitlines() if "to warm up before each burst" in line]
        self.assertEqual(len(told), 1, errors)
        self.assertIn("--warm-up=20480", told[0])
        estimate = dict(zip(read_events(out).events, read_events(out).summary))
        self.assertEqual(estimate["Ir"], exact["Ir"])
        for event in ("Dr", "Dw"):
            self.assertLess(abs(estimate[event] - exact[event]), 0.05 * exact[event], event)

    def test_a_listing(self):
        """Where bursts begin and end, and the numbers of instructions as they are in the program."""
        program = [PROGRAMS / "work"]
        trace = self.record(program, "--sample=2k/20k", "--warm-up=3k", "--trace-children=no")
        rows = list(csv.DictReader(run([ASSAY, "trace", "--kind=burst,block", "--thread=1",
                                        "--format=csv", trace]).stdout.splitlines()))
        parts, at = [], {}
        for row in rows:
            number = int(row["instruction"])
            if row["kind"] != "block":
                parts.append((row["kind"], number))
            elif parts:
                at.setdefault(len(parts), number)
        self.assertEqual({kind for kind, _ in parts} - {"end"}, {"warm-up", "burst", "rest"})
        bursts = 0
        for i in range(0, len(parts) - 3, 3):
            (first, begin), (second, burst), (third, end) = parts[i:i + 3]
            self.assertEqual((first, second, third), ("warm-up", "burst", "rest"))
            self.assertLess(abs(burst - begin - 3000), 300)  # of the plain version's units
            self.assertLess(abs(end - burst - 2000), 70)
            self.assertEqual(at[i + 1], begin)
            bursts += 1
        self.assay("-q", "--plugin=cache", "-o", self.folder / "out", "--", *program)
        whole = read_events(self.folder / "out").summary[0]
        self.assertLess(abs(bursts - whole / 20_000), 2)
        self.assertLess(abs(parts[-1][1] - whole), 40_000)
        bursts = [kind for kind, _ in parts].count("burst")
        summary = run([ASSAY, "trace", "--summary", trace]).stdout
        self.assertRegex(summary, rf"bursts +{bursts:,}  of 2,000 in every 20,000 instructions, "
                                  "after 3,000")
        for line in run([ASSAY, "trace", "--format=json", "--to-instruction=30000",
                         trace]).stdout.splitlines():
            json.loads(line)
        region = list(csv.DictReader(run([
            ASSAY, "trace", "--kind=block", "--format=csv", "--from-instruction=100000",
            "--to-instruction=200000", "--thread=1", trace]).stdout.splitlines()))
        inside = [row for row in rows if row["kind"] == "block" and
                  100_000 <= int(row["instruction"]) <= 200_000]
        self.assertGreater(len(inside), 100)
        self.assertLessEqual(abs(len(region) - len(inside)), 1)

    def test_a_program_that_is_killed(self):
        trace = self.folder / "trace"
        self.assay("record", "-q", "-o", trace, "--sample=10k/100k", "--timeout=2", "--", "sh",
                   "-c", "while :; do :; done", status=124)
        self.assay("replay", "-q", "--plugin=cache,branch", "-o", self.folder / "again", trace)
        text = (self.folder / "again").read_text()
        self.assertIn("incomplete", text)
        self.assertIn("10,000 of every 100,000", text)

    def test_a_program_without_any_burst(self):
        trace = self.folder / "trace"
        errors = self.assay("record", "-o", trace, "--sample=1k/100G", "--", "true")
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("no burst of --sample was reached", errors)
        self.assay("replay", "-q", "--plugin=cache", "-o", self.folder / "again", trace)
        self.assertIn("incomplete no burst of --sample", (self.folder / "again").read_text())

    def test_refusals(self):
        trace = self.record([PROGRAMS / "work"], *OFTEN)
        for words, said in (
                (["--plugin=cache", "--contexts"], "--contexts"),
                (["--plugin=cache", "--threads"], "--threads"),
                (["--plugin=struct_layout"], "cannot be combined with --sample"),
                (["--plugin=classic"], "--capture=default,values=loads"),
                (["--plugin=bbv", "--interval-size=30k"], "too short for --sample"),
                (["--plugin=cache", "--sample=1/100"], "has only a part of the run"),
                (["--plugin=cache", "--warm-up=1k"], "--sample")):
            errors = self.assay("replay", *words, "-o", "/dev/null", trace, status=125)
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertIn(said, errors)
        points = self.folder / "points"
        points.write_text("1 0\n")
        (self.folder / "weights").write_text("1 0\n")
        simpoints = f"--simpoints={points},{self.folder / 'weights'}"
        for words, said in (
                ([simpoints, "--sample=1/100"], "--simpoints cannot be combined with --sample"),
                (["--from-instruction=5", "--sample=1/100"], "--from-instruction"),
                (["--sample=2k/20k", "--warm-up=19k"], "at most 18000"),
                (["--warm-up=1k"], "or for --sample"),
                (["--sample=1k"], "two numbers of instructions"),
                (["--sample=2k/20k", "--warm-up=some"], "a whole number of instructions")):
            errors = self.assay("record", "-o", self.folder / "none", *words, "--", "true",
                                status=125)
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertIn(said, errors)
        self.assertIn("is for --sample", self.assay("--plugin=cache", "--warm-up=1k", "--", "true",
                                                    status=125))

    def test_damage_is_one_line(self):
        whole = self.record([PROGRAMS / "work"], *OFTEN).read_bytes()
        broken, out = self.folder / "broken", self.folder / "out"
        for at in range(20, len(whole), len(whole) // 15):
            with self.subTest(at=at):
                damaged = bytearray(whole)
                damaged[at] ^= 0x10
                broken.write_bytes(damaged)
                result = run([ASSAY, "replay", "-q", "--plugin=branch", "-o", out, broken])
                if result.returncode == 0:
                    continue
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(str(broken), result.stderr)


if __name__ == "__main__":
    unittest.main()
