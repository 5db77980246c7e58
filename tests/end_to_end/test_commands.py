#!/usr/bin/env python3
"""What the commands that read files have in common: how options are written, standard input and
output, what is left behind when one is interrupted."""

import os
import signal
import subprocess
import unittest

import support
from support import ASSAY, ROOT, run

PROFILE = ROOT / "tests" / "unit" / "data" / "version-1.events"


class Options(unittest.TestCase):
    def refused(self, *words) -> str:
        result = run([ASSAY, *words])
        self.assertEqual((result.returncode, result.stdout),
                         (support.failure_status(words), ""), words)
        self.assertEqual(result.stderr.count("\n"), 1)
        return result.stderr

    def test_empty_values(self):
        for command, word in (("annotate", "--threshold="), ("annotate", "--show="),
                              ("annotate", "--show=,"), ("annotate", "--sort=Ir,"),
                              ("diff", "--mod-filename="), ("export", "--event="),
                              ("list", "--function=")):
            self.assertIn(f"{word}: ", self.refused(command, word, PROFILE))
        self.assertIn("--threshold=: the value is empty",
                      self.refused("annotate", "--threshold", "", PROFILE))
        self.assertIn("--include=: a value", self.refused("annotate", "-I", "", PROFILE))

    def test_misspelled_words(self):
        self.assertIn("did you mean annotate?", self.refused("anotate", PROFILE))
        self.assertIn("did you mean annotate?", self.refused("help", "anotate"))
        self.assertIn("did you mean --show?", self.refused("annotate", "--shwo=Ir", PROFILE))
        self.assertIn("did you mean cache?", self.refused("--plugin=cahce", "true"))
        self.assertIn("did you mean annotate?", self.refused("anotate"))

    def test_newest_profile_is_the_default(self):
        folder = support.temporary_folder(self)
        self.assertIn("no profile in this folder", run([ASSAY, "annotate"], cwd=folder).stderr)
        for age, name in enumerate(("not one", "new", "old")):
            path = folder / name
            path.write_bytes(PROFILE.read_bytes() if name != "not one" else b"text\n")
            os.utime(path, (10**9 - age, 10**9 - age))
        shown, named = (run([ASSAY, "annotate", *words], cwd=folder) for words in ([], ["new"]))
        self.assertEqual(shown.stderr, "assay: reading new, the newest profile of this folder\n")
        self.assertEqual((shown.returncode, shown.stdout), (0, named.stdout))
        self.assertEqual(run([ASSAY, "report", "-q"], cwd=folder).stderr, "")
        self.assertTrue((folder / "report.html").exists())

    def test_errors_do_not_change_the_terminal(self):
        path = support.temporary_folder(self) / "a\x1b[31m\nb"
        path.write_bytes(b"\x9b31mfoo\n")
        words = subprocess.run([ASSAY, "annotate", path], stderr=subprocess.PIPE,
                               check=False).stderr
        self.assertIn(rb"a\x1b[31m\x0ab:1: not an events file", words)
        self.assertIn(rb"(\x9b31mfoo)", words)
        self.assertTrue(words[:-1].isascii() and words[:-1].decode().isprintable(), words)

    def test_listings_do_not_change_the_terminal(self):
        path = support.temporary_folder(self) / "events"
        path.write_text("desc: a: b\ncmd: \x1b[31m\nevents: Ir\nfl=#! version 1\n"
                        "fl=#! object 0 /\x1b[31m\nfl=a\nfn=\x1b[31mf\n1 3\nfl=#! at 0:0x1 1 3\n"
                        "summary: 3\n")
        shown = run([ASSAY, "list", path])
        self.assertNotIn("\x1b", shown.stdout)
        self.assertIn(r"\x1b[31mf  (/\x1b[31m)", shown.stdout, shown.stderr)

    def test_event_named_twice_is_exported_once(self):
        once = run([ASSAY, "export", "--format=csv", "--event=Dr,Ir", PROFILE])
        twice = run([ASSAY, "export", "--format=csv", "--event=Dr,Ir,Dr", "--event=Ir", PROFILE])
        self.assertEqual((twice.returncode, twice.stdout), (0, once.stdout))

    def test_version(self):
        version = run([ASSAY, "--version"])
        self.assertEqual((version.returncode, version.stderr), (0, ""))
        for command in ("run", "annotate", "merge", "diff", "export", "list", "simpoint", "report",
                        "trace", "plugins", "check-plugin", "completion", "sweep"):
            self.assertEqual(run([ASSAY, command, "--version"]).stdout, version.stdout, command)

    def test_version_for_reports_of_bugs(self):
        report = run([ASSAY, "--version", "--verbose"])
        self.assertEqual((report.returncode, report.stderr), (0, ""))
        first, *lines = report.stdout.splitlines()
        self.assertEqual(first + "\n", run([ASSAY, "--version"]).stdout)
        facts = dict(line.split(": ", 1) for line in lines)
        self.assertEqual(facts["kernel"], f"Linux {os.uname().release}")
        self.assertRegex(facts["processor"], r"^\w+, family \d+ model \d+ stepping \d+, ")
        self.assertRegex(facts["state shown"], "^x87 sse")
        self.assertRegex(facts["libraries"], r"glibc \d.*, Zydis \d.*, libdw \d")
        self.assertLess(len(lines), 15)

        hiding = dict(line.split(": ", 1) for line in run(
            [ASSAY, "--version", "--verbose", "--hide=xsave,fsgsbase"]).stdout.splitlines()[1:])
        self.assertEqual(hiding["state shown"], "x87 sse")
        self.assertEqual(hiding["registers saved with"], "fxsave")
        self.assertEqual(hiding["wrfsbase"], "not allowed")
        unknown = run([ASSAY, "--version", "--verbose", "--hide=neon"])
        self.assertEqual(unknown.returncode, 125)
        self.assertRegex(unknown.stderr, "^assay: .*no such feature: neon\n$")

    def test_last_value_counts(self):
        for again, last in ((["--threshold=0", "--threshold=20"], "--threshold=20"),
                            (["--context=0", "--context=3"], "--context=3"),
                            (["--color=never", "--color=always"], "--color=always"),
                            (["--annotate", "--no-annotate"], "--no-annotate")):
            expected = run([ASSAY, "annotate", last, PROFILE])
            result = run([ASSAY, "annotate", *again, PROFILE])
            self.assertEqual((result.returncode, result.stderr), (0, ""), again)
            self.assertEqual(result.stdout, expected.stdout, again)


class StandardStreams(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.vectors = self.folder / "bb.out"
        self.vectors.write_text("T:1:5 :2:3\nT:1:5 :2:3\n")

    def commands(self):
        return (["annotate", PROFILE], ["annotate", "--json", PROFILE], ["diff", PROFILE, PROFILE],
                ["export", "--format=csv", PROFILE], ["list", PROFILE], ["plugins"],
                ["plugins", "cache"], ["merge", PROFILE],
                ["merge", "-o", "/dev/stdout", PROFILE], ["simpoint", self.vectors], ["completion", "bash"],
                ["check-plugin", "cache"], ["--help"], ["--version"], ["help", "diff"],
                ["diff", "--help"], ["plugins", "--help"])

    def test_output_that_cannot_be_written(self):
        for words in self.commands():
            for where in (">/dev/full", ">&-"):
                result = run(["sh", "-c", f'exec "$@" {where}', "sh", ASSAY, *words])
                self.assertEqual(result.returncode, support.failure_status(words), words)
                self.assertRegex(result.stderr, r"^assay: cannot write .*standard output.*\n$")

    def test_dash_is_standard_input_and_output(self):
        text = PROFILE.read_text()
        for words in (["annotate"], ["diff", PROFILE], ["diff"], ["list"], ["merge"],
                      ["export", "--format=json"]):
            behind = [PROFILE] if words == ["diff"] else []
            piped = run([ASSAY, *words, "-", *behind], stdin=None, input=text)
            self.assertEqual((piped.returncode, piped.stderr), (0, ""), words)
            named = run([ASSAY, *words, PROFILE, *behind])
            self.assertEqual(*(shown.stdout.replace(str(PROFILE), "-") for shown in (piped, named)))
        for words in (["merge"], ["export", "--format=callgrind"]):
            plain = run([ASSAY, *words, PROFILE], cwd=self.folder)
            result = run([ASSAY, *words, "-o", "-", PROFILE], cwd=self.folder)
            self.assertEqual(result.stdout, plain.stdout)
        page = run([ASSAY, "report", "-o", "-", "-"], stdin=None, input=text, cwd=self.folder)
        self.assertIn("</html>", page.stdout)
        out = run([ASSAY, "diff", "-o", "-", PROFILE, PROFILE], cwd=self.folder)
        self.assertIn("\nsummary: 0", out.stdout)
        joined = run([ASSAY, "merge", "--one-run", "-", self.vectors], stdin=None,
                     input=self.vectors.read_text())
        self.assertEqual(joined.stdout.count("\nT:"), 3, joined.stderr)
        found = run([ASSAY, "simpoint", "-", "--save-simpoints=-", "--save-weights=w",
                     "--save-labels=l"], stdin=None, input=self.vectors.read_text(), cwd=self.folder)
        self.assertTrue(found.stdout.startswith("0 0\n"), found.stderr)
        self.assertIn("--save-simpoints", run([ASSAY, "simpoint", "-"]).stderr)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"bb.out", "l", "w"})

    def test_appended_output_stays(self):
        out = self.folder / "both"
        run(["sh", "-c", 'echo before > "$2"; "$0" merge "$1" >> "$2"', ASSAY, PROFILE, out])
        self.assertTrue(out.read_text().startswith("before\ndesc:"))


class Interrupted(unittest.TestCase):
    def test_nothing_is_left_behind(self):
        folder = support.temporary_folder(self)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            # The vectors come from a pipe, whose end the command waits for.
            with subprocess.Popen([ASSAY, "merge", "--one-run", "-o", folder / "out", "-"],
                                  stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
                process.stdin.write(b"T:1:5\n" * 1000)
                process.stdin.flush()
                while not list(folder.iterdir()):
                    self.assertIsNone(process.poll())
                process.send_signal(number)
                self.assertEqual(process.wait(60), -number)
            self.assertEqual(list(folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
