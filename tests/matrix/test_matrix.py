#!/usr/bin/env python3
"""The matrix notices what is wrong."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("matrix", "compat", "end_to_end")]

import support  # noqa: E402
from case import Case  # noqa: E402
from events_file import read_profile  # noqa: E402
from execution import Outcome  # noqa: E402
from judge import Reference, Run  # noqa: E402
from reading import FORMATS, Reader, read_all  # noqa: E402
from settings import REFERENCE, Setting, Variant  # noqa: E402
from support import ASSAY, PLUGINS, profile  # noqa: E402

CASE = Case("true", ("true",), compared=("stdout", "files"))
TEXT = "events: Ir Dr\nfl=#! event Ir unit=u profiler=cache\nfn=f\n1 40 2\nsummary: 40 2\n"
WROTE = "assay: wrote /x/events.7; read it with: assay summary /x/events.7\n"


def outcome(status=0, stdout="out\n", stderr=""):
    return Outcome(status, stdout.encode(), stderr.encode(), {}, 0, 1.0)


class Judging(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        (self.folder / "events.7").write_text(TEXT)

    def problems(self, under=None, setting=REFERENCE, reference=None, sample=""):
        run = Run(CASE, setting, Variant(sample=sample), self.folder)
        found, profiles = run.judge(outcome(), under or outcome())
        return " ".join(found + run.compare(profiles, reference or Reference()))

    def test_nothing_is_wrong(self):
        self.assertEqual(self.problems(outcome(stderr=f"==7==\n==7== I refs: 40\n{WROTE}")), "")

    def test_behaviour(self):
        self.assertIn("status 1, not 0", self.problems(outcome(status=1)))
        self.assertIn("stdout differs", self.problems(outcome(stdout="out\nmore\n")))
        self.assertIn("stderr has other lines", self.problems(outcome(stderr="oops\n")))

    def test_words_of_assay(self):
        lost = "assay: the profiler cache is lost, and its columns with it: its process crashed"
        self.assertIn(lost, self.problems(outcome(stderr=lost + "\n")))
        run = Reference(1, 40)
        short = "assay: no burst of --sample was reached in {} instructions: make its second ...\n"
        for number, sample, said in ((7, "", True), (7, "1/100", False),
                                     (9_000_000, "1/100", True)):
            text = self.problems(outcome(stderr=short.format(number)), sample=sample, reference=run)
            self.assertEqual("no burst" in text, said, text)

    def test_files(self):
        path = self.folder / "events.7"
        for text, problem in ((TEXT.replace("summary", "fn"), "no line \"summary:\""),
                              (TEXT.replace("40 2\n", "40\n"), "totals of 1 events"),
                              ("", "is empty"),
                              (TEXT + "fl=#! incomplete it was killed\n", "is incomplete: it was")):
            with self.subTest(problem):
                path.write_text(text)
                self.assertIn(problem, self.problems())
        path.unlink()
        self.assertIn("0 events files", self.problems())

    def test_totals(self):
        more = Reference(1, 41)
        self.assertIn("Ir 40, not 41", self.problems(reference=more))
        self.assertIn("1 events files, not 2", self.problems(reference=Reference(2, 40)))
        same = Reference(1, 40)
        setting = Setting({"cache": "", "branch": ""})
        self.assertEqual(self.problems(reference=same, setting=setting), "")
        (self.folder / "events.7").write_text(TEXT.replace("40 2\n", "40 3\n"))
        setting = Setting({"cache": "", "classic": ""})
        self.assertIn("Dr 3, not 2", self.problems(reference=same, setting=setting))


class Reading(unittest.TestCase):
    """With an assay of which one command does something else."""

    @classmethod
    def setUpClass(cls):
        cls.folder = support.temporary_folder_of_class(cls)
        out = cls.folder / "events.7"
        result = profile(["true"], "--dump-instr=yes", "-q", plugin="cache", out=out)
        assert result.returncode == 0, result.stderr
        cls.profile = read_profile(out)

    def broken(self, command, script):
        path = self.folder / "assay"
        path.write_text(f'#!/bin/sh\n[ "$1" = {command} ] || exec {ASSAY} "$@"\n{script}\n')
        path.chmod(0o755)
        return path

    def test_nothing_is_wrong(self):
        self.assertEqual(read_all(ASSAY, [self.profile], True, []), [])

    def test_commands(self):
        for command in ("annotate", "list", "report", "merge", "diff", "export"):
            for script, problem in (("exit 3", "status 3"), ("echo oops >&2", "oops"),
                                    ("", "")):
                with self.subTest(command, script=script):
                    assay = self.broken(command, script)
                    found = read_all(assay, [self.profile], True, [])
                    wanted = len(FORMATS) if command == "export" else 1
                    self.assertGreaterEqual(len(found), wanted, found)
                    self.assertIn(problem, found[0])

    def test_other_totals(self):
        """Everything is counted twice."""
        reader = Reader(self.broken("export", f'{ASSAY} "$@" {self.profile.path}'),
                        self.folder / "made")
        for form in FORMATS:
            if form != "pprof":  # of which only that it is there is looked at
                with self.subTest(form):
                    self.assertIn(", not ", reader.problem(getattr(reader, form), self.profile))

    def test_a_file_that_differs_from_itself(self):
        other = self.folder / "other"
        subprocess.run([ASSAY, "merge", "-o", other, *2 * [self.profile.path]], check=True)
        reader = Reader(self.broken("diff", f'{ASSAY} diff --json "$4" {other}'), other)
        self.assertIn("than itself", reader.problem(reader.diff, self.profile))

    def test_instructions_that_should_not_be_there(self):
        self.assertIn("not listed", " ".join(read_all(ASSAY, [self.profile], False, [])))


class Command(unittest.TestCase):
    def test_a_profiler_that_crashes(self):
        assay = support.temporary_folder(self) / "assay"
        assay.write_text(f'#!/bin/sh\nASSAY_CRASH_IN=vp_finish exec {ASSAY} "$@"\n')
        assay.chmod(0o755)
        result = support.run([TESTS / "matrix" / "run", f"--assay={assay}", "--only=true",
                              f"--setting=--plugin=cache,{PLUGINS / 'crash.so'}"])
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("2 of 3 cells are right", result.stdout)
        self.assertRegex(result.stdout, r"wrong: .*crash.so.*: assay: the profiler crash is lost")


if __name__ == "__main__":
    unittest.main()
