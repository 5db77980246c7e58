#!/usr/bin/env python3
"""What assay writes: readable by Cachegrind's tools, the same every time, there after a crash."""

import os
import pty
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support
from support import (ASSAY, GEOMETRY, PLUGINS, PROGRAMS, needs, profile, read_events, run,
                     terminal_text)

WORK = [PROGRAMS / "work"]
PID_LINE = re.compile(r"^fl=#! pid .*\n", re.MULTILINE)


def numbers(line: str) -> list[int]:
    """The counts of a table row: 1,234 (5.6%) counts once."""
    return [int(word.replace(",", "")) for word in re.findall(r"(?<![\d.,])\d[\d,]*(?![\d.,%])", line)]


def is_running(pid: int) -> bool:
    """False for a zombie, too: whoever inherits it may not wait for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Output(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.out = self.folder / "events"

    def profile_work(self, *options, out=None):
        result = profile(WORK, *GEOMETRY, *options, out=out or self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_summary_is_the_sum_of_the_lines(self):
        self.profile_work()
        events = read_events(self.out)
        self.assertEqual(events.events, "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw".split())
        self.assertEqual(events.totals(), events.summary)
        self.assertGreater(events.summary[0], 1_000_000)

    def test_header_names_caches_and_command(self):
        self.profile_work()
        events = read_events(self.out)
        self.assertIn(str(WORK[0]), events.command)
        for cache in ("I1 cache:", "D1 cache:", "LL cache:"):
            self.assertTrue(any(line.startswith(cache) for line in events.descriptions), cache)
        self.assertTrue(any(line.startswith("#! version 1") for line in events.remarks))

    def test_header_says_where_the_shapes_come_from(self):
        shapes = ("--I1=32K,8,64", "--D1=32K,8,64", "--LL=8M,16,64")
        profile(WORK, *shapes, out=self.out)
        given = read_events(self.out).descriptions
        self.assertEqual([line.partition(":")[0] for line in given],
                         ["I1 cache", "D1 cache", "LL cache"])
        profile(WORK, out=self.out)
        told = read_events(self.out).descriptions
        self.assertEqual(told[:3], given)
        self.assertRegex(told[3], "^Cache shapes: assay's default; --machine=host ")
        profile(WORK, "--machine=host", *shapes[1:], out=self.out)
        told = read_events(self.out).descriptions
        self.assertEqual(told[1:4], [*given[1:], "Cache shapes: this processor's, by --machine=host"])
        for line in told[4:]:
            self.assertRegex(line, r"^Processor's I1: .*; its sets are no power of two$")
        refused = profile(WORK, "--machine=host", "--cache-sim=no", out=self.out)
        self.assertEqual(refused.returncode, 125)
        self.assertIn("--machine cannot be combined with --cache-sim=no", refused.stderr)

    def test_repeated_instructions_that_fault(self):
        """Each iteration is counted once, and once more for each time that it has faulted."""
        program = PROGRAMS / "faulting_strings"
        for option in "--rep=once", "--rep=iterations":
            counted = []
            for case in "not_resumed", "resumed":
                ran = profile([program, case], option, out=self.out)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                events = read_events(self.out)
                counts = dict(zip(events.events, events.functions["repeat_on_pages"]))
                counted.append([counts[name] for name in ("Ir", "Dr", "Dw")])
            # On 8 pages stos, 3 scas, 1 movs, each of them ten times.
            more = [after - before for before, after in zip(*counted)]
            self.assertEqual(more, [120, 30 + 10, 80 + 10], option)

    def test_functions_of_the_program_are_found(self):
        self.profile_work()
        functions = read_events(self.out).functions
        for name in ("main", "fill_cells", "sum_cells", "count_bits", "count_all_bits"):
            self.assertIn(name, functions)

    def test_libraries_one_after_the_other_at_the_same_address(self):
        """Each of two is opened, called and closed 50 times; they have a function each."""
        result = profile([PROGRAMS / "mapped_code", "libraries"], "--cache-sim=no",
                         "--dump-instr=yes", out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        function = self.out.read_text().partition("\nfn=answer\n")[2].partition("\nfn=")[0]
        executed = {}
        for library, count in re.findall(r"^fl=#! at (\d+):\w+ \d+ (\d+)$", function, re.MULTILINE):
            executed.setdefault(library, set()).add(int(count))
        self.assertEqual(list(executed.values()), [{50}, {50}])

    def test_many_files_one_after_the_other_at_the_same_address(self):
        """Each is mapped, its one function called, and unmapped; the function has two instructions."""
        result = profile([PROGRAMS / "mapped_code", "many_files"], "--cache-sim=no",
                         "--dump-instr=yes", out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = self.out.read_text()
        files = re.findall(r'^fl=#! object (\d+) "/tmp/code\.', text, re.MULTILINE)
        self.assertEqual(len(files), 300)
        for file in files:
            self.assertEqual(re.findall(rf"^fl=#! at {file}:\w+ \d+ (\d+)$", text, re.MULTILINE),
                             ["1", "1"])

    def test_two_runs_are_the_same(self):
        self.profile_work()
        other = self.folder / "other"
        self.profile_work(out=other)
        self.assertEqual(PID_LINE.sub("", self.out.read_text()),
                         PID_LINE.sub("", other.read_text()))

    def test_two_runs_are_the_same_whatever_interrupts_them(self):
        """With checks that are translated again, and with faults that the program handles."""
        other = self.folder / "other"
        for program in (["scattered"], ["interrupted", "faults_in_loop"]):
            with self.subTest(program[0]):
                for out in (self.out, other):
                    result = profile([PROGRAMS / program[0], *program[1:]], *GEOMETRY, out=out)
                    self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(PID_LINE.sub("", self.out.read_text()),
                                 PID_LINE.sub("", other.read_text()))

    def test_environment_does_not_change_user_code(self):
        self.profile_work()
        other = self.folder / "other"
        result = profile(WORK, *GEOMETRY, out=other, env={**os.environ, "FILLER": "x" * 5000})
        self.assertEqual(result.returncode, 0, result.stderr)
        first, second = read_events(self.out).functions, read_events(other).functions
        for name in ("fill_cells", "sum_cells"):
            self.assertEqual(first[name][0], second[name][0])

    def test_signals_and_faults_do_not_change_counts(self):
        """Also where a signal is delivered instead of a fault, which then happens again."""
        def counts():
            result = profile([PROGRAMS / "signals", "timer_and_faults"], *GEOMETRY, out=self.out)
            self.assertEqual(result.returncode, 0, result.stderr)
            found = read_events(self.out)
            columns = [found.events.index(name) for name in ("Ir", "Dr", "Dw")]
            return {name: [found.functions[name][column] for column in columns]
                    for name in ("timer_and_faults", "divide_by_one")}
        self.assertEqual(counts(), counts())

    def test_names_of_the_file(self):
        os.environ["ASSAY_TEST_WORD"] = "word"
        self.addCleanup(os.environ.pop, "ASSAY_TEST_WORD")
        self.profile_work(out=self.folder / "a.%p.%n.%q{ASSAY_TEST_WORD}")
        names = [path.name for path in self.folder.iterdir()]
        self.assertRegex(names[0], r"^a\.\d+\.work\.word$")
        self.assertEqual(len(names), 1)

    def test_compressed(self):
        for ending, command in ((".gz", ["gzip", "-dc"]), (".zst", ["zstd", "-dc"])):
            with self.subTest(ending):
                packed = self.folder / ("events" + ending)
                self.profile_work(out=packed)
                plain = run([*command, packed])
                self.assertEqual(plain.returncode, 0, plain.stderr)
                self.assertIn("\nsummary: ", plain.stdout)
                self.assertEqual(run([ASSAY, "annotate", packed]).returncode, 0)

    def test_annotate_has_the_totals(self):
        self.profile_work()
        shown = run([ASSAY, "annotate", "--full", self.out])
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("sum_cells", shown.stdout)
        summary = read_events(self.out).summary
        self.assertTrue(any(numbers(line)[1:len(summary) + 1] == summary
                            for line in shown.stdout.splitlines()), shown.stdout[:2000])

    @needs("cg_annotate")
    def test_cg_annotate_agrees(self):
        self.profile_work()
        shown = run(["cg_annotate", "--auto=yes", self.out])
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertNotIn("WARNING", shown.stdout.upper())
        summary = read_events(self.out).summary
        totals = [line for line in shown.stdout.splitlines() if "PROGRAM TOTALS" in line]
        self.assertEqual(numbers(totals[0]), summary)

    @needs("cg_merge", "cg_diff")
    def test_cg_merge_and_cg_diff_read_it(self):
        self.profile_work()
        merged = self.folder / "merged"
        result = run(["cg_merge", "-o", merged, self.out, self.out])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotRegex(result.stderr.lower(), "warning|error")
        self.assertEqual(read_events(merged).totals(),
                         [2 * count for count in read_events(self.out).totals()])
        difference = run(["cg_diff", self.out, self.out])
        self.assertEqual((difference.returncode, difference.stderr), (0, ""))
        summary = re.search(r"^summary:(.*)$", difference.stdout, re.MULTILINE)
        self.assertEqual(set(summary.group(1).split()), {"0"})

    def test_killed_program_leaves_a_readable_file(self):
        with subprocess.Popen(
                [ASSAY, "--plugin=cache", f"--out={self.out}", "--", *WORK, "forever"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as assay:
            assay.stdout.readline()  # the program has done its work once
            os.kill(int(assay.stdout.readline()), signal.SIGKILL)
            _, words = assay.communicate(timeout=300)
        self.assertIn(assay.returncode, (-signal.SIGKILL, 128 + signal.SIGKILL), words)
        events = read_events(self.out)
        self.assertEqual(events.totals(), events.summary)
        self.assertGreater(events.functions["sum_cells"][0], 200_000)
        self.assertTrue(any("incomplete" in line for line in events.remarks), events.remarks[:20])
        shown = run([ASSAY, "annotate", self.out])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("incomplete", (shown.stdout + shown.stderr).lower())

    def test_program_that_ends_by_a_signal_is_marked(self):
        """Of its own, too: a fault without a handler."""
        for name, number in ("segv", signal.SIGSEGV), ("aborted", signal.SIGABRT), (
                "divide", signal.SIGFPE), ("illegal", signal.SIGILL):
            with self.subTest(name):
                profile([PROGRAMS / "endings", name], *GEOMETRY, out=self.out)
                self.assertIn(f"incomplete the program was killed by signal {int(number)}\n",
                              self.out.read_text())
        profile([PROGRAMS / "endings", "normal"], *GEOMETRY, out=self.out)
        self.assertNotIn("incomplete", self.out.read_text())

    def test_killed_assay_takes_the_program_along(self):
        """Nobody would take its buffers any more. Nothing is left of the file."""
        with subprocess.Popen(
                [ASSAY, "--plugin=cache", f"--out={self.out}", "--", *WORK, "forever"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as assay:
            assay.stdout.readline()
            program = int(assay.stdout.readline())
            assay.kill()
            assay.communicate(timeout=300)  # until the program, too, has closed its output
        deadline = time.monotonic() + 300  # it does that a moment before its end
        while is_running(program) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(is_running(program))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_interrupted_program_leaves_a_whole_file(self):
        result = profile([PROGRAMS / "endings", "terminated"], out=self.out)
        self.assertEqual(result.returncode, -signal.SIGTERM, result.stderr)
        events = read_events(self.out)
        self.assertEqual(events.totals(), events.summary)

    def test_program_that_dies_of_a_fault(self):
        result = profile([PROGRAMS / "endings", "segv"], out=self.out)
        self.assertEqual(result.returncode, -signal.SIGSEGV, result.stderr)
        self.assertEqual(result.stdout, "before\n")
        events = read_events(self.out)
        self.assertEqual(events.totals(), events.summary)

    def test_summary_that_cannot_be_written(self):
        """A pipe that nobody reads, a full device: the exit status stays the program's."""
        reading, pipe = os.pipe()
        os.close(reading)
        for stream in (pipe, os.open("/dev/full", os.O_WRONLY)):
            self.addCleanup(os.close, stream)
            result = profile(["/bin/sh", "-c", "exit 3"], *GEOMETRY, out=self.out, stderr=stream)
            self.assertEqual(result.returncode, 3)
            self.assertEqual(len(read_events(self.out).summary), 9)
            self.out.unlink()

    @needs("objcopy")
    @unittest.skipUnless(Path("/usr/lib/debug/.build-id").is_dir(), "needs libc6-dbg")
    def test_debug_information_is_kept_where_that_is_wanted(self):
        program, folder = self.folder / "compressed", self.folder / "kept"
        folder.mkdir()
        run(["objcopy", "--compress-debug-sections=zlib", *WORK, program])
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
        functions = []
        for option, kept in (("--debug-cache=no", False), ("--debug-cache=yes", True),
                             ("--debug-cache=yes", True)):
            result = profile([program], "-q", option, *GEOMETRY, out=self.out, env=environment)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(bool(list(folder.glob("assay/*"))), kept)
            functions.append(read_events(self.out).functions)
        self.assertEqual(functions[0], functions[1])
        self.assertEqual(functions[1], functions[2])

    def on_terminal(self, *options) -> str:
        """What a run of more than a second says where stderr is a terminal."""
        leader, follower = pty.openpty()
        with subprocess.Popen([ASSAY, "--plugin=cache", f"--out={self.out}", *GEOMETRY, *options,
                               "--", "sleep", "1.5"], stdout=subprocess.DEVNULL,
                              stderr=follower) as process:
            os.close(follower)
            text = terminal_text(leader)
        self.assertEqual(process.returncode, 0, text)
        return text

    def test_progress_on_a_terminal(self):
        """One line, which is erased before assay says anything else; only if it is asked for,
        because the terminal is the program's."""
        said = self.on_terminal("--progress=yes")
        self.assertRegex(said, r"\A(\r\x1b\[Kassay: \d+ s, [\d,]+ million instructions)+\r\x1b\[K==\d")
        self.assertNotIn("million instructions", self.on_terminal())
        self.assertEqual(self.on_terminal("--quiet"), "")

    def test_plugins_lists_cache(self):
        listed = run([ASSAY, "plugins"])
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("cache", listed.stdout)
        described = run([ASSAY, "plugins", "cache"])
        self.assertEqual(described.returncode, 0, described.stderr)
        for word in ("I1", "D1", "LL", "Ir", "DLmw"):
            self.assertIn(word, described.stdout)

    def test_plugins_without_a_description(self):
        null = PLUGINS / "null.so"
        described = run([ASSAY, "plugins", null])
        self.assertEqual(described.stdout, f"null\n{null}\n", described.stderr)
        listed = run([ASSAY, "plugins"], env={**os.environ, "ASSAY_PLUGIN_PATH": str(PLUGINS)})
        self.assertIn("\nnull\n", "\n" + listed.stdout)

    def test_plugins_by_the_name_that_they_say(self):
        folder = support.temporary_folder(self)
        shutil.copy(PLUGINS / "counts.so", folder / "of_another_name.so")
        environment = {**os.environ, "ASSAY_PLUGIN_PATH": str(folder)}
        for name in ("counts", "of_another_name"):
            described = run([ASSAY, "plugins", name], env=environment)
            self.assertRegex(described.stdout, f"^counts: .*\n{folder}/of_another_name.so\n")
            ran = profile(["true"], plugin=name, env=environment)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        listed = run([ASSAY, "plugins"], env=environment)
        self.assertRegex(listed.stdout, r"(?m)^of_another_name, counts +\S")
        shutil.copy(PLUGINS / "counts.so", folder / "third_name.so")
        refused = run([ASSAY, "plugins", "counts"], env=environment)
        self.assertEqual(refused.returncode, 125)
        self.assertIn("two profilers are named counts", refused.stderr)


if __name__ == "__main__":
    unittest.main()
