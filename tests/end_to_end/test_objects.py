#!/usr/bin/env python3
"""Data objects of programs whose memory is known: tests/programs/hosted/objects.c."""

import json
import os
import re
import shutil
import unittest
from pathlib import Path

import support
from support import ASSAY, PROGRAMS, profile, run

WORDS = 1000
VECTORS = """#include <vector>
__attribute__((noinline)) void fill(std::vector<long>& all) {
    for (long i = 0; i < 1000; ++i) *(volatile long*)&all[i] = i;
}
__attribute__((noinline)) std::vector<long> make(int size) {
    return std::vector<long>(size);
}
int main() {
    std::vector<long> all = make(1000);
    fill(all);
}
"""
SIZE = 8 * WORDS
BLOCKS = {  # as groups() has them
    ("heap", "allocate", 1, SIZE): WORDS,
    ("heap", "second_site", 3, 3 * SIZE): 3 * WORDS,
    ("heap", "growing", 1, SIZE): WORDS,      # realloc
    ("heap", "growing", 1, 2 * SIZE): WORDS,  # reallocarray
    ("heap", "aligned", 1, SIZE): 3 * WORDS}


class Objects(unittest.TestCase):
    def profile(self, *program, options=(), plugin="effective_address", **more):
        self.out = support.temporary_folder(self) / "events"
        result = profile(program, "--objects", *options, out=self.out, plugin=plugin, **more)
        self.assertEqual(result.returncode, 0, result.stderr)

    def annotate(self, *options):
        result = run([ASSAY, "annotate", "--json", "--by=object", "--threshold=0", *options,
                      self.out])
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def groups(self, event="Refs", functions=("fill", "walk")):
        """(class, name without its line, blocks, bytes): the references of those functions."""
        document = self.annotate()
        names = [column["name"] for column in document["events"]]
        column = names.index(event)
        found = {}
        groups = document["groups"]
        for group in groups + [inner for outer in groups for inner in outer["inner"]]:
            attributes = group["attributes"]
            count = sum(line["counts"][column] for line in group["lines"]
                        if line["function"] in functions)
            key = (attributes["class"], group["name"].split(" (")[0],
                   int(attributes.get("blocks", 0)), int(attributes.get("bytes", 0)))
            if count:
                found[key] = found.get(key, 0) + count
        # Each call reads the address to return to.
        return {key: count for key, count in found.items() if count >= WORDS}

    def test_blocks(self):
        """By where they were allocated: each block of a site counts for it."""
        self.profile(PROGRAMS / "objects", "blocks")
        self.assertEqual(self.groups(), BLOCKS)

    @support.needs("g++")
    def test_sites_are_in_own_code(self):
        """A block of a std::vector belongs to the function that has the vector."""
        folder = support.temporary_folder(self)
        source = folder / "vectors.cpp"
        source.write_text(VECTORS)
        for level in ("-O0", "-O2"):
            built = run(["g++", level, "-g", source, "-o", folder / "vectors"])
            self.assertEqual(built.returncode, 0, built.stderr)
            self.profile(folder / "vectors")
            found = {key[1] for key in self.groups(functions=("fill(std::vector<long, std::allocator<long> >&)", "fill"))}
            self.assertIn("make(int)", found, level)
            text = run([ASSAY, "annotate", "--by=object", "--full", self.out]).stdout
            self.assertRegex(text, r"heap +make \(vectors.cpp:\d+\), 8,000 bytes < main")
        self.profile(folder / "vectors", options=["--own=/usr/include/c++"])
        self.assertRegex(run([ASSAY, "annotate", "--by=object", "--full", self.out]).stdout,
                         r"heap +std::\S+ \(\w+.h:\d+\), 8,000 bytes")

    def test_other_allocators(self):
        """Their functions are known by the same names, wherever they are."""
        for library in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"):
            path = Path("/usr/lib/x86_64-linux-gnu") / library
            with self.subTest(library):
                if not path.exists():
                    self.skipTest("not installed")
                self.profile(PROGRAMS / "objects", "blocks",
                             env={**os.environ, "LD_PRELOAD": str(path)})
                self.assertEqual(self.groups(), BLOCKS)

    def test_static_programs(self):
        compiler = shutil.which("musl-gcc")
        source = Path(__file__).parent.parent / "programs" / "hosted" / "objects.c"
        for command in (["gcc"], [compiler]):
            with self.subTest(command[0]):
                if not command[0]:
                    self.skipTest("not installed")
                program = support.temporary_folder(self) / "static"
                built = run([*command, "-D_GNU_SOURCE", "-O1", "-g", "-fno-inline", "-static",
                             source, "-o", program, "-pthread"])
                self.assertEqual(built.returncode, 0, built.stderr)
                self.profile(program, "blocks")
                self.assertEqual(self.groups(), BLOCKS)

    def test_all_is_told(self):
        """Every event of data is of some object."""
        self.profile(PROGRAMS / "objects", "blocks", plugin="cache")
        document = self.annotate()
        names = [column["name"] for column in document["events"]]
        for column, name in enumerate(names):
            total = document["totals"][column]
            told = sum(group["counts"][column] for group in document["groups"])
            if name != "Cy":  # also of instructions, which no object executes
                self.assertEqual(told, total if name[0] == "D" else 0, name)

    def test_merged_profiles(self):
        """Twice the same profile has twice the counts, of the same objects."""
        self.profile(PROGRAMS / "objects", "blocks")
        once = {(kind, name): count for (kind, name, *_), count in self.groups().items()}
        before = self.annotate()["groups"][0]["callers"]
        merged = self.out.parent / "merged"
        result = run([ASSAY, "merge", self.out, self.out, "-o", merged])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.out = merged
        twice = {(kind, name): count for (kind, name, *_), count in self.groups().items()}
        self.assertEqual(twice, {key: 2 * count for key, count in once.items()})
        self.assertEqual(self.annotate()["groups"][0]["callers"], before)

    def test_lives(self):
        """In instructions; a turn of the program's loop has two."""
        turns, between = 2_000_000, 50_000
        for options in ([], ["--contexts"], ["--from-instruction=100", "--to-instruction=100000000"]):
            with self.subTest(options=options):
                self.profile(PROGRAMS / "objects", "lives", options=options)
                found = {group["name"].split(" (")[0]: {
                    key: int(value) for key, value in group["attributes"].items() if value.isdigit()}
                    for group in self.annotate()["groups"]}
                early, late, left = (found[name] for name in
                                     ("used_early", "used_until_the_end", "never_freed"))
                self.assertIn(early["lifetimes"] - 2 * turns, range(between))
                self.assertEqual(early["last"] - early["first"], early["lifetimes"])
                self.assertLess(early["touched"], between)
                self.assertEqual(late["blocks"], 2)
                self.assertIn(late["lifetimes"] - 2 * turns, range(between))
                self.assertIn(late["lifetimes"] - late["touched"], range(turns // 5))  # estimated
                self.assertIn(late["last"] - late["first"] - 2 * turns, range(between))
                self.assertEqual(left["left"], 8000)
                self.assertNotIn("last", left)
                self.assertIn(left["lifetimes"] - turns, range(between))
        shown = run([ASSAY, "annotate", "--by=object", "--lines", "--full", "--threshold=0", self.out]).stdout
        for line in (r"from instruction [0-9,]+ to [0-9,]+, a block lives 2,0[0-9,]+, "
                     r"in use for (9\d|100) % of that(; [0-9,]+ bytes when the heap was largest)?\n",
                     r"from instruction [0-9,]+, lives 2,0[0-9,]+, in use for \d+ % of that; "
                     r"([0-9,]+ bytes when the heap was largest; )?8,000 bytes left\n"):
            self.assertTrue(re.search(line, shown), line)

    def test_heap_over_time(self):
        """The curve has the exact peak, with the bytes of each site at that time."""
        for options in ([], ["--contexts"]):
            with self.subTest(options=options):
                self.profile(PROGRAMS / "heap", options=options)
                exported = run([ASSAY, "export", "--format=json", "-o", "-", self.out])
                curve, = (each for each in json.loads(exported.stdout)["series"] if each["name"] == "heap")
                names = [axis["name"].split(" (")[0] for axis in curve["columns"]]
                self.assertEqual(names[:3], ["all", "spike", "grow"])
                points = [dict(zip(names, point[1:], strict=True)) for point in curve["points"]]
                self.assertEqual([point[0] for point in curve["points"]],
                                 sorted({point[0] for point in curve["points"]}))
                peak = max(points, key=lambda point: point["all"])
                wanted = {"all": 920_000, "grow": 320_000, "spike": 400_000, "lose": 200_000, "forget": 0}
                self.assertEqual({name: peak[name] for name in wanted}, wanted)
                wanted = {"grow": 0, "spike": 0, "lose": 200_000, "forget": 50_000}
                self.assertEqual({name: points[-1][name] for name in wanted}, wanted)
                text = self.out.read_text()
                for name, attributes in (("grow", "peak=320000 at-peak=320000"), ("spike", "peak=400000 at-peak=400000"),
                                         ("lose", "peak=200000 left=200000 at-peak=200000"),
                                         ("forget", "bytes=50000 peak=50000 left=50000 first=")):
                    self.assertRegex(text, rf'group \d+ object in=0 "{name} .*{attributes}')

    def test_branches_are_of_no_object(self):
        self.profile(PROGRAMS / "objects", "blocks", plugin="branch,effective_address")
        shown = {column["name"] for column in self.annotate()["events"]}  # what objects have
        self.assertFalse(shown & {"Bc", "Bcm", "Bi", "Bim"})
        self.assertIn("Refs", shown)

    def test_other_memory(self):
        self.profile(PROGRAMS / "objects", "others")
        found = self.groups()
        self.assertEqual(found.pop(("static", "counters", 0, 0)), WORDS)
        self.assertEqual(found.pop(("static", "shared_table", 0, 0)), WORDS)
        self.assertEqual(found.pop(("stack", "on_stack: words", 0, 0)), WORDS)
        self.assertEqual(found.pop(("mapping", "others", 1, 16384)), 2 * WORDS)
        self.assertEqual(found, {("thread-local", "own", 0, 0): WORDS})

    def test_longjmp(self):
        """Out of a function that is no allocation function, and then back to normal."""
        self.profile(PROGRAMS / "objects", "longjmp",
                     options=["--alloc-functions=refuse(size=1)"])
        self.assertEqual(self.groups(), {("heap", "allocate", 1, SIZE): WORDS})

    def test_named_functions(self):
        """What is cut out of a block is an object of its own, and the rest of it stays."""
        self.profile(PROGRAMS / "objects", "pools",
                     options=["--alloc-functions=pool_alloc(size=2)"])
        self.assertEqual(self.groups(), {("heap", "pools", 1, SIZE): WORDS,
                                         ("heap", "pools", 1, 1 << 20): WORDS})

    def test_threads(self):
        """A block of one thread that others fill counts for where the first has allocated it."""
        self.profile(PROGRAMS / "objects", "threads")
        self.assertEqual(self.groups(), {("heap", "threads", 1, 2 * SIZE): 2 * WORDS,
                                         ("heap", "work", 2, 2 * SIZE): 2 * WORDS})

    def test_second_thread(self):
        """What the first thread leaves out of the trace counts, and a second one leaves out nothing."""
        self.profile(PROGRAMS / "objects", "handed", plugin="cache")
        found = self.groups(event="Dr", functions=("count_in",))
        self.assertEqual(found, {("heap", "handed", 1, 65536): 9000,
                                 ("static", "left_counter", 0, 0): 9000,
                                 ("static", "right_counter", 0, 0): 9000})

    def test_child(self):
        """Blocks of before a fork are known, but not where they were allocated."""
        self.profile(PROGRAMS / "objects", "child", options=["--quiet"])
        (file,) = self.out.parent.glob("events.*")
        self.out = file
        ((key, count),) = self.groups().items()
        self.assertEqual((key[0], count), ("heap", WORDS))

    def test_falsely_shared_objects(self):
        report = support.temporary_folder(self) / "report"
        self.profile(PROGRAMS / "sharing", options=[f"--address-report={report}"])
        lines = re.findall(r"^  line 0x\w+ of (\S+), at most ([\d,]+) transfers", report.read_text(),
                           re.M)
        self.assertEqual(lines[0][0], "together")
        self.assertGreater(int(lines[0][1].replace(",", "")), 100_000)
        self.assertNotIn("apart", dict(lines))

    def test_runs_are_alike(self):
        self.profile(PROGRAMS / "objects", "blocks", plugin="cache")
        first = self.out.read_text()
        self.profile(PROGRAMS / "objects", "blocks", plugin="cache")

        def without_pid(text):
            return [line for line in text.splitlines() if not line.startswith("fl=#! pid")]
        self.assertEqual(without_pid(first), without_pid(self.out.read_text()))

    def test_with_all_references(self):
        """The same counts, whether a filter leaves out references or another profiler gets all."""
        def counts(plugin):
            self.profile(*program, plugin=plugin,
                         options=["--quiet", "--alloc-functions=pool_alloc(size=2)"])
            document = self.annotate()
            columns = [i for i, column in enumerate(document["events"])
                       if column["name"] in ("Dr", "Dw", "D1mr", "D1mw", "DLmr", "DLmw")]
            found = {}
            groups = document["groups"]
            for group in groups + [inner for outer in groups for inner in outer["inner"]]:
                for line in group["lines"]:
                    key = (group["attributes"]["class"], group["name"], line["function"],
                           line["file"], line["line"])
                    sums = found.setdefault(key, [0] * len(columns))
                    for i, column in enumerate(columns):
                        sums[i] += line["counts"][column]
            return {key: sums for key, sums in found.items() if any(sums)}

        for program in ([PROGRAMS / "objects", "blocks"], [PROGRAMS / "objects", "others"],
                        [PROGRAMS / "objects", "large"], ["sort", "--version"]):
            filtered = counts("cache")
            self.assertGreater(len(filtered), 100)
            self.assertTrue(filtered == counts("cache,effective_address"), program)

    def test_with_contexts(self):
        """Objects and contexts at once: neither changes the other's counts."""
        self.profile(PROGRAMS / "objects", "blocks", options=["--contexts"])
        self.assertEqual(self.groups()[("heap", "second_site", 3, 3 * SIZE)], 3 * WORDS)
        with_objects = support.read_events(self.out)
        out = self.out.parent / "contexts"
        profile([PROGRAMS / "objects", "blocks"], "--contexts", out=out,
                plugin="effective_address")
        without = support.read_events(out)
        for function in ("main", "fill", "walk", "second_site"):
            self.assertEqual(with_objects.functions[function], without.functions[function])

    def test_errors(self):
        for option, reason in (
                ("--alloc-functions=f", "a list of functions"),
                ("--alloc-functions=f(size=7)", "a list of functions"),
                ("--alloc-functions=f(size=1,free=2)", "a list of functions")):
            result = profile([PROGRAMS / "objects", "blocks"], "--objects", option)
            self.assertEqual(result.returncode, 125)
            self.assertIn(reason, result.stderr)
        result = profile([PROGRAMS / "objects"], "--objects", "--sample=1/20")
        self.assertIn("--objects cannot be combined with --sample", result.stderr)
        result = profile([PROGRAMS / "objects"], "--alloc-functions=f(size=1)")
        self.assertIn("--alloc-functions is for --objects", result.stderr)

    def test_profiles_without_objects(self):
        out = support.temporary_folder(self) / "events"
        profile([PROGRAMS / "objects", "blocks"], out=out)
        result = run([ASSAY, "annotate", "--by=object", out])
        self.assertEqual(result.returncode, 125)
        self.assertIn("was measured without objects: run with --objects", result.stderr)
        result = run([ASSAY, "annotate", "--by=member", out])
        self.assertIn("was measured without types: run with --types", result.stderr)
        result = run([ASSAY, "annotate", "--by=colour", out])
        self.assertIn("--by=colour: give object, type, member, thread, ", result.stderr)


if __name__ == "__main__":
    unittest.main()
