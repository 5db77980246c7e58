#!/usr/bin/env python3
"""Series: those of reuse and working_set are what their CSV says, those of other profilers arrive from
their processes, and tools keep, add up and print them."""

import csv
import json
import os
import subprocess
import unittest
from pathlib import Path

import support
from support import ASSAY, PLUGINS, PROGRAMS, ROOT, profile, read_events, run

SERIES = PLUGINS / "series.so"


def exported(*files) -> list[dict]:
    result = run([ASSAY, "export", "--format=json", "-o", "-", *files])
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["series"]


class Series(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def profile(self, program, *options, plugin, out="events", status=0, **more) -> Path:
        result = profile([PROGRAMS / program], *options, plugin=plugin, out=self.folder / out, **more)
        self.assertEqual(result.returncode, status, result.stderr)
        self.words = result.stderr
        return self.folder / out

    def given(self, what, **more) -> Path:
        return self.profile("matrix", plugin=SERIES, env={**os.environ, "ASSAY_SERIES": what}, **more)

    def rows(self, name="csv") -> list[dict]:
        with open(self.folder / name, encoding="ascii") as file:
            return list(csv.DictReader(file))

    def test_miss_curve_of_reuse(self):
        for program, options in (("matrix", []), ("list", ["--line-size=128"]), ("threads", [])):
            events = self.profile(program, f"--miss-curve={self.folder / 'csv'}", *options, plugin="reuse")
            wanted = [[int(row["x"]), int(row["y"])] for row in self.rows()
                      if row["series"] == "miss curve"]
            curve, = exported(events)
            self.assertGreater(len(wanted), 10)
            self.assertEqual(curve["points"], wanted, program)
            self.assertEqual((curve["name"], curve["profiler"], curve["thread"], curve["each"],
                              curve["logarithmic"]), ("miss curve", "reuse", 0, 1, True))
            self.assertEqual(curve["x"], {"name": "cache size", "unit": "bytes"})
            self.assertEqual(curve["columns"], [{"name": "misses", "unit": "misses"}])

    def test_the_miss_curve_has_the_columns_of_misses(self):
        events = self.profile("matrix", "--sizes=1K,32K", plugin="reuse")
        points = dict(exported(events)[0]["points"])
        totals = dict(zip(read_events(events).events, read_events(events).summary))
        self.assertEqual(points[1024], totals["M1K"])
        last = max(points)
        self.assertEqual(points.get(32768, points[last]), totals["M32K"])

    def test_working_sets(self):
        for program in ("list", "named_threads"):
            events = self.profile(program, f"--over-time={self.folder / 'csv'}", "--interval-size=1000",
                                  plugin="working_set")
            wanted = {}
            for row in self.rows():
                wanted.setdefault(int(row["thread"]), []).append(
                    [int(row[key]) for key in ("instructions", "lines", "pages")])
            series = exported(events)
            self.assertEqual({each["thread"]: each["each"] for each in series},
                             {thread: thinned(points)[1] for thread, points in wanted.items()})
            self.assertEqual({each["thread"]: each["points"] for each in series},
                             {thread: thinned(points)[0] for thread, points in wanted.items()}, program)
            self.assertEqual([column["unit"] for column in series[0]["columns"]], ["lines", "pages"])
        self.assertGreater(len(wanted), 1)

    def test_misses_over_time(self):
        """Of a thread each: what an interval has missed; the last, incomplete one is left out."""
        small = ["--I1=1K,2,64", "--D1=1K,2,64", "--LL=8K,4,64"]
        for program, options in (("matrix", []), ("matrix", ["--contexts"]),
                                 ("threads", ["--schedule=fair:10k"])):
            events = read_events(self.profile(program, *small, *options, plugin="cache"))
            found = self.profile(program, "--misses-over-time=5k", *small, *options, plugin="cache",
                                 out="over-time")
            # The counts are the same.
            self.assertEqual(read_events(found).functions, events.functions)
            series = exported(found)
            threads = [each["thread"] for each in series]
            self.assertEqual(threads, sorted(set(threads)))
            totals = dict(zip(events.events, events.totals()))
            sums = [sum(point[column] for each in series for point in each["points"])
                    for column in (1, 2, 3)]
            wanted = [totals["I1mr"], totals["D1mr"] + totals["D1mw"],
                      totals["ILmr"] + totals["DLmr"] + totals["DLmw"]]
            for part, whole in zip(sums, wanted):
                self.assertLessEqual(part, whole)
                self.assertGreater(part, 0.5 * whole)
            if program == "matrix":
                trace, replayed = self.folder / "trace", self.folder / "replayed"
                self.assertEqual(run([ASSAY, "record", "-q", "-o", trace, "--", PROGRAMS / program])
                                 .returncode, 0)
                self.assertEqual(run([ASSAY, "replay", "-q", "--plugin=cache", "--misses-over-time=5k",
                                      *small, *options, f"--out={replayed}", trace]).returncode, 0)
                self.assertEqual(exported(replayed), series)
        for options, said in ((["--machine=zen4"], "--machine cannot be combined with --misses-over-time"),
                              (["--sample=1/10"], "cannot be combined with --sample"),
                              (["--cache-sim=no"], "cannot be combined with --cache-sim=no")):
            self.profile("matrix", "--misses-over-time=5k", *options, plugin="cache", status=125)
            self.assertIn(said, self.words)

    def test_long_ones_are_thinned(self):
        """By their largest numbers, for profilers of assay's and of others."""
        events = self.profile("list", f"--over-time={self.folder / 'csv'}", "--interval-size=1000",
                              plugin="working_set")
        self.assertGreater(len(self.rows()), 0)
        series, = exported(self.given("long"))
        points, each = thinned([[10 * i, i % 7, 5000 - i] for i in range(5000)])
        self.assertEqual((each, len(points)), (8, 625))
        self.assertEqual((series["each"], series["points"]), (each, points))

    def test_none_of_bursts(self):
        events = self.profile("matrix", "--sample=1k/9k", "--interval-size=1000", plugin="reuse,working_set")
        self.assertEqual(exported(events), [])

    def test_from_the_process_of_a_profiler(self):
        for what, wanted in (("thread", {"thread": 2}), ("phase", {"phase": "a phase"}),
                             ("adds", {"logarithmic": True}), ("", {"name": "hills"})):
            events = self.given(what)
            series, = exported(events)
            self.assertEqual({key: series[key] for key in wanted}, wanted)
            self.assertEqual(series["profiler"], "series")
            self.assertEqual(series["description"], "how high, and how deep")
            self.assertEqual(series["points"], [[0, 0, 5000], [10, 1, 4999], [20, 2, 4998]])
            self.assertEqual(read_events(events).summary, [1])

    def test_no_more_than_a_file_has(self):
        events = self.given("many")
        self.assertEqual(len(exported(events)), 256)
        self.assertEqual(read_events(events).summary, [256])
        self.assertNotIn("left out", self.words)
        both = self.profile("matrix", plugin=f"{SERIES},reuse",
                            env={**os.environ, "ASSAY_SERIES": "many"})
        self.assertEqual(len(exported(both)), 256)
        self.assertIn("1 series of the profilers are left out: a file has at most 256", self.words)

    def test_wrong_ones_lose_the_profiler(self):
        for what, why in (("small", "it has given a series of size 16, but one of version 1 has 80 bytes"),
                          ("nameless", "it has given a series without a name"),
                          ("columns", "it has given the series hills with 0 columns, not 1 to 8"),
                          ("unordered", "it has given the series hills, whose x is 0 at point 1 and 0 before"),
                          ("null", "it has given a NULL pointer instead of a series"),
                          ("nowhere", "its vp_finish crashed with signal 11")):
            events = self.profile("matrix", "--cache-sim=no", plugin=f"cache,{SERIES}",
                                  env={**os.environ, "ASSAY_SERIES": what})
            self.assertIn(f"the profiler series is lost, and its columns with it: {why}", self.words)
            self.assertEqual(read_events(events).events, ["Ir"])
            self.assertEqual(exported(events), [])

    def test_merged_curves_of_misses_add_up(self):
        one = self.profile("matrix", plugin="reuse", out="one")
        two = self.profile("list", plugin="reuse", out="two")
        first, second = (exported(each)[0]["points"] for each in (one, two))
        shorter, longer = sorted((first, second), key=len)
        self.assertNotEqual(len(shorter), len(longer))
        wanted = [[x, misses + shorter[min(i, len(shorter) - 1)][1]] for i, (x, misses) in enumerate(longer)]
        merged = self.folder / "merged"
        result = run([ASSAY, "merge", "-o", merged, one, two])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for files in ([merged], [one, two]):
            curve, = exported(*files)
            self.assertEqual(curve["points"], wanted)
            self.assertEqual(curve["from"], "")
        # What adds up no more stands side by side.
        wide = self.profile("matrix", "--line-size=128", plugin="reuse", out="wide")
        curves = exported(one, wide)
        self.assertEqual([curve["from"] for curve in curves], [str(one), str(wide)])
        self.assertEqual(curves[0]["points"], first)

    def test_merged_working_sets_stand_side_by_side(self):
        files = [self.profile(program, "--interval-size=1000", plugin="working_set", out=program)
                 for program in ("matrix", "list")]
        alone = [exported(file)[0]["points"] for file in files]
        merged = self.folder / "merged"
        self.assertEqual(run([ASSAY, "merge", "-o", merged, *files]).returncode, 0)
        self.assertEqual([each["points"] for each in exported(merged)], alone)
        self.assertEqual([each["from"] for each in exported(merged)], [str(file) for file in files])
        many = self.given("many", out="many")
        more = self.folder / "more"
        result = run([ASSAY, "merge", "-o", more, many, many])
        self.assertIn("256 series are left out: an events file has at most 256", result.stderr)
        self.assertEqual(len(exported(more)), 256)

    def test_listed_as_tables(self):
        events = self.profile("list", "--interval-size=1000", plugin="reuse,working_set")
        result = run([ASSAY, "list", "--series", events])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.count("Series: "), 2)
        tables = [[[int(word.replace(",", "")) for word in line.split()] for line in part.splitlines()
                   if line.strip() and line.strip()[0].isdigit()]
                  for part in result.stdout.split("Series: ")[1:]]
        self.assertEqual(tables, [series["points"] for series in exported(events)])
        self.assertRegex(result.stdout, r"\ncache size +misses\n +\(bytes\)\n +64 +[0-9,]+\n")
        self.assertIn("Profiler: reuse\n", result.stdout)
        none = self.profile("list", "--cache-sim=no", plugin="cache", out="none")
        result = run([ASSAY, "list", "--series", none])
        self.assertEqual(result.returncode, 125)
        self.assertIn("none has no series: profile with --plugin=reuse", result.stderr)
        noted = self.profile("list", "--dump-instr=yes", plugin="reuse", out="noted")
        self.assertIn("Note:     1 series: --series lists them\n", run([ASSAY, "list", noted]).stdout)

    def test_other_tools_are_not_disturbed(self):
        events = self.profile("list", "--interval-size=1000", plugin="reuse,working_set", out="events.zst")
        self.assertEqual(len(exported(events)), 2)
        plain = self.folder / "plain"
        self.assertEqual(run([ASSAY, "merge", "-o", plain, events]).returncode, 0)
        self.assertEqual(exported(plain), exported(events))
        for words in (["annotate"], ["diff", events], ["report", "-q", "-o", self.folder / "page.html"],
                      ["export", "--format=csv", "-o", "-"]):
            result = run([ASSAY, *words, plain])
            self.assertEqual((result.returncode, result.stderr), (0, ""), words)
        difference = self.folder / "difference"
        self.assertEqual(run([ASSAY, "diff", "-o", difference, events, plain]).returncode, 0)
        self.assertNotIn("#! series", difference.read_text())  # there is no difference of series
        if support.installed("cg_annotate"):
            result = subprocess.run(["cg_annotate", plain], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertNotIn("points", result.stdout)

    def test_a_file_of_all_kinds(self):
        series = exported(ROOT / "tests" / "unit" / "data" / "series.events")
        self.assertEqual([each["name"] for each in series], ["miss curve", "working set", "empty"])
        self.assertEqual(series[1]["points"], [[0, 2 ** 64 - 1, 3], [2000, 12, 1]])


def thinned(points) -> tuple[list, int]:
    """What is left of them, and of how many each is made."""
    each = 1
    while -(-len(points) // each) > 1024:
        each *= 2
    groups = [points[i:i + each] for i in range(0, len(points), each)]
    return [[group[0][0], *(max(column) for column in list(zip(*group))[1:])] for group in groups], each


if __name__ == "__main__":
    unittest.main()
