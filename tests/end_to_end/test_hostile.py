#!/usr/bin/env python3
"""Profilers that end or spoil the process they run in: that costs their own columns only."""

import os
import unittest

import support
from support import ASSAY, GEOMETRY, PLUGINS, PROGRAMS, profile, read_events, run

FAILURE = 125
WORK = [PROGRAMS / "work"]
HOSTILE = PLUGINS / "hostile.so"

# What the profiler does to its process, and how it is said that this has cost its columns.
FATAL = {
    "end": "its {} ended its process with status 0",
    "end-by-library": "its {} called exit",
    "end-group": "its {} ended its process with status 0",
    "end-on-thread": "its {} ended its process with status 0",
    "kill": "its {} crashed with signal 9 (Killed)",
    "stop": "its {} did not return within 2 s",
    "close": "it has closed files that are not its own, in its {}",
    "replace": "it has closed files that are not its own, in its {}",
    "store": "its {} crashed with signal 11 (Segmentation fault)",
    "store-blocked": "its {} crashed with signal 11 (Segmentation fault)",
    "loop": "its {} did not return within 2 s",
    "loop-blocked": "its {} did not return within 2 s",
    "go-on-in-child": "its {} ended its process with status 0",
    "abort": "its {} crashed with signal 6 (Aborted)",
    "overflow": "its {} crashed with signal 11 (Segmentation fault)",
    "limit-time": "its {} crashed with signal ",
}
FUNCTIONS = ["vp_init", "vp_options", "vp_prof_init", "vp_prof_process", "vp_finish"]
LATE = ["vp_summary", "vp_prof_release", "vp_release"]  # when the columns are written


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.temporary_folder_of_class(cls)
        cls.out = cls.folder / "events"
        cls.told = cls.folder / "told"
        cls.told.write_text("")
        cls.environment = {**os.environ, "ASSAY_HOSTILE": str(cls.told)}
        result = cls.profile(plugin="cache")
        assert result.returncode == 0, result.stderr
        cls.alone = read_events(cls.out)
        cls.native = run(WORK).stdout

    @classmethod
    def profile(cls, *options, plugin=f"{HOSTILE},cache", program=WORK, limit=10, **more):
        return profile(program, f"--profiler-timeout={limit}", *GEOMETRY, *options, plugin=plugin,
                       out=cls.out, timeout=300, env=cls.environment, **more)

    @staticmethod
    def said(result):
        """By assay, but for the places of files."""
        return [line for line in result.stderr.splitlines()
                if line.startswith("assay: ") and not line.startswith("assay: wrote ")]

    def check(self, what, where, words, *options, lost=True, **more):
        """The profile is what it is without the hostile profiler; returns the file."""
        self.told.write_text(f"{what} {where}")
        self.out.unlink(missing_ok=True)
        more.setdefault("limit", 2 if "did not return" in words else 10)
        result = self.profile(*options, **more)
        self.assertEqual((result.returncode, result.stdout), (0, self.native), result.stderr)
        lines = self.said(result)
        self.assertEqual(len(lines), 1 if words else 0, result.stderr)
        if words:
            columns = "" if where in LATE else ", and its columns with it"
            self.assertIn(f"the profiler hostile is lost{columns}: {words.format(where)}", lines[0])
        events = read_events(self.out)
        width = len(self.alone.events)
        lost = lost and where not in LATE
        self.assertEqual(events.events, ([] if lost else ["Buffers"]) + self.alone.events)
        counts = {function: row[-width:] for function, row in events.functions.items()}
        self.assertEqual(counts, self.alone.functions)
        self.assertEqual([path.name for path in sorted(self.folder.iterdir())], ["events", "told"])
        return events

    def test_whatever_ends_the_process_costs_the_columns_of_the_profiler(self):
        for what, words in FATAL.items():
            with self.subTest(what):
                self.check(what, "vp_prof_process", words)

    def test_in_every_function(self):
        for what in ("end", "kill", "close"):
            for where in FUNCTIONS + LATE:
                with self.subTest(what, where=where):
                    self.check(what, where, FATAL[what])

    def test_a_process_forked_and_left_alone_writes_nothing(self):
        for where in FUNCTIONS + LATE:
            with self.subTest(where):
                self.check("fork", where, "", lost=False)

    def test_what_is_the_process_s_own_does_not_reach_the_run(self):
        self.out.unlink(missing_ok=True)
        os.chdir(self.folder)  # relative names are the collector's
        for what in ("change-folder", "change-mask"):
            for where in ("vp_init", "vp_prof_process"):
                with self.subTest(what, where=where):
                    self.check(what, where, "", "--out=events", lost=False)
        self.check("limit-memory", "vp_init", "its process cannot go on: ")

    def test_a_message_that_does_not_end(self):
        garbage = "its process has sent garbage"
        silent = "its process has not answered within 2 s"
        for where in ("vp_options", "vp_prof_init", "vp_prof_process", "vp_finish"):
            with self.subTest(where):
                self.check("send-endless", where, garbage)
                self.check("send-beginning", where, silent, limit=2)
                self.check("send-part-of-length", where, "its process has ", limit=2)

    def test_others_like_it_keep_their_columns(self):
        counts = PLUGINS / "counts.so"
        self.told.write_text("end vp_finish")
        crash = {"ASSAY_CRASH_IN": "vp_prof_process", "ASSAY_CRASH_BY": "heap"}
        plugins = f"{HOSTILE},{counts},{PLUGINS / 'crash.so'},cache"
        result = profile(WORK, "--references=yes", *GEOMETRY, plugin=plugins, out=self.out,
                         env={**self.environment, **crash})
        self.assertEqual((result.returncode, result.stdout), (0, self.native), result.stderr)
        self.assertEqual(len(self.said(result)), 2, result.stderr)
        events = read_events(self.out)
        self.assertEqual(events.events[:4], ["Ir", "Refs", "Lines", "cache.Ir"])
        row = dict(zip(events.events, events.functions["sum_cells"]))
        self.assertEqual(row["Ir"], row["cache.Ir"])
        self.assertEqual(row["Refs"], row["Dr"] + row["Dw"])

    def test_children_of_the_program(self):
        """Each has a process for the profiler; the output of one that goes on is not waited for."""
        program = ["sh", "-c", f"{WORK[0]}; sleep 0"]
        for what, left in (("", ["Buffers", *self.alone.events]), ("kill", self.alone.events)):
            with self.subTest(what):
                self.told.write_text(f"{what} vp_prof_process")
                result = self.profile(program=program)
                self.assertEqual((result.returncode, result.stdout), (0, self.native))
                files = [path for path in self.folder.glob("events*")]
                self.assertEqual(len(files), 3, result.stderr)
                for path in files:
                    self.assertEqual(read_events(path).events, left)
                    path.unlink()
                (self.folder / "index.events").unlink()

    def test_alone(self):
        """Nothing is left to write."""
        for what, where in (("end", "vp_finish"), ("close", "vp_prof_process")):
            with self.subTest(what):
                self.told.write_text(f"{what} {where}")
                self.out.unlink(missing_ok=True)
                result = profile(WORK, plugin=HOSTILE, out=self.out, env=self.environment)
                self.assertEqual((result.returncode, result.stdout), (FAILURE, self.native))
                self.assertFalse(self.out.exists())

    def test_before_the_program_is_known(self):
        for what, words in (("end", "ended its process with status 0"), ("store", "signal 11")):
            with self.subTest(what):
                self.told.write_text(f"{what} constructor")
                result = self.profile()
                self.assertEqual((result.returncode, result.stdout), (FAILURE, ""))
                self.assertIn(f"cannot use the profiler {HOSTILE}: its constructors", result.stderr)
                self.assertIn(words, result.stderr)

    def test_in_the_tools(self):
        self.told.write_text("")
        self.assertEqual(self.profile("--dump-instr=yes").returncode, 0)
        command = [ASSAY, "list", f"--plugin={HOSTILE}", "--threshold=0", "--full", self.out]
        good = run(command, env=self.environment)
        self.assertIn("seen: seven (100.0%) of 1", good.stdout)
        self.told.write_text("end vp_format")
        bad = run(command, env=self.environment)
        self.assertEqual(bad.returncode, 0, bad.stderr)
        self.assertIn("seen: 0x7 (100.0%) of 1", bad.stdout)
        self.assertIn("the profiler hostile is lost: its vp_format ended its process", bad.stderr)
        self.told.write_text("kill vp_init")
        listed = run([ASSAY, "plugins"], env={**self.environment, "ASSAY_PLUGIN_PATH": str(PLUGINS)})
        self.assertEqual(listed.returncode, 0)
        self.assertIn("cache ", listed.stdout)


if __name__ == "__main__":
    unittest.main()
