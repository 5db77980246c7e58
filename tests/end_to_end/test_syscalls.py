#!/usr/bin/env python3
"""System calls: those of a program that makes known ones, and of others as strace counts them."""

import os
import re
import shutil
import unittest
from collections import Counter

import support
from support import ASSAY, PROGRAMS, profile, read_events, run

ROW = re.compile(r"^==\d+== +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)(?: +([\d.]+))?  (.+)$",
                 re.MULTILINE)
NAMES = {int(found[1]): found[2] for found in re.finditer(
    r'\{(\d+), "(\w+)"\}',
    (support.ROOT / "plugins" / "syscalls" / "x86_64_calls.inc").read_text())}
NOT_IN_STRACE = ("exit", "exit_group")  # it counts what returns
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "LC_ALL": "C"}
COLUMNS = ["Sys", "SysErr", "SysRd", "SysWr"]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def can_trace() -> bool:
    return shutil.which("strace") and run(["setarch", "-R", "strace", "-f", "-c", "-o", "/dev/null",
                                           "true"]).returncode == 0


class SystemCalls(unittest.TestCase):
    def profile(self, program, *options):
        self.folder = support.temporary_folder(self)
        result = profile(program, *options, plugin="syscalls", out=self.folder / "events.%p")
        self.assertEqual(result.returncode, 0, result.stderr)
        files = {int(path.suffix[1:]): read_events(path) for path in self.folder.glob("events.*")}
        first = files.pop(int(re.search(r"==(\d+)==", result.stderr)[1]))
        return first, list(files.values()), result.stderr

    def of(self, events, function):
        return dict(zip(events.events, events.functions[function]))

    def table(self, *options, plugin="syscalls"):
        """What the summary of the first process says of each call, and all of it."""
        # Where the loader looks for libraries is in it.
        environment = {name: value for name, value in os.environ.items()
                       if name != "LD_LIBRARY_PATH"}
        result = profile([PROGRAMS / "system_calls"], "--trace-children=no", *options,
                         env=environment,
                         plugin=plugin)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {row[5]: tuple(number(cell) for cell in row[:4])
                for row in ROW.findall(result.stderr)}

    def steady(self, *options, **more):
        """How often threads wait for one another differs."""
        return {name: row for name, row in self.table(*options, **more).items()
                if name not in ("futex", "in all")}

    def test_places(self):
        """A call is counted in the function of the program that makes it."""
        events, children, _ = self.profile([PROGRAMS / "system_calls"])
        self.assertEqual(events.events, COLUMNS)
        expected = {"read_bytes": (12, 0, 1000, 0), "write_bytes": (6, 0, 0, 132),
                    "fail": (10, 10, 0, 0), "copy": (5, 0, 1000, 1000),
                    "ask_in_thread": (10, 0, 0, 0), "execute_badly": (1, 1, 0, 0),
                    # Twice sigaction and setitimer; a read that begins again, and two others; and
                    # what returns from the handler to here.
                    "read_interrupted": (9, 1, 2, 0), "answer": (2, 0, 0, 2)}
        for function, counts in expected.items():
            self.assertEqual(tuple(events.functions[function]), counts, function)
        self.assertNotIn("ask_the_time", events.functions)  # the vDSO answers
        [child] = children
        self.assertEqual(tuple(child.functions["run_child"]), (7, 0, 0, 0))  # _exit is one

    def test_table(self):
        table = self.table()
        self.assertEqual(table["getppid"], (10, 0, 0, 0))
        self.assertEqual(table["sendfile"], (1, 0, 1000, 1000))
        self.assertEqual(table["read"], (4, 1, 834, 0))  # of the C library's header, 832 bytes
        self.assertEqual(table["openat"][:2], (13, 7))
        self.assertEqual(table["rt_sigreturn"][0], 2)
        self.assertEqual(table["execve"], (1, 1, 0, 0))
        self.assertEqual(table["exit_group"], (1, 0, 0, 0))
        self.assertEqual(table["exit"], (2, 0, 0, 0))  # of the threads
        for column, total in enumerate(table.pop("in all")):
            self.assertEqual(sum(row[column] for row in table.values()), total)

    def test_at_the_instruction(self):
        """The same calls, in the C library."""
        self.assertEqual(self.steady("--callers=no"), self.steady())
        here, _, _ = self.profile([PROGRAMS / "system_calls"], "--callers=no")
        self.assertNotIn("fail", here.functions)

    def test_static(self):
        """In a static program the C library is what has no lines."""
        events, _, _ = self.profile([PROGRAMS / "work_static"])
        self.assertGreater(events.summary[0], 3)

    def test_names_by_place(self):
        self.profile([PROGRAMS / "system_calls"], "--dump-instr=yes")
        files = sorted(self.folder.glob("events.*"), key=lambda path: int(path.suffix[1:]))
        text = run([ASSAY, "list", "--function=fail", files[0]]).stdout
        for line in ("openat", "openat ENOENT", "close EBADF"):
            self.assertIn(line, text)

    def test_time(self):
        events, _, text = self.profile([PROGRAMS / "system_calls"], "--time=yes",
                                       "--trace-children=no")
        self.assertEqual(events.events, COLUMNS + ["SysNs"])
        # A read waits for a timer of 50 ms; so does another, but that begins again.
        waited = self.of(events, "read_interrupted")["SysNs"]
        self.assertGreater(waited, 45_000_000)
        rows = ROW.findall(text)
        times = [float(row[4]) for row in rows if row[5] != "in all"]
        self.assertEqual(times, sorted(times, reverse=True))

    def test_contexts(self):
        """Where contexts are wanted the same calls are counted, with all callers."""
        for options in (["--contexts"], ["--contexts", "--callers=no"]):
            self.assertEqual(self.steady(*options), self.steady(), options)
            out = support.temporary_folder(self) / "events"
            profile([PROGRAMS / "system_calls"], *options, "--trace-children=no",
                    plugin="syscalls", out=out)
            tree = run([ASSAY, "annotate", "--tree", "--full", "--threshold=0", out]).stdout
            self.assertRegex(tree, r"(?m)^ *10 .*\bfail\b")

    def test_beside_others(self):
        """With the cache profiler, whose records are of another kind, and contexts."""
        for options in ([], ["--contexts"]):
            self.assertEqual(self.steady("--callers=no", *options, plugin="cache,syscalls"),
                             self.steady())

    @unittest.skipUnless(can_trace(), "needs strace, and permission for ptrace(2)")
    def test_as_strace(self):
        """Calls and errors by name are those that strace -f counts."""
        text = str(PROGRAMS.parent.parent / "build.ninja")
        shell = f"ls / > /dev/null; cat {text} > /dev/null; (exec sort {__file__}); /bin/true"
        programs = [["true"], ["ls", "-l", "/"], ["cat", text], ["sh", "-c", shell],
                    ["bzip2", "-c", text], ["python3", "-S", "-c", "import json; print(json)"],
                    [PROGRAMS / "threads"]]
        for program in programs:
            if not shutil.which(program[0]):
                continue
            with self.subTest(program=str(program[0])):
                self.compare(program)

    def compare(self, program):
        calls, errors = self.called(program)
        wanted, failed = self.traced(program)
        self.assertEqual(calls, wanted)
        self.assertEqual(errors, failed)

    def traced(self, program):
        """Calls and errors by name as strace counts them, as far as both count the same."""
        table = support.temporary_folder(self) / "table"
        # With fixed addresses, as assay has them.
        result = run(["setarch", "-R", "strace", "-f", "-c", "-U", "calls,errors,name", "-o", table,
                      *program], env=ENVIRONMENT)
        self.assertEqual(result.returncode, 0, result.stderr)
        calls, errors = Counter(), Counter()
        for line in table.read_text().splitlines():
            found = re.fullmatch(r" *(\d+) +(\d*) +(\w+)", line)
            if found and found[3] != "total":
                calls[found[3]] = int(found[1])
                errors[found[3]] = int(found[2] or 0)
        calls["execve"] -= 1  # strace's own, to become the program
        errors["rseq"] = calls["rseq"]  # which assay's driver has registered
        return +calls, +errors

    def called(self, program):
        """Likewise, in the profiles of all processes."""
        folder = support.temporary_folder(self)
        result = profile(program, "--callers=no", plugin="syscalls", out=folder / "events.%p",
                         env=ENVIRONMENT)
        self.assertEqual(result.returncode, 0, result.stderr)
        calls, errors = Counter(), Counter()
        for path in folder.glob("events.*"):
            for remark in read_events(path).remarks:
                words = remark.split()
                if words[1] != "value":
                    continue
                for value, count in (word.split(":") for word in words[6:] if ":" in word):
                    if words[4] == "syscalls.calls":
                        calls[NAMES[int(value, 16)]] += int(count)
                    else:
                        errors[NAMES[int(value, 16) >> 16]] += int(count)
        for name in NOT_IN_STRACE:
            del calls[name]
        return calls, errors


if __name__ == "__main__":
    unittest.main()
