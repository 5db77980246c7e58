#!/usr/bin/env python3
"""assay export: real readers open what it writes, and find the counts of the events file."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import unittest
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import support
from support import (ASSAY, GEOMETRY, PLUGINS, PROGRAMS, ROOT, installed, needs, profile,
                     read_events, run, with_cycles)

try:
    import jsonschema
except ImportError:
    jsonschema = None

DATA = Path(__file__).parent / "data"
CACHEGRIND = ROOT / "tests" / "unit" / "data" / "cachegrind.out"
FLAMEGRAPH = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")  # of libdevel-nytprof-perl


def export(form, *words, **more):
    return run([ASSAY, "export", f"--format={form}", *words], **more)


def validate(document, schema):
    if jsonschema:
        jsonschema.validate(document, json.loads(Path(schema).read_text()))


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """Numbers and bytes of a protocol buffer's message, with their field numbers."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


class Profile(unittest.TestCase):
    """A run with counts by line, by instruction and by calling context."""

    @classmethod
    def setUpClass(cls):
        cls.folder = support.temporary_folder_of_class(cls)
        cls.path = cls.folder / "events"
        result = profile([PROGRAMS / "calling", "plain"], *GEOMETRY, "--dump-instr=yes",
                         "--references=yes", plugin=f"cache,{PLUGINS / 'contexts.so'}",
                         out=cls.path, env={**os.environ, "LD_BIND_NOW": "1"})
        assert result.returncode == 0, result.stderr
        cls.events = with_cycles(read_events(cls.path))

    def column(self, event):
        return self.events.events.index(event)

    def by_function(self, event) -> Counter:
        index = self.column(event)
        return Counter({name: counts[index] for name, counts in self.events.functions.items()
                        if counts[index]})

    def by_context(self, event) -> Counter:
        """Counts by innermost function, as the stack lines have them."""
        index, found = self.column(event), Counter()
        column = index - (self.events.events[0] == "Cy")  # in the file
        for remark in self.events.remarks:
            stack = re.match(r'#! stack \d+ in=\d+ \S+ ("(?:[^"\\]|\\.)*"|\S+)(.*)$', remark)
            counts = stack[2].split() if stack else []
            if column < len(counts) and int(counts[column]):
                found[stack[1].strip('"')] += int(counts[column])
        found["[outside of known calls]"] = self.events.summary[index] - sum(found.values())
        return +found

    def exported(self, form, *words) -> str:
        result = export(form, *words, self.path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def check_json(self, form, schema, *words):
        document = json.loads(self.exported(form, *words))
        validate(document, schema)
        return document


class Exports(Profile):
    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.exported("csv"))))
        for event in self.events.events:
            found = Counter()
            for row in rows:
                found[row["function"]] += int(row[event])
            self.assertEqual(+found, self.by_function(event))
        chosen = csv.DictReader(io.StringIO(self.exported("csv", "--event=Dw,Ir")))
        self.assertEqual(chosen.fieldnames, ["file", "line", "function", "Dw", "Ir"])

    def test_json(self):
        document = self.check_json("json", ROOT / "docs/reference/export-schema.json")
        self.assertEqual([event["total"] for event in document["events"]], self.events.summary)
        found = Counter()
        for function in document["functions"]:
            for line in function["lines"]:
                found[function["name"]] += line["counts"][0]
                self.assertEqual([sum(column) for column in
                                  zip(*(at["counts"] for at in line["instructions"]))],
                                 line["counts"])
        self.assertEqual(+found, self.by_function("Cy"))
        refs = self.column("Refs")
        in_contexts = Counter()
        for context in document["contexts"]:
            in_contexts[context["function"]] += context["counts"][refs]
        in_contexts["[outside of known calls]"] = (self.events.summary[refs] -
                                                  sum(in_contexts.values()))
        self.assertEqual(+in_contexts, self.by_context("Refs"))

    def test_folded_by_context(self):
        found = Counter()
        paths = set()
        for line in self.exported("folded", "--event=Refs").splitlines():
            stack, _, count = line.rpartition(" ")
            paths.add(stack)
            found[stack.rpartition(";")[2]] += int(count)
        self.assertEqual(found, self.by_context("Refs"))
        self.assertTrue(any(path.endswith(";plain;twice;leaf") for path in paths), paths)

    def test_folded_by_line(self):
        found = Counter()
        for line in self.exported("folded", "--event=Ir").splitlines():  # of Ir, which has no contexts
            stack, _, count = line.rpartition(" ")
            frames = stack.split(";")
            found[frames[-2 if re.search(r":[0-9?]+$", frames[-1]) else -1]] += int(count)
        self.assertEqual(found, self.by_function("Ir"))

    def test_speedscope(self):
        document = self.check_json("speedscope", DATA / "speedscope.schema.json")
        frames = document["shared"]["frames"]
        self.assertEqual([each["name"] for each in document["profiles"]], self.events.events)
        for each in document["profiles"]:
            stacks = Counter()
            for sample, weight in zip(each["samples"], each["weights"], strict=True):
                innermost = -1 if each["name"] in ("Refs", "Calls") else -2  # before the line
                stacks[frames[sample[innermost]]["name"]] += weight
            self.assertEqual(stacks, self.expected(each["name"]))

    def expected(self, event):
        return self.by_context(event) if event in ("Refs", "Calls") else self.by_function(event)

    def test_firefox_profiler(self):
        document = self.check_json("firefox", DATA / "firefox.schema.json")
        self.assertEqual([thread["name"] for thread in document["threads"]], self.events.events)
        for thread in document["threads"]:
            for value in thread.values():  # all columns of a table have its length
                if isinstance(value, dict):
                    self.assertEqual({len(column) for column in value.values()
                                      if isinstance(column, list)}, {value["length"]})
            names = [thread["stringArray"][i] for i in thread["funcTable"]["name"]]
            found = Counter()
            for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
                frame = thread["stackTable"]["frame"][stack]
                found[names[thread["frameTable"]["func"][frame]]] += weight
            self.assertEqual(found, self.expected(thread["name"]))
            for i, prefix in enumerate(thread["stackTable"]["prefix"]):
                self.assertTrue(prefix is None or prefix < i)

    @needs("callgrind_annotate")
    def test_callgrind_annotate(self):
        out = self.folder / "callgrind.out"
        self.exported("callgrind", "-o", out)
        for event in ("Ir", "D1mr"):
            self.assertEqual(self.callgrind_annotate(out, event), self.by_function(event))
        inclusive = self.callgrind_annotate(out, "Refs", "--inclusive=yes")
        own = self.by_context("Refs")
        self.assertEqual(inclusive["leaf"], own["leaf"])
        self.assertEqual(inclusive["twice"], own["twice"] + 15 * own["leaf"] // 16)
        self.assertEqual(inclusive["plain"], own["plain"] + own["twice"] + own["leaf"])

    def callgrind_annotate(self, path, event, *options) -> Counter:
        # Names of files below the current folder would be shortened, but not those of callees.
        shown = run(["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no",
                     f"--show={event}", f"--sort={event}", *options, path], cwd="/")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(shown.stderr, "")
        found = Counter()
        for line in shown.stdout.splitlines():
            row = re.match(r"\s*([\d,]+)\s+\S+?:(.*?)(?: \[.*\])?$", line)
            if row:
                found[row[2]] += int(row[1].replace(",", ""))
        return +found

    def test_pprof_s_messages(self):
        out = self.folder / "profile.pb.gz"
        self.exported("pprof", "-o", out)
        self.assertEqual(gzip.decompress(out.read_bytes()),
                         gzip.decompress(run_bytes([ASSAY, "export", "--format=pprof",
                                                    self.path])))
        found = {}
        for number, value in fields(gzip.decompress(out.read_bytes())):
            found.setdefault(number, []).append(value)
        texts = [text.decode() for text in found[6]]
        self.assertEqual(texts[0], "")
        self.assertEqual([texts[dict(fields(each))[1]] for each in found[1]], self.events.events)
        totals = [sum(column) for column in
                  zip(*(packed(dict(fields(sample))[2]) for sample in found[2]))]
        self.assertEqual(totals, self.events.summary)
        ids = [{dict(fields(message))[1] for message in found[field]} for field in (4, 5)]
        for location in found[4]:
            self.assertIn(dict(fields(dict(fields(location))[4]))[1], ids[1])
        for sample in found[2]:
            self.assertLessEqual(set(packed(dict(fields(sample))[1])), ids[0])

    @needs("go")
    def test_pprof_keeps_names_of_templates_apart(self):
        path, out = self.folder / "names", self.folder / "names.pb.gz"
        names = ["lin::multiply<double>", "lin::multiply<float>",
                 "(anonymous namespace)::move_particles(int)", "plain"]
        path.write_text("events: Ir\nfl=a.cpp\n" + "".join(f"fn={name}\n1 5\n" for name in names) +
                        "summary: 20\n")
        self.assertEqual(export("pprof", "-o", out, path).returncode, 0)
        shown = run(["go", "tool", "pprof", "-top", out],
                    env={**os.environ, "HOME": str(self.folder), "GOTOOLCHAIN": "local"})
        for name in names:
            self.assertRegex(shown.stdout, rf"(?m) {re.escape(name)}$")

    READABLE = {
        "int (anonymous namespace)::twice<int>(int)": "_ZN12_GLOBAL__N_15twiceIiEET_S1_",
        "double (anonymous namespace)::twice<double>(double)": "_ZN12_GLOBAL__N_15twiceIdEET_S1_",
        "Derived::Derived(int)": "_ZN7DerivedC1Ei"}  # and C2, which comes behind it

    def test_linkage_names(self):
        """tests/programs/hosted/linkage_names.cpp, with what the linker calls its functions."""
        path, merged, twice = (self.folder / name for name in ("linked", "merged", "twice"))
        result = profile([PROGRAMS / "linkage_names"], "--dump-instr=yes", out=path)
        self.assertEqual(result.returncode, 0, result.stderr)
        own = self.linkage_names(path)
        for name, linkage in self.READABLE.items():
            self.assertEqual(own.get(name), linkage)
        for name in ("main", "plain"):
            self.assertIn(name, read_events(path).functions)
            self.assertNotIn(name, own)
        # Both constructors have been executed, and are one function here.
        self.assertEqual(path.read_text().count("linkage _ZN7DerivedC"), 1)
        self.assertEqual(run([ASSAY, "merge", "-o", merged, path, path]).returncode, 0)
        self.assertEqual(self.linkage_names(merged), own)
        # Of several, the first is kept, whichever file it is from.
        other = self.folder / "other"
        other.write_text(path.read_text().replace("_ZN7DerivedC1Ei", "_ZN7DerivedC2Ei"))
        for files in ([path, other], [other, path]):
            self.assertEqual(run([ASSAY, "merge", "-o", twice, *files]).returncode, 0)
            self.assertEqual(self.linkage_names(twice), own)
        for file in (path, merged):
            document = json.loads(export("json", file).stdout)
            validate(document, ROOT / "docs/reference/export-schema.json")
            self.assertEqual([(each["function"], each["name"])
                              for each in document["linkageNames"]], sorted(own.items()))
            self.check_system_names(file, own)

    def linkage_names(self, path) -> dict:
        """By function, each of which has one at most."""
        found, function = {}, None
        for line in path.read_text().splitlines():
            if line.startswith("fn="):
                function = line.removeprefix("fn=")
            elif line.startswith("fl=#! linkage "):
                self.assertNotIn(function, found)
                found[function] = line.removeprefix("fl=#! linkage ")
        return found

    def check_system_names(self, path, names):
        out = self.folder / "linked.pb.gz"
        self.assertEqual(export("pprof", "-o", out, path).returncode, 0)
        messages = list(fields(gzip.decompress(out.read_bytes())))
        texts = [value.decode() for number, value in messages if number == 6]
        functions = [dict(fields(value)) for number, value in messages if number == 5]
        found = {texts[each[2]]: texts[each.get(3, 0)] for each in functions}
        for name, system_name in found.items():
            self.assertEqual(system_name, names.get(
                name, "" if re.search(r"[<(]", name) else name))
        self.assertLessEqual(set(self.READABLE), set(found))
        if not installed("go"):
            return
        for options, shown_names in (
                ([], self.READABLE),
                (["-symbolize=remote:demangle=templates"],
                 ["(anonymous namespace)::twice<double>", "(anonymous namespace)::twice<int>",
                  "Derived::Derived", "plain"])):
            shown = run(["go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0",
                         "-edgefraction=0", *options, out],
                        env={**os.environ, "HOME": str(self.folder), "GOTOOLCHAIN": "local"})
            self.assertEqual(shown.returncode, 0, shown.stderr)
            for name in shown_names:
                self.assertRegex(shown.stdout, rf"(?m) {re.escape(name)}$")

    @needs("go")
    def test_go_tool_pprof(self):
        out = self.folder / "profile.pb.gz"
        self.exported("pprof", "-o", out)
        for event in ("Ir", "Refs"):
            shown = run(["go", "tool", "pprof", "-top", "-functions", f"-sample_index={event}",
                         "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", out],
                        env={**os.environ, "HOME": str(self.folder),
                             "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"})
            self.assertEqual(shown.returncode, 0, shown.stderr)
            found = Counter()
            for line in shown.stdout.split("cum%")[1].splitlines()[1:]:
                words = line.split(None, 5)
                found[re.sub(r" \((partial-)?inline\)$", "", words[5])] += int(words[0])
            self.assertEqual(+found, self.expected(event))


def run_bytes(argv) -> bytes:
    return subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=60, check=True).stdout


class Inputs(unittest.TestCase):
    def test_inlined_functions_are_frames(self):
        """tests/programs/hosted/inlining.c: what each function reads is known."""
        folder = support.temporary_folder(self)
        path = folder / "events"
        result = profile([PROGRAMS / "inlining"], "--dump-instr=yes", plugin="used_bytes", out=path)
        self.assertEqual(result.returncode, 0, result.stderr)
        merged = folder / "merged"
        self.assertEqual(run([ASSAY, "merge", "-o", merged, path]).returncode, 0)
        for file in (path, merged):
            stacks = dict(line.rsplit(" ", 1) for line in export(
                "folded", "--event=ReadB", file).stdout.splitlines() if ";work" in line)
            self.assertEqual({stack[stack.index("work"):]: int(count) // 64
                              for stack, count in stacks.items()}, self.INLINING)
            self.assertEqual(self.calls_within(export("callgrind", "--event=ReadB", file).stdout), {
                ("work", "sum_all", 33): 61, ("sum_all", "sum_cells", 28): 60,
                ("work", "sum_cells", 34): 30, ("sum_cells", "leaf", 23): 30})
        contexts = json.loads(export("json", path).stdout)
        validate(contexts, ROOT / "docs/reference/export-schema.json")
        self.assertEqual({context["inlinedAtLine"] for context in contexts["contexts"]
                          if context["function"] in ("sum_all", "sum_cells")}, {28, 33, 34})
        self.check_traces(path, r"leaf\n +sum_cells \(inline\)\n +sum_all \(inline\)\n +work\n")

    # Lines that each reads, by path from main.
    JUMPED_TO = {"to_tail": 1, "to_tail;tail": 100, "to_tail;tail;read_inlined": 40,
                 "to_tail;tail;read_called": 10, "to_library": 1, "read_in_library": 50,
                 "to_library;read_in_library": 20}

    def test_functions_that_are_jumped_to_are_frames(self):
        """tests/programs/hosted/jumped_to.c. The innermost function is that of the instruction."""
        folder = support.temporary_folder(self)
        path, merged = folder / "events", folder / "merged"
        for options in (["--dump-instr=yes", "--cache=64,1,64"], []):
            result = profile([PROGRAMS / "jumped_to"], *options, plugin="used_bytes", out=path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(run([ASSAY, "merge", "-o", merged, path]).returncode, 0)
            for file in (path, merged):
                stacks = self.folded(file)
                if not options:
                    self.assertEqual({stack.partition(";main;")[2]: count // 64
                                      for stack, count in stacks.items()
                                      if ";main;" in stack and "@plt" not in stack
                                      and "_dl" not in stack}, self.JUMPED_TO)
                self.check_leaves(stacks, read_events(file))
        contexts = json.loads(export("json", path).stdout)
        validate(contexts, ROOT / "docs/reference/export-schema.json")
        self.assertEqual({context["function"] for context in contexts["contexts"]
                          if context.get("jumpedAtLine") == 0} & {"tail", "to_tail", "main",
                                                                  "read_in_library"},
                         {"tail", "read_in_library"})
        self.check_other_formats(path)

    @staticmethod
    def folded(path) -> dict:
        return {stack: int(count) for stack, count in (
            line.rsplit(" ", 1) for line in export("folded", "--event=ReadB",
                                                   path).stdout.splitlines())}

    def check_leaves(self, stacks, events):
        """Each function counts no more as the innermost of stacks than it does by itself; and no
        stub of the linkage table is above another function."""
        leaves = Counter()
        for stack, count in stacks.items():
            leaves[stack.rpartition(";")[2]] += count
            self.assertNotIn("@plt;", stack)
        del leaves["[outside of known calls]"]
        flat = {name.replace(" ", "_"): counts[0] for name, counts in events.functions.items()}
        self.assertEqual({name: count for name, count in leaves.items()
                          if count > flat.get(name, 0)}, {})

    def check_other_formats(self, path):
        names = [thread["stringArray"] for thread in
                 json.loads(export("firefox", "--event=ReadB", path).stdout)["threads"]]
        self.assertIn("tail", names[0])
        calls = self.calls_within(export("callgrind", "--event=ReadB", path).stdout,
                                  callees=("tail", "read_in_library"))
        self.assertEqual(calls, {("to_tail", "tail", 0): 150, ("main", "read_in_library", 47): 50,
                                 ("to_library", "read_in_library", 0): 20})
        self.check_traces(path, r" read_inlined \(inline\)\n +tail\n +to_tail\n +main\n")

    def check_traces(self, path, expected, *options):
        """As pprof shows them."""
        if not installed("go"):
            return
        out = path.parent / "exported.pb.gz"
        export("pprof", *options, "-o", out, path)
        shown = run(["go", "tool", "pprof", "-traces", out],
                    env={**os.environ, "HOME": path.parent})
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, expected)

    def test_inlined_functions_without_contexts(self):
        """Events that no profiler counts by context: each function with those inlined into it."""
        folder = support.temporary_folder(self)
        path, merged = folder / "events", folder / "merged"
        for options in ([], ["--dump-instr=yes"]):
            result = profile([PROGRAMS / "inlining"], *GEOMETRY, *options, out=path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(run([ASSAY, "merge", "-o", merged, path, path]).returncode, 0)
            own = self.by_path(path)
            self.assertEqual(set(own), {"work", "work;sum_all", "work;sum_all;sum_cells",
                                        "work;sum_cells"})
            self.assertEqual(self.by_path(merged), {stack: 2 * count
                                                    for stack, count in own.items()})
            within = Counter({("work", "sum_cells", 34): own["work;sum_cells"],
                              ("sum_all", "sum_cells", 28): own["work;sum_all;sum_cells"]})
            within["work", "sum_all", 33] = own["work;sum_all"] + within["sum_all", "sum_cells", 28]
            self.assertEqual(self.calls_within(export("callgrind", "--event=Ir", path).stdout, 1),
                             within)
            document = json.loads(export("json", path).stdout)
            validate(document, ROOT / "docs/reference/export-schema.json")
            self.check_sites(document, own)
            self.check_firefox(json.loads(export("firefox", "--event=Ir", path).stdout), own)
            self.check_traces(path, r" sum_cells \(inline\)\n +sum_all \(inline\)\n +work\n",
                              "--event=Ir")
        difference = Counter()
        for line in export("folded", "--event=Ir", "--diff", path, merged).stdout.splitlines():
            stack, old, new = line.rsplit(" ", 2)
            self.assertEqual(2 * int(old), int(new))
            if stack.startswith("work"):
                difference[stack] += int(old)
        self.assertEqual(difference, own)

    @staticmethod
    def by_path(path) -> dict:
        """Ir of stacks that begin with work, without their lines."""
        found = Counter()
        for line in export("folded", "--event=Ir", path).stdout.splitlines():
            stack, _, count = line.rpartition(" ")
            if stack.startswith("work"):
                found[stack.rpartition(";")[0]] += int(count)
        return found

    def check_sites(self, document, own):
        index = [event["name"] for event in document["events"]].index("Ir")
        sites = [None, *document["sites"]]
        names = {(site["function"], site["line"]): number
                 for number, site in enumerate(sites) if site}
        inner = names["sum_all", 28]
        self.assertEqual(sites[sites[inner]["parent"]]["line"], 33)
        cells = next(each for each in document["functions"] if each["name"] == "sum_cells")
        self.assertEqual(sum(part["counts"][index] for line in cells["lines"]
                             for part in line["inlined"] if part["site"] == inner),
                         own["work;sum_all;sum_cells"])
        instructions = [at for line in cells["lines"] for at in line["instructions"]]
        if instructions:
            self.assertEqual(sum(at["counts"][index] for at in instructions
                                 if at["site"] == inner), own["work;sum_all;sum_cells"])

    def check_firefox(self, document, own):
        thread = document["threads"][0]
        frames, stacks = thread["frameTable"], thread["stackTable"]
        found = Counter()
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            names, depths = [], []
            while stack is not None:
                frame = stacks["frame"][stack]
                name = thread["funcTable"]["name"][frames["func"][frame]]
                names.insert(0, thread["stringArray"][name])
                depths.insert(0, frames["inlineDepth"][frame])
                stack = stacks["prefix"][stack]
            self.assertEqual(depths, list(range(len(depths))))
            found[";".join(names)] += weight
        self.assertEqual({stack: count for stack, count in found.items()
                          if stack.startswith("work")}, own)

    # Lines that each reads, by path.
    INLINING = {"work": 1, "work;sum_all": 1, "work;sum_all;sum_cells": 40, "work;sum_cells": 20,
                "work;sum_all;sum_cells;leaf": 20, "work;sum_cells;leaf": 10}

    @staticmethod
    def calls_within(text, unit=64, callees=("sum_all", "sum_cells", "leaf")) -> dict:
        """(caller, callee, line) of the calls of `callees`: inclusive cost in cache lines, or what
        `unit` is."""
        names, found = {}, Counter()
        function = callee = None
        lines = iter(text.splitlines())
        for line in lines:
            if name := re.match(r"(c?fn)=(\(\d+\)) ?(.*)", line):
                names.setdefault(name[2], name[3])
                if name[1] == "fn":
                    function = names[name[2]]
                else:
                    callee = names[name[2]]
            elif line.startswith("calls=") and callee in callees:
                *_, at, cost = next(lines).split()
                found[function, callee, int(at)] += int(cost) // unit
        return found

    def test_several_files_add_up(self):
        once, twice = (csv.DictReader(io.StringIO(export("csv", *paths).stdout))
                       for paths in ([CACHEGRIND], [CACHEGRIND, CACHEGRIND]))
        for a, b in zip(once, twice, strict=True):
            self.assertEqual(2 * int(a["Ir"]), int(b["Ir"]))

    def test_cachegrind_s_inlined_code(self):
        """fi= keeps the function: one function with lines of two files."""
        folder = support.temporary_folder(self)
        path = folder / "old"
        path.write_text("desc: a\ncmd: ./t\nevents: Ir\nfl=a.c\nfn=main\n1 5\nfi=a.h\n7 2\n"
                        "fe=a.c\n2 3\nsummary: 10\n")
        document = json.loads(export("json", path).stdout)
        self.assertEqual([(line["file"], line["line"], line["counts"])
                          for line in document["functions"][0]["lines"]],
                         [("a.c", 1, [5]), ("a.c", 2, [3]), ("a.h", 7, [2])])
        self.assertIn("\n1 5\n2 3\nfi=(2) a.h\n7 2\n", export("callgrind", path).stdout)

    def test_callgrind_names_end_where_their_lines_do(self):
        folder = support.temporary_folder(self)
        path, out = folder / "lines", folder / "lines.callgrind"
        path.write_text("cmd: x\nevents: Ir\nfl=#! version 1\nfl=#! object 0 x\nfl=a.c\nfn=f\n1 5\n"
                        "fl=#! stack 1 in=0 call=0:0x1 \"g\\nfn=(9)\" 2\n"
                        "fl=#! stack 2 in=1 call=0:0x1 \"\" 3\nsummary: 5\n")
        self.assertEqual(export("callgrind", "-o", out, path).returncode, 0)
        self.assertIn("\nfn=(2) g\\nfn=(9)\n", out.read_text())
        self.assertIn("\ncfn=(3) ???\n", out.read_text())
        read = run([ASSAY, "merge", out])
        self.assertEqual((read.returncode, read.stdout.splitlines()[-1]), (0, "summary: 5"),
                         read.stderr)

    def test_calls_within_a_file_do_not_name_it_again(self):
        folder = support.temporary_folder(self)
        path, out = folder / "calls", folder / "out"
        path.write_text("events: Ir\nfl=a.c\nfn=main\n1 10\ncfn=f\ncalls=3 5\n2 60\n"
                        "cfi=b.c\ncfn=g\ncalls=1 5\n3 20\nfn=f\n5 60\nfl=b.c\nfn=g\n9 20\n")
        self.assertEqual(export("callgrind", "-o", out, path).returncode, 0)
        self.assertEqual(re.findall(r"cfi=.*", out.read_text()), ["cfi=(2) b.c"])
        again = run([ASSAY, "annotate", "--calls", "--json", out])
        self.assertEqual(json.loads(again.stdout)["calls"],
                         json.loads(run([ASSAY, "annotate", "--calls", "--json", path]).stdout)["calls"])

    def test_hostile_names(self):
        folder = support.temporary_folder(self)
        path = folder / "hostile"
        path.write_bytes(b'desc: a\ncmd: ./t\nevents: Ir\nfl=a,"b\xff.c\nfn=f;"</script>\\\n1 5\n'
                         b"summary: 5\n")
        row = list(csv.reader(io.StringIO(export("csv", path).stdout)))[1]
        self.assertEqual(row[2:], ['f;"</script>\\', "5"])
        for form in ("json", "speedscope", "firefox"):
            self.assertIn('f;"</script>\\', str(json.loads(export(form, path).stdout))
                          .replace("\\\\", "\\"))
        self.assertEqual(export("folded", path).stdout.count(";"), 1)
        self.assertEqual(export("pprof", "-o", folder / "out.pb.gz", path).returncode, 0)
        texts = [value.decode() for number, value in fields(gzip.decompress(
            (folder / "out.pb.gz").read_bytes())) if number == 6]
        self.assertIn('a,"b\\xff.c', texts)
        path.write_text("desc: a\ncmd: ./t\nevents: Ir\nfl=a.c\nfn=f 2.5\n1 5\nfn=2\n3 1\nsummary: 6\n")
        self.assertEqual(export("folded", "--diff", path, path).stdout, "2 1 1\nf_2.5 5 5\n")

    def test_deep_stacks(self):
        """The middle of a stack is left out."""
        depth, half = 50_000, 256
        path = support.temporary_folder(self) / "deep"
        contexts = "".join(f"fl=#! stack {i} in={i - 1} call=0:{i:#x} f{i} 1\n"
                           for i in range(1, depth + 1))
        path.write_text("desc: a\ncmd: ./deep\nevents: Ir\nfl=#! version 1\nfl=#! event Ir\n"
                        f"fl=#! object 0 /deep\nfl=a\nfn=f\n1 {depth}\n{contexts}"
                        f"summary: {depth}\n")
        lines = export("folded", path).stdout.splitlines()
        for last in (1, half, 2 * half, 2 * half + 1, 1000, depth):
            outer = [f"f{i}" for i in range(1, last + 1)]
            if last > 2 * half:
                outer[half:last - half] = ["[frames left out]"]
            self.assertEqual(lines[last - 1], ";".join(outer) + " 1")

    def test_counts_beyond_those_of_pprof(self):
        path = support.temporary_folder(self) / "large"
        for total, status in ((2**63 - 1, 0), (2**63, 125)):
            path.write_text(f"desc: a\ncmd: a\nevents: Ir\nfl=a\nfn=f\n1 {total}\nsummary: {total}\n")
            result = export("pprof", "-o", path.with_suffix(".pb.gz"), path)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertEqual("exceeds the 63 bits" in result.stderr, status != 0)
            self.assertEqual(export("csv", path).stdout.split(",")[-1].strip(), str(total))

    def test_calls_inlined_deeply(self):
        """In an order in which each function is known to be in the object only after the next."""
        depth = 30_000
        path = support.temporary_folder(self) / "deep"
        functions = "".join(f"fl=a\nfn=f{i}\n1 1\n" for i in range(depth, 1, -1))
        contexts = "".join(f"fl=#! stack {i} in={i - 1} inlined=3 f{i} 1\n"
                           for i in range(2, depth + 1))
        path.write_text("desc: a\ncmd: ./deep\nevents: Ir\nfl=#! version 1\nfl=#! event Ir\n"
                        f"fl=#! object 0 /deep\n{functions}fl=a\nfn=f1\n1 1\n"
                        "fl=#! at 0:0x1 1 1\nfl=#! stack 1 in=0 call=0:0x1 f1 1\n"
                        f"{contexts}summary: {depth}\n")
        result = run([ASSAY, "export", "--format=callgrind", path], timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("ob=(2)", result.stdout)

    def test_folded_difference(self):
        pair = [DATA / "stacks-old.events", DATA / "stacks-new.events"]
        self.assertEqual(export("folded", "--diff", *pair).stdout,
                         "main 5 5\nmain;one;leaf 20 60\nmain;leaf 10 10\n")
        self.assertEqual(export("folded", "--diff", "--event=Dr", *pair).stdout,
                         "main;one;leaf 4 4\n")
        flat = [support.temporary_folder(self) / path.name for path in pair]
        for path, copy in zip(pair, flat):
            copy.write_text("".join(line for line in path.read_text().splitlines(True)
                                    if "stack" not in line))
        self.assertEqual(export("folded", "--diff", *flat).stdout, "leaf 30 70\nmain 5 5\n")

    @unittest.skipUnless(FLAMEGRAPH.exists(), "no flamegraph.pl")
    def test_flamegraph_draws_folded_stacks(self):
        old, new = DATA / "stacks-old.events", DATA / "stacks-new.events"
        self.assertEqual(self.frames_drawn(export("folded", new).stdout), {
            "all (75 samples, 100%)", "main (75 samples, 100.00%)", "one (60 samples, 80.00%)",
            "leaf (60 samples, 80.00%)", "leaf (10 samples, 13.33%)"})
        # 40 of the new profile's 75 are more than before.
        self.assertEqual(self.frames_drawn(export("folded", "--diff", old, new).stdout), {
            "all (75 samples, 100%)", "main (75 samples, 100.00%; 0.00%)",
            "one (60 samples, 80.00%; 0.00%)", "leaf (60 samples, 80.00%; +53.33%)",
            "leaf (10 samples, 13.33%; 0.00%)"})
        path = support.temporary_folder(self) / "hostile"
        path.write_text("desc: a\ncmd: ./t\nevents: Ir\nfl=a.c\nfn=f;\"</script>\\ 2.5\n1 5\n"
                        "summary: 5\n")
        self.assertIn("a.c:1 (5 samples, 100.00%)", self.frames_drawn(export("folded", path).stdout))

    def frames_drawn(self, folded) -> set:
        """The titles of the rectangles in flamegraph.pl's picture."""
        result = run(["perl", FLAMEGRAPH], input=folded)
        self.assertEqual(result.returncode, 0, result.stderr)
        picture = ElementTree.fromstring(result.stdout)
        return {title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")}

    def test_what_cannot_be_exported(self):
        folder = support.temporary_folder(self)
        big = folder / "big"
        big.write_text(f"desc: a\ncmd: ./t\nevents: Ir Dr\nfl=a\nfn=f\n1 {1 << 63}\n"
                       f"summary: {1 << 63} 0\n")
        other = folder / "other"
        other.write_text("desc: a\ncmd: ./t\nevents: Xx\nfl=a\nfn=f\n1 1\nsummary: 1\n")
        for words, error in (
                (["--format=svg", big], "--format=svg: there is no such format; give one of"),
                (["--format=csw", big], "(did you mean csv?)"),
                (["--format=csv", "--event=It", big], "--event=It: the profile has no such event"),
                (["--format=folded", "--event=Ir,Dr", big], "takes one event"),
                (["--format=pprof", big], "exceeds the 63 bits of pprof's format"),
                (["--format=csv", big, other], "differ from those of"),
                (["--format=csv", "--diff", big, big], "only --format=folded has two"),
                (["--format=folded", "--diff", big], "--diff compares two files, but 1"),
                (["--format=folded", "--diff", big, other], "differ from those of"),
                (["--format=csv"], "FILE is required"),
                (["--format=csv", "/nonexistent"], "cannot open '/nonexistent'")):
            result = run([ASSAY, "export", *words])
            self.assertEqual(result.returncode, 125)
            self.assertEqual(result.stderr.count("\n"), 1)
            self.assertIn(error, result.stderr)
        self.assertIn("speedscope", run([ASSAY, "export", "--help"]).stdout)


if __name__ == "__main__":
    unittest.main()
