#!/usr/bin/env python3
"""The package assay for Python: data frames, traces, profilers, notebooks."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

# Debian's packages are for its own interpreter.
DEBIAN = "/usr/bin/python3"
if not importlib.util.find_spec("pandas") and Path(sys.executable).resolve() != Path(DEBIAN).resolve() \
        and subprocess.run([DEBIAN, "-c", "import pandas"], capture_output=True).returncode == 0:
    os.execv(DEBIAN, [DEBIAN, *sys.argv])

import support
from support import ASSAY, BUILD, ROOT, profile, run

HAS_PANDAS = importlib.util.find_spec("pandas") is not None
os.environ["PYTHONPATH"] = str(BUILD / "python")
os.environ["ASSAY"] = str(ASSAY)
sys.path.insert(0, str(BUILD / "python"))
if HAS_PANDAS:
    import assay
    import numpy as np
    import pandas as pd
    Base = assay.Profiler
else:
    Base = object


class References(Base):
    """Counts references, and those to another page than the one before."""
    events = {"Refs": "references", "Far": "to another page"}
    captures = ["references", "blocks", "counts"]

    def process(self, records):
        references = records[(records["kind"] >= 1) & (records["kind"] <= 3)]
        self.count("Refs", references["pc"])
        pages = references["address"] >> np.uint64(12)
        self.count("Far", references["pc"][1:], pages[1:] != pages[:-1])

    def finish(self, executed):
        return f"instructions: {executed['count'].sum()}\n"


class Failing(Base):
    events = {"Never": "nothing"}

    def process(self, records):
        raise KeyError("mine")


@unittest.skipUnless(HAS_PANDAS, "needs python3-numpy, python3-pandas")
@support.needs("gcc")
class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.temporary_folder_of_class(cls)
        cls.program = cls.folder / "walk"
        built = run(["gcc", "-O1", "-g", "-fno-inline", ROOT / "examples/programs/walk.c",
                     "-o", cls.program])
        assert built.returncode == 0, built.stderr
        cls.trace = cls.folder / "walk.trace"
        recorded = run([ASSAY, "record", "-q", "-o", cls.trace, "--", cls.program])
        assert recorded.returncode == 0, recorded.stderr

    def run_quietly(self, program, **options):
        return assay.run(program, stdout=subprocess.DEVNULL, **options)

    def test_frames(self):
        out = self.folder / "out"
        found = self.run_quietly([self.program], out=out, contexts=True, types=True, threads=True,
                                 objects=True, dump_instr=True, branch_sim=False, D1="16K,8,64")
        exported = json.loads(run([ASSAY, "export", "--format=json", out]).stdout)
        self.assertEqual(list(found.totals), [event["total"] for event in exported["events"]])
        for frame in (found.functions, found.lines, found.instructions, found.contexts, found.threads):
            self.assertEqual(frame["Ir"].sum(), found.totals["Ir"])
        rows = found.functions.set_index("function")
        self.assertEqual(rows.loc["by_columns", "D1mr"], 1000001)
        line = found.lines[found.lines["function"] == "by_columns"].nlargest(1, "D1mr").iloc[0]
        self.assertEqual(line["line"], 18)
        matrix = found.objects.set_index("name").loc["matrix"]
        self.assertGreater(matrix["D1mr"], 1000000)
        context = found.contexts[found.contexts["function"] == "by_rows"].iloc[0]
        self.assertEqual(found.contexts.loc[context["parent"], "function"], "main")
        rate = found.with_derived(found.functions).set_index("function")["D1 miss rate"]
        self.assertAlmostEqual(rate["by_columns"], 1, 4)
        self.assertTrue(pd.isna(found.with_derived(found.contexts)["D1 miss rate"]).any())
        self.assertEqual(found.derived.loc["D1 miss rate", "value"],
                         exported["derived"][[d["name"] for d in exported["derived"]].index(
                             "D1 miss rate")]["value"])

    def test_comparison(self):
        outs = [self.folder / name for name in ("old", "new")]
        for out, size in zip(outs, ("16K,8,64", "128K,8,64")):
            self.run_quietly([self.program], out=out, D1=size)
        found = assay.compare(*outs).set_index("function")
        row = found.loc["by_columns"]
        self.assertLess(row["D1mr"], -800000)
        self.assertEqual(row["D1mr after"] - row["D1mr before"], row["D1mr"])

    def test_runs(self):
        found = self.run_quietly(["sh", "-c", f"{self.program}; exit 3"])
        self.assertEqual(found.status, 3)
        self.assertGreater(found.totals["Ir"], 8_000_000)
        replayed = assay.run(self.trace, machine={"machine": "small", "caches": {
            "D1": {"level": 1, "holds": "data", "of": "core", "size": "4K", "ways": 4},
            "I1": {"level": 1, "holds": "instructions", "of": "core", "size": "4K", "ways": 4}}})
        self.assertGreater(replayed.totals["D1mr"], 1000000)
        larger = assay.run(self.trace, machine="zen4", set={"D1.size": "128K", "D1.ways": 16})
        self.assertLess(larger.totals["D1mr"], 300000)
        swept = assay.sweep(self.trace, machine="zen4", set={"D1.size": ["16K", "128K"], "D1.ways": 8})
        self.assertEqual(list(swept["D1.size"]), ["16K", "128K"])
        swept = assay.sweep(self.trace, D1=["16K,8,64", "64K,16,64"])
        self.assertEqual(list(swept["D1"]), ["16K,8,64", "64K,16,64"])
        self.assertGreater(swept["D1mr"][0], 2 * swept["D1mr"][1])
        for call, message in (
                (lambda: assay.run(["./nothing"]), "cannot run ./nothing"),
                (lambda: assay.run([self.program], nothing=1), "^unknown option nothing"),
                (lambda: assay.load(self.folder / "nothing"), "nothing.*No such file"),
                (lambda: assay.sweep([self.program], nothing=1), "nothing")):
            with self.assertRaisesRegex(assay.Error, message):
                call()

    def test_trace(self):
        """The same references as `assay trace` lists."""
        listed = run([ASSAY, "trace", "--format=csv", "--instructions", "--kind=read,write,modify",
                      "--from-instruction=100001", "--to-instruction=200000", self.trace]).stdout.splitlines()
        column = {name: i for i, name in enumerate(listed[0].split(","))}
        expected = [row for row in (line.split(",") for line in listed[1:])
                    if row[column["kind"]] != "instr"]
        rows = np.concatenate(list(assay.trace(self.trace, kinds=["read", "write", "modify"], records=1000)))
        number = rows["instruction"]
        rows = rows[(number > 100000) & (number <= 200000)]
        self.assertEqual(len(rows), len(expected))
        for name, base in (("instruction", 10), ("pc", 16), ("address", 16), ("bytes", 10),
                           ("thread", 10)):
            self.assertEqual([int(row[column[name]], base) for row in expected[::7]],
                             list(rows[name][::7]), name)
        kinds = {number: name for name, number in assay.KINDS.items()}
        self.assertEqual([row[column["kind"]] for row in expected[::7]],
                         [kinds[kind] for kind in rows["kind"][::7]])
        blocks = np.concatenate(list(assay.trace(self.trace, kinds=["block"])))
        summary = run([ASSAY, "trace", "--summary", self.trace]).stdout
        self.assertIn(f"{blocks['bytes'].sum():,}", summary)
        self.assertEqual(blocks["instruction"][-1] + blocks["bytes"][-1] - 1, blocks["bytes"].sum())

    def test_part_of_a_trace(self):
        """It keeps the numbers of the whole."""
        part = self.folder / "part.trace"
        cut = run([ASSAY, "trace", "--format=trace", "--from-instruction=100001", "-o", part, self.trace])
        self.assertEqual(cut.returncode, 0, cut.stderr)
        whole, rows = (np.concatenate(list(assay.trace(path))) for path in (self.trace, part))
        self.assertGreater(rows["instruction"][0], 99_900)
        self.assertTrue((whole[-len(rows):] == rows).all())

    def test_damaged_traces(self):
        whole = self.trace.read_bytes()
        short, bad = self.folder / "short", self.folder / "bad"
        short.write_bytes(whole[:len(whole) * 2 // 3])
        bad.write_bytes(whole[:5000] + bytes(64) + whole[5064:])
        self.assertGreater(sum(map(len, assay.trace(self.trace))), sum(map(len, assay.trace(short))))
        with self.assertRaisesRegex(OSError, "bad is damaged: the chunk at byte"):
            list(assay.trace(bad))
        with self.assertRaisesRegex(OSError, "walk is no trace"):
            assay.trace(self.program)
        with self.assertRaisesRegex(OSError, "No such file"):
            assay.trace(self.folder / "nothing")
        with self.assertRaisesRegex(ValueError, "no kind 'reads'.*read, write"):
            assay.trace(self.trace, kinds=["reads"])

    def test_profiler(self):
        """The same from a run and from its recording."""
        for program in ([self.program], self.trace):
            found = self.run_quietly(program, plugin=References)
            rows = found.functions.set_index("function")
            self.assertEqual(rows.loc["by_columns", "Refs"], 1000001)
            self.assertEqual(rows.loc["by_columns", "Far"] // 10000, 99)
            self.assertLess(rows.loc["by_rows", "Far"], 3000)
            self.assertEqual(found.events.loc["Far", "description"], "to another page")
        with_child = self.run_quietly(["sh", "-c", f"{self.program}; {self.program}; exit 3"],
                                      plugin=References)
        self.assertEqual(with_child.functions.set_index("function").loc["by_columns", "Refs"], 2000002)

    def test_failing_profilers(self):
        with self.assertRaisesRegex(KeyError, "mine"):
            self.run_quietly([self.program], plugin=Failing)
        with self.assertRaisesRegex(assay.Error, 'no capture "all"; use references, fetches, '):
            self.run_quietly([self.program], plugin=type("Bad", (Base,), {"captures": ["all"]}))
        for option, message in ((), "needs a class: start it by assay.run"), \
                               (("--python-socket=/nothing",), "No such file or directory"):
            ran = profile(["true"], *option, plugin="python", out=self.folder / "none")
            self.assertEqual(ran.returncode, 125)
            self.assertIn(message, ran.stderr)

    def test_guide(self):
        """The code of the guide, in one program."""
        guide = (ROOT / "docs/guides/python.md").read_text()
        boxes = re.findall(r"(?s)^```python\n(.*?)^```", guide, re.M)
        self.assertEqual(len(boxes), 3)
        ran = run([sys.executable, "-c", "\n".join(boxes)], cwd=self.folder)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    @unittest.skipUnless(support.installed("jupyter-nbconvert"), "needs jupyter-nbconvert")
    @unittest.skipUnless(importlib.util.find_spec("ipykernel"), "needs python3-ipykernel")
    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "needs python3-matplotlib")
    def test_notebooks(self):
        for notebook in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
            with self.subTest(notebook.name):
                ran = run([sys.executable, "-m", "nbconvert", "--to=notebook", "--execute",
                           f"--output-dir={self.folder}", notebook])
                self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    unittest.main()
