#!/usr/bin/env python3
"""Names of code that a program makes itself: perf maps and jitdump files."""

import contextlib
import json
import re
import sys
import unittest
from pathlib import Path

import support
from support import ASSAY, BUILD, PROGRAMS, profile, read_events, run

NAMED = PROGRAMS / "named_code"
# Instructions of one call of a function that the program has made.
CALL = 2
PYTHON_NAMES = BUILD / "tools" / "python_names.py"
PYTHON_CALL = 6  # the same, of a function that names Python code


# Lines with the same letter do 9 times and 1 times the same work.
PYTHON_LINES = """\
import threading
def work(n):
    return sum(range(n))
def lines():
    work(90_000)  # 9a
    work(10_000)  # 1a
    sum(range(90_000))  # 9b
    sum(range(10_000))  # 1b
def numbers(n):
    for i in range(n):
        yield sum(range(1_000, 1_500))
def generators():
    sum(numbers(900))  # 9c
    sum(numbers(100))  # 1c
    [sum(range(1_000, 1_500)) for i in range(900)]  # 9d
    [sum(range(1_000, 1_500)) for i in range(100)]  # 1d
def fails(n):
    sum(range(n))
    raise ValueError
def exceptions():
    try:
        fails(90_000)  # 9e
    except ValueError:
        sum(range(90_000))  # 9f
    try:
        fails(10_000)  # 1e
    except ValueError:
        sum(range(10_000))  # 1f
def down(n):
    if n != 0:
        sum(range(10_000))
        down(n - 1)
def recursion():
    down(9)  # 9g
    down(1)  # 1g
def tree(n):
    if n == 0:
        return
    sum(range(1_000, 10_000))  # 9h
    tree(n - 1)
    sum(range(1_000, 2_000))  # 1h
    other(n - 1)
def other(n):
    sum(range(1_000))
    tree(n)
def thread():
    sum(range(90_000))  # 9i
def threads():
    started = threading.Thread(target=thread)
    started.start()
    sum(range(10_000))  # 1i
    started.join()
def again():
    for text in ("sum(range(90_000))", "sum(range(10_000))"):
        for i in range(5):
            exec(compile("\\n" * i + text, f"/tmp/made{i}.py", "exec"))
lines()
generators()
exceptions()
recursion()
tree(7)
threads()
again()
"""


def older_pythons():
    """One interpreter of each version of CPython from 3.9 to 3.11."""
    found = {}
    for python in ("/usr/bin/python3", sys.executable):
        if not Path(python).exists():
            continue
        shown = run([python, "-c", "import sys; print(sys.implementation.name, sys.version_info[:2])"])
        if re.fullmatch(r"cpython \(3, (9|10|11)\)", shown.stdout.strip()):
            found.setdefault(shown.stdout, python)
    return list(found.values())


class GeneratedNames(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.out = self.folder / "events"

    def profiled(self, *arguments, program=NAMED, options=()):
        """The exact counts of functions by name, and what assay has said."""
        result = profile([program, *arguments], "--dump-instr=yes", *options, out=self.out,
                         cwd=self.folder)  # node leaves a log
        self.assertEqual(result.returncode, 0, result.stderr)
        events = read_events(self.out)
        self.events = events
        pid = next(line.split()[-1] for line in events.remarks if " pid " in line)
        self.map = Path(f"/tmp/perf-{pid}.map")
        for path in (self.map, Path(f"/tmp/jit-{pid}.dump")):
            self.addCleanup(path.unlink, missing_ok=True)
        column = events.events.index("Ir")
        return {name: row[column] for name, row in events.functions.items()}, result.stderr

    def objects(self):
        return [line for line in self.events.remarks if line.startswith("#! object ")]

    def test_perf_map(self):
        counts, said = self.profiled()
        self.assertEqual(counts["first(int)"], 3 * CALL)
        self.assertEqual(counts["js:~second a.js:1:2"], 5 * CALL)
        # Both were at one address: the counts are the later one's.
        self.assertEqual(counts["new"], 2 * CALL)
        self.assertNotIn("old", counts)
        self.assertIn(f"{self.map}: line 2 is not a start, a size and a name", said)
        self.assertTrue(any(str(self.map) in line for line in self.objects()), self.objects())
        self.assertTrue(any("[anonymous]" in line for line in self.objects()), self.objects())
        shown = run([ASSAY, "annotate", "--full", "--threshold=0", self.out])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertTrue("js:~second a.js:1:2" in shown.stdout)

    def test_contexts(self):
        counts, _ = self.profiled(options=["--contexts"])
        self.assertEqual(counts["first(int)"], 3 * CALL)
        folded = run([ASSAY, "export", "--format=folded", "-o", self.folder / "folded", self.out])
        self.assertEqual(folded.returncode, 0, folded.stderr)
        stacks = (self.folder / "folded").read_text()
        self.assertIn("call;first(int) ", stacks)

    def test_jitdump(self):
        counts, _ = self.profiled(self.folder)
        self.assertEqual(counts["first(int)"], 3 * CALL + 4 * CALL)  # with those after it has moved
        self.assertEqual(counts["second"], 5 * CALL)
        text = self.out.read_text()
        self.assertIn("fl=made.lang\nfn=first(int)\n10 7 ", text)
        self.assertIn("\n11 7 ", text)
        self.assertTrue(any("/jit-" in line for line in self.objects()), self.objects())

    def test_file_of_an_earlier_process(self):
        """One with this process id, that is."""
        script = ("echo $$; printf '0 7fffffffffff stale\\n' > /tmp/perf-$$.map; "
                  f"touch -d '2 hours ago' /tmp/perf-$$.map; exec {NAMED} {self.folder}")
        counts, _ = self.profiled("-c", script, program="/bin/sh")
        self.assertNotIn("stale", counts)
        self.assertEqual(counts["second"], 5 * CALL)

    def test_link(self):
        """Others can put links into /tmp."""
        (self.folder / "map").write_text("0 7fffffffffff linked\n")
        script = f"ln -s {self.folder}/map /tmp/perf-$$.map; exec {NAMED} {self.folder}"
        counts, _ = self.profiled("-c", script, program="/bin/sh")
        self.assertNotIn("linked", counts)

    @support.needs("node")
    def test_node(self):
        script = self.folder / "a.js"
        script.write_text("function hot(n) { let s = 0; for (let i = 0; i < n; ++i) s += i % 7; "
                          "return s; }\nlet t = 0; for (let i = 0; i < 300; ++i) t += hot(1000);\n"
                          "console.log(t);\n")
        counts, _ = self.profiled("--perf-basic-prof", script, program="node")
        self.assertTrue(any("hot" in name and "a.js" in name for name in counts))

    @support.needs("java", "javac")
    def test_java(self):
        (self.folder / "Hot.java").write_text(
            "public class Hot {\n"
            "  static int hot(int n) { int s = 0; for (int i = 0; i < n; ++i) s += i % 7; return s; }\n"
            "  public static void main(String[] words) {\n"
            "    int t = 0; for (int i = 0; i < 20000; ++i) t += hot(500); System.out.println(t);\n"
            "  }\n}\n")
        compiled = run(["javac", "-d", self.folder, self.folder / "Hot.java"])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        flags = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"]
        for given in ([], flags):
            counts, said = self.profiled(*given, "-cp", self.folder, "Hot", program="java",
                                         options=["--cache-sim=no"])
            hint = [line for line in said.splitlines() if " ".join(flags) in line]
            self.assertEqual(len(hint), 0 if given else 1, said)
            self.assertEqual(any("Hot.hot" in name for name in counts), bool(given))

    @support.needs("erl", "erlc")
    def test_erlang(self):
        (self.folder / "hot.erl").write_text(
            "-module(hot).\n-export([main/0]).\n"
            "hot(0, S) -> S;\nhot(N, S) -> hot(N - 1, S + N rem 7).\n"
            'main() -> io:format("~p~n", [hot(100000, 0)]), halt().\n')
        compiled = run(["erlc", "-o", self.folder, self.folder / "hot.erl"])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        counts, _ = self.profiled("-noshell", "-noinput", "+S", "1", "+JPperf", "map", "-s", "hot", "main",
                                  program="erl", options=["--cache-sim=no"])
        self.assertGreater(counts["$hot:hot/2"], 500_000)

    @support.needs("luajit")
    def test_luajit(self):
        """It writes no file for profilers."""
        script = self.folder / "hot.lua"
        script.write_text("local s = 0 for i = 1, 1e6 do s = s + i % 7 end print(s)\n")
        self.profiled(script, program="luajit", options=["--cache-sim=no"])
        [generated] = [line.split()[2] for line in self.objects() if "[anonymous]" in line]
        of_generated = re.findall(rf"(?m)^fl=#! at {generated}:0x\w+ \d+ (\d+)$", self.out.read_text())
        self.assertGreater(sum(map(int, of_generated)), 1_000_000)

    def test_python(self):
        """Since Python 3.12."""
        if sys.version_info < (3, 12):
            self.skipTest("needs Python 3.12 or later")
        script = self.folder / "hot.py"
        script.write_text("def hot(n):\n    return sum(i % 7 for i in range(n))\nprint(hot(10000))\n")
        counts, _ = self.profiled("-X", "perf", script, program=sys.executable, options=["--cache-sim=no"])
        self.assertIn(f"py::hot:{script}", counts)

    def python_counts(self, python, script, recursion):
        """The counts of the script's functions, with and without callees, by short name."""
        own, _ = self.profiled("-S", PYTHON_NAMES, script, program=python,
                               options=["--cache-sim=no", "--contexts", f"--recursion={recursion}"])
        shown = run([ASSAY, "annotate", "--calls", "--json", "--threshold=0", self.out])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        inclusive = {row["function"]: row["inclusive"][0] for row in json.loads(shown.stdout)["calls"]}

        def of_script(counts):
            end = f":{script}"
            return {name[len("py::"):-len(end)]: count for name, count in counts.items()
                    if name.startswith("py::") and name.endswith(end)}
        return of_script(own), of_script(inclusive)

    def test_python_names(self):
        script = self.folder / "recursion.py"
        script.write_text(
            "class Leaf:\n    def value(self):\n        return 1\n"
            "def fib(n):\n    return Leaf().value() if n < 2 else fib(n - 1) + fib(n - 2)\n"
            "def other():\n    def inner():\n        return sum(i for i in range(10))\n"
            "    return inner()\n"
            "def main():\n    print(fib(12), other())\nmain()\n")
        pythons = older_pythons()
        if not pythons:
            self.skipTest("needs CPython 3.9 to 3.11")
        for python in pythons:
            with self.subTest(python=python):
                own, inclusive = self.python_counts(python, script, "1")
                calls = {"<module>": 1, "Leaf": 1, "main": 1, "fib": 465, "Leaf.value": 233, "other": 1,
                         "other.<locals>.inner": 1}
                self.assertEqual({name: own.get(name) for name in calls},
                                 {name: PYTHON_CALL * count for name, count in calls.items()})
                self.assertIn("other.<locals>.inner.<locals>.<genexpr>", own)
                # Each function has the counts of those that it calls.
                self.assertGreater(inclusive["<module>"], inclusive["main"])
                self.assertGreater(inclusive["main"], inclusive["fib"] + inclusive["other"])
                self.assertGreater(inclusive["fib"], inclusive["Leaf.value"] + 465 * 100)
                self.assertGreater(inclusive["other"], inclusive["other.<locals>.inner"])
                _, unfolded = self.python_counts(python, script, "all")
                for name in ("main", "fib", "Leaf.value"):
                    self.assertAlmostEqual(unfolded[name] / inclusive[name], 1, delta=0.02)

    def annotated(self, script, *options):
        """The functions and lines of the script: counts with calls, and without."""
        shown = run([ASSAY, "annotate", "--no-show-percs", "--threshold=0", "--top=100000", *options, self.out,
                     script], env={"COLUMNS": "200"})
        self.assertEqual(shown.returncode, 0, shown.stderr)
        functions, of_script = shown.stdout.split(f"-- {script}\n")

        def rows(text, pattern):
            return {name: [0 if count == "." else int(count.replace(",", "")) for count in counts.split()]
                    for counts, name in re.findall(rf"(?m)^ *((?:[\d,.]+ +){{2}}){pattern}", text)}
        lines = {int(number): counts for number, counts in rows(of_script, r"(\d+)  ").items()}
        return rows(functions, rf"py::(.*?):{re.escape(str(script))} "), lines

    def test_python_lines(self):
        script = self.folder / "lines.py"
        script.write_text(PYTHON_LINES)
        text = PYTHON_LINES.splitlines()
        pythons = [python for python in older_pythons()
                   if "3, 11" in run([python, "-c", "import sys; print(sys.version_info[:2])"]).stdout]
        if not pythons:
            self.skipTest("needs CPython 3.11")
        for python in pythons:
            with self.subTest(python=python):
                self.profiled("-S", PYTHON_NAMES, script, program=python,
                              options=["--cache-sim=no", "--contexts"])
                # Each letter of the lines, with the counts of both.
                def pairs(lines):
                    tags = {line[-2:]: lines[i][-2:] for i, line in enumerate(text, 1) if "  # " in line}
                    return {tag[1]: (tags["9" + tag[1]], tags["1" + tag[1]]) for tag in tags if tag[0] == "9"
                            and "1" + tag[1] in tags}
                functions, lines = self.annotated(script)
                for letter, (nine, one) in pairs(lines).items():
                    self.assertAlmostEqual(nine[0] / one[0], 9, delta=0.5, msg=letter)
                # The lines of a function have all its counts.
                for name in ("lines", "generators", "exceptions", "recursion", "thread"):
                    [first] = [i for i, line in enumerate(text, 1) if line.startswith(f"def {name}(")]
                    end = next(i for i in range(first + 1, 100) if not text[i - 1].startswith(" "))
                    total = sum(lines[i][0] for i in range(first, end) if i in lines)
                    # The module executes the line of the `def`, too.
                    self.assertIn(total - functions[name][0], range(2000), name)
                # Without the interpreted functions that they call, but with C.
                functions, lines = self.annotated(script, f"--own={self.folder}")
                for letter in "bfhi":
                    nine, one = pairs(lines)[letter]
                    self.assertAlmostEqual(nine[1] / one[1], 9, delta=0.5, msg=letter)
                for letter in "aceg":  # Python functions do the work
                    nine, one = pairs(lines)[letter]
                    self.assertLess(nine[1], nine[0] / 100, letter)
                summary = run([ASSAY, "summary", self.out], cwd=self.folder)
                self.assertIn("Lines of Python, with what the interpreter did for them", summary.stdout)
                self.assertRegex(summary.stdout, r"%  lines\.py:\d+ +sum\(range\(1_000, 10_000\)\)")
                self.assertIn(f"assay annotate --only-own {self.out}", summary.stdout)

    def run_named(self, words, **more):
        """Runs a command, and removes the maps of it and of its children."""
        before = set(Path("/tmp").glob("jit-*.dump"))
        result = run(words, **more)
        for path in set(Path("/tmp").glob("jit-*.dump")) - before:
            with contextlib.suppress(OSError):  # of another program
                if str(PYTHON_NAMES).encode() in path.read_bytes():
                    path.unlink()
        return result

    def test_python_names_runs_as_python_does(self):
        module = self.folder / "shown.py"
        module.write_text("import sys\nprint(__name__, sys.argv, sys.path[0])\nsys.exit(7)\n")
        (self.folder / "application").mkdir()
        (self.folder / "application" / "__main__.py").write_text(module.read_text())
        for python in older_pythons():
            for words in ([module, "a", "-b"], ["-m", "shown", "a"], ["-c", module.read_text(), "a"],
                          [self.folder / "application", "a"], ["-I", module], [self.folder / "missing.py"]):
                with self.subTest(python=python, words=words):
                    options, words = (words[:1], words[1:]) if words[0] == "-I" else ([], words)
                    plain = run([python, *options, *words], cwd=self.folder)
                    named = self.run_named([python, *options, PYTHON_NAMES, *words], cwd=self.folder)
                    self.assertEqual((named.returncode, named.stdout, named.stderr),
                                     (plain.returncode, plain.stdout, plain.stderr))

    def test_python_names_memory_and_fork(self):
        """Functions that are made again share a name; a child has a file of its own."""
        code = ("import os\n"
                "for i in range(1000): exec('def made(): pass\\nmade()')\n"
                "def count(): return open(f'/tmp/jit-{os.getpid()}.dump', 'rb').read().count(b'py::made:')\n"
                "child = os.fork()\n"
                "if child: os.waitpid(child, 0)\n"
                "print(count())\n")
        for python in older_pythons():
            with self.subTest(python=python):
                shown = self.run_named([python, PYTHON_NAMES, "-c", code])
                self.assertEqual((shown.stdout, shown.stderr), ("1\n1\n", ""))

    def test_python_names_in_another_version(self):
        for version, remedy in (((3, 8, 1), ""), ((3, 12, 1), "; use python3 -X perf instead")):
            code = (f"import runpy, sys; sys.version_info = {version}; sys.argv[1:] = ['-c', 'print(1)']; "
                    f"runpy.run_path({str(PYTHON_NAMES)!r}, run_name='__main__')")
            refused = run([sys.executable, "-c", code])
            self.assertEqual(refused.returncode, 125)
            self.assertEqual(refused.stdout, "")
            self.assertEqual(refused.stderr, "python_names.py: needs CPython 3.9 to 3.11, but this is cpython "
                             f"{'.'.join(map(str, version))}{remedy}\n")


if __name__ == "__main__":
    unittest.main()
