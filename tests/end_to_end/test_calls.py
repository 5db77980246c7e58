#!/usr/bin/env python3
"""What functions count with all that they call: annotate and each export say the same as what follows
from the contexts of the events file."""

import gzip
import json
import os
import re
import unittest
from collections import Counter
from pathlib import Path

import support
from support import ASSAY, PLUGINS, PROGRAMS, ROOT, installed, profile, read_events, run
from test_exports import fields, packed, validate

HAND_MADE = Path(__file__).parent / "data" / "contexts.events"
OUTSIDE = "[outside of known calls]"
STACK = re.compile(r'#! stack (\d+) in=(\d+) \S+ ("(?:[^"\\]|\\.)*"|\S+)((?: \d+)*)$')


def add_up(stacks) -> Counter:
    """Inclusive counts by name, of names from the outermost to the innermost with a count."""
    found = Counter()
    for names, count in stacks:
        for name in set(names):
            found[name] += count
    return +found


class Contexts:
    """The contexts of an events file, and what each function counts in its lines."""

    def __init__(self, path):
        self.events = read_events(path)
        self.files = {}
        for line in Path(path).read_text().splitlines():
            if line.startswith("fl="):
                file = line
            elif line.startswith("fn="):
                self.files.setdefault(line[3:], set()).add(file)
        paths = {0: ()}
        self.stacks = []  # names, counts
        for remark in self.events.remarks:
            if found := STACK.match(remark):
                number, parent, function, counts = found.groups()
                paths[int(number)] = (*paths[int(parent)], function.strip('"'))
                counts = [int(count) for count in counts.split()]
                counts += [0] * (len(self.events.events) - len(counts))
                self.stacks.append((paths[int(number)], counts))

    def of(self, event) -> Counter:
        """In contexts; what is in none, by OUTSIDE."""
        index = self.events.events.index(event)
        found = add_up((names, counts[index]) for names, counts in self.stacks)
        found[OUTSIDE] = self.events.summary[index] - sum(counts[index] for _, counts in self.stacks)
        return +found

    def with_lines(self, event) -> Counter:
        """What is in none, by its function."""
        index = self.events.events.index(event)
        found = self.of(event)
        del found[OUTSIDE]
        own = Counter()
        for names, counts in self.stacks:
            own[names[-1]] += counts[index]
        for name, counts in self.events.functions.items():
            if event != "Calls":  # which lines count where calls stand, contexts what is called
                found[name] += counts[index] - own[name]
        return +found

    def in_several_files(self) -> set:
        """Contexts do not tell these apart, callgrind_annotate does."""
        return {name for name, files in self.files.items() if len(files) > 1}


class Inclusive(unittest.TestCase):
    def annotated(self, path, *options) -> dict:
        result = run([ASSAY, "annotate", "--json", "--threshold=0", *options, path])
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        validate(document, ROOT / "docs/reference/annotate-schema.json")
        return document

    def exported(self, form, path, event) -> str:
        result = run([ASSAY, "export", f"--format={form}", f"--event={event}", path])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def calls(self, path, event) -> Counter:
        found = Counter()
        for function in self.annotated(path, "--calls", f"--show={event}")["calls"]:
            found[function["function"]] += function["inclusive"][0]
            callers = sum(call["counts"][0] for call in function["callers"])
            self.assertEqual(callers, function["inclusive"][0], function)
        return +found

    def tree(self, path, event) -> Counter:
        names, stacks = [], []
        for frame in self.annotated(path, "--tree", f"--show={event}")["tree"]:
            names = [*names[:frame["depth"]], frame["function"]]
            stacks.append((names, frame["exclusive"][0]))
        return add_up(stacks)

    def callgrind(self, path, event) -> Counter:
        out = support.temporary_folder(self) / "callgrind.out"
        out.write_text(self.exported("callgrind", path, event))
        # Names of files below the current folder would be shortened, but not those of callees.
        shown = run(["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no",
                     "--inclusive=yes", "--tree=both", out], cwd="/")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        found = Counter()
        for line in shown.stdout.splitlines():
            if row := re.match(r"\s*([\d,]+)\s+\*\s+\S+?:(.*?)(?: \[\S*\])?$", line):
                found[row[2]] += int(row[1].replace(",", ""))
        del found[OUTSIDE]  # a caller, there
        return +found

    def folded(self, path, event) -> Counter:
        return add_up((names.split(";"), int(count)) for names, count in (
            line.rsplit(" ", 1) for line in self.exported("folded", path, event).splitlines()))

    def speedscope(self, path, event) -> Counter:
        document = json.loads(self.exported("speedscope", path, event))
        names = [frame["name"] for frame in document["shared"]["frames"]]
        sampled, = document["profiles"]
        return add_up(([names[frame] for frame in sample], weight) for sample, weight in
                      zip(sampled["samples"], sampled["weights"], strict=True))

    def firefox(self, path, event) -> Counter:
        thread, = json.loads(self.exported("firefox", path, event))["threads"]
        names = [thread["stringArray"][i] for i in thread["funcTable"]["name"]]

        def stack(number):
            while number is not None:
                yield names[thread["frameTable"]["func"][thread["stackTable"]["frame"][number]]]
                number = thread["stackTable"]["prefix"][number]

        return add_up((list(stack(number)), weight) for number, weight in
                      zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True))

    def pprof(self, path, event) -> Counter:
        out = support.temporary_folder(self) / "profile.pb.gz"
        self.assertEqual(run([ASSAY, "export", "--format=pprof", f"--event={event}", "-o", out,
                              path]).returncode, 0)
        found = {}
        for number, value in fields(gzip.decompress(out.read_bytes())):
            found.setdefault(number, []).append(value)
        texts = [text.decode() for text in found[6]]
        functions = {each[1]: texts[each[2]] for each in map(dict, map(fields, found[5]))}
        locations = {dict(fields(location))[1]:
                     [functions[dict(fields(value))[1]] for number, value in fields(location)
                      if number == 4] for location in found[4]}
        stacks = []
        for sample in map(dict, map(fields, found[2])):
            names = [name for location in packed(sample[1]) for name in locations[location]]
            stacks.append((names, packed(sample[2])[0]))
        return add_up(stacks)

    def check(self, path, events):
        contexts = Contexts(path)
        for event in events:
            with self.subTest(event=event):
                expected = contexts.with_lines(event)
                self.assertEqual(self.calls(path, event), expected)
                if installed("callgrind_annotate"):
                    found = self.callgrind(path, event)
                    for name in contexts.in_several_files():
                        found[name] = expected[name]
                    self.assertEqual(+found, expected)
                expected = contexts.of(event)
                for read in (self.tree, self.folded, self.speedscope, self.firefox, self.pprof):
                    self.assertEqual(read(path, event), expected, read.__name__)

    def test_a_file_made_by_hand(self):
        self.check(HAND_MADE, ["Ir", "Calls", "Dr"])

    def test_an_event_without_contexts(self):
        expected = {"main": 8, "even": 0, "odd": 2, "fact": 7, "leaf": 10, "handler": 1,
                    "inlined": 13, "lost": 1}
        self.assertEqual(self.calls(HAND_MADE, "Bc"), +Counter(expected))
        for read in (self.tree, self.firefox, self.pprof):
            self.assertEqual(read(HAND_MADE, "Bc"), +Counter(expected), read.__name__)
        if installed("callgrind_annotate"):
            self.assertEqual(self.callgrind(HAND_MADE, "Bc"), +Counter(expected))

    def measured(self, *command, plugin="used_bytes") -> Path:
        out = support.temporary_folder(self) / "events"
        result = profile(command, plugin=plugin, out=out, env={**os.environ, "LD_BIND_NOW": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def test_profiles(self):
        for program, *arguments in (["inlining"], ["jumped_to"], ["calling", "recursion"]):
            path = self.measured(PROGRAMS / program, *arguments)
            self.check(path, [event for event, total in zip(read_events(path).events,
                                                            read_events(path).summary) if total])

    def test_two_profilers_side_by_side(self):
        path = self.measured(PROGRAMS / "calling", "signals",
                             plugin=f"cache,{PLUGINS / 'contexts.so'}")
        self.assertGreater(self.calls(path, "Ir")["signals"], 0)
        self.check(path, ["Calls"])


class Shown(unittest.TestCase):
    def shown(self, *options, path=HAND_MADE) -> str:
        result = run([ASSAY, "annotate", "--full", *options, path])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_callers_and_callees(self):
        shown = self.shown("--calls", "--threshold=3")
        self.assertIn("""
  0          <   a.c:fact (3x)
110 (55.0%)  <   a.c:main (1x)
110 (55.0%)  * a.c:fact
 40 (20.0%)  =   itself
 70 (35.0%)  >   b.c:leaf (4x)
  0          >   a.c:fact (3x)

 10  (5.0%)  <   [outside of known calls] (1x)
 20 (10.0%)  <   a.c:odd (2x)
 70 (35.0%)  <   a.c:fact (4x)
100 (50.0%)  * b.c:leaf
100 (50.0%)  =   itself

""", shown)
        self.assertNotIn("handler", shown)
        self.assertNotIn("Files and their functions", shown)

    def test_order_and_columns(self):
        shown = self.shown("--calls", "--sort=Dr", "--show=Dr,Ir", "--no-show-percs")
        self.assertEqual(re.findall(r"^ *(\d+) +(\d+)  \* (\S+)$", shown, re.MULTILINE)[:3], [
            ("67", "173", "a.c:main"), ("50", "100", "b.c:leaf"), ("44", "110", "a.c:fact")])

    def test_tree(self):
        self.assertIn("""
172 (86.0%)    14  (7.0%)  main
110 (55.0%)    10  (5.0%)   fact
100 (50.0%)    10  (5.0%)    fact
 90 (45.0%)    20 (10.0%)     fact
 70 (35.0%)    70 (35.0%)      leaf
 34 (17.0%)     4  (2.0%)   even
 30 (15.0%)     3  (1.5%)    odd
 27 (13.5%)     4  (2.0%)     even
 23 (11.5%)     3  (1.5%)      odd
 20 (10.0%)    20 (10.0%)       leaf
 14  (7.0%)     2  (1.0%)   inlined [inlined]
 12  (6.0%)     9  (4.5%)    tail [jumped]
  3  (1.5%)     3  (1.5%)     handler [interrupted]
 18  (9.0%)    18  (9.0%)  [outside of known calls]
 10  (5.0%)    10  (5.0%)  leaf
""", self.shown("--tree"))
        self.assertNotIn("handler", self.shown("--tree", "--threshold=2"))

    def test_first_answer_fits_a_screen(self):
        """The frames that count most with what they call, and the functions that do so alone."""
        path = support.temporary_folder(self) / "events"
        path.write_text(HAND_MADE.read_text().split("fl=a.c")[0] + "".join(
            f"fl=a.c\nfn=f{n}\n1 {n}\n" for n in range(1, 101)) + "".join(
                f"fl=#! stack {n} in={max(n - 50, 0)} call=0:0x1:1 f{n} {n}\n"
                for n in range(1, 101)) + "summary: 5050 0 0 0\n")
        for view, shown, hidden in (("--tree", "f50\n", "f1\n"), ("--calls", "a.c:f100\n", "* a.c:f50\n")):
            with self.subTest(view):
                text = run([ASSAY, "annotate", view, "--threshold=0", path]).stdout
                self.assertLessEqual(len(text.splitlines()), 24)
                self.assertIn(shown, text)
                self.assertNotIn(hidden, text)
                self.assertRegex(text, r"\nand \d+ more above the threshold: see --top=N and --full\n")
        three = run([ASSAY, "annotate", "--calls", "--threshold=0", "--top=3", path]).stdout
        self.assertIn("and 97 more above", three)

    def test_lines_fit_on_a_page(self):
        path = support.temporary_folder(self) / "events"
        self.assertEqual(profile([PROGRAMS / "calling", "recursion"], plugin="used_bytes",
                                 out=path).returncode, 0)
        for option in ("--calls", "--tree"):
            lines = self.shown(option, path=path).split("Totals")[1].splitlines()
            too_long = [line for line in lines if len(line) > 80 and "/" not in line]
            self.assertEqual(too_long, [])

    def test_deep_recursion(self):
        path = support.temporary_folder(self) / "events"
        depth = 100_000
        path.write_text(HAND_MADE.read_text().split("fl=a.c")[0] + "fl=a.c\nfn=f\n" +
                        f"1 {depth}\n" + "".join(
                            f"fl=#! stack {n} in={n - 1} call=0:0x1:1 f 1\n"
                            for n in range(1, depth + 1)) + f"summary: {depth} 0 0 0\n")
        self.assertIn("100,000 (100.0%)  * a.c:f\n", self.shown("--calls", path=path))
        lines = self.shown("--tree", path=path).splitlines()
        self.assertEqual(lines[-2].split("%)")[-1],
                         "  " + 24 * " " + "+487 f [and what it calls]")
        self.assertLess(max(map(len, lines)), 100)

    def test_standard_input(self):
        for view in ("--calls", "--tree"):
            result = run([ASSAY, "annotate", "--full", view, "-"], input=HAND_MADE.read_text())
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(result.stdout.split("Totals")[1],
                             run([ASSAY, "annotate", "--full", view, HAND_MADE]).stdout.split("Totals")[1])

    def test_what_cannot_be_shown(self):
        without = ROOT / "tests" / "unit" / "data" / "cachegrind.out"
        for arguments, message in (
                (["--calls", without], "without contexts: run with --contexts"),
                (["--tree", without], "without contexts: run with --contexts"),
                (["--calls", "--diff", HAND_MADE, HAND_MADE], "leave out --diff"),
                (["--calls", "--mod-funcname=s/a/b/", HAND_MADE], "leave out --mod-funcname")):
            result = run([ASSAY, "annotate", *arguments], input=HAND_MADE.read_text())
            self.assertEqual((result.returncode, result.stdout), (125, ""))
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
