#!/usr/bin/env python3
"""Types and members of programs whose references are known: tests/programs/hosted/members.c and
derived_members.cpp."""

import json
import re
import shlex
import shutil
import unittest

import support
from support import ASSAY, PROGRAMS, profile, run

NODES = 1000
ROUNDS = 10
KEY = re.compile(r'^([\w-]+)=(.*)$')


class Groups:
    """Those of an events file, by their path: counts of the functions that are asked for."""

    def __init__(self, path, functions):
        self.attributes = {}
        self.counts = {}
        paths = {0: ""}
        function = None
        for line in path.read_text().splitlines():
            if line.startswith("events:"):
                self.events = line.split()[1:]
            elif line.startswith("fn="):
                function = line[3:].split("(")[0]
            elif line.startswith("fl=#! group "):
                number, kind, outer, name, *keys = shlex.split(line)[2:]
                outer = int(outer.removeprefix("in="))
                paths[int(number)] = f"{paths[outer]}.{name}" if outer else name
                keys = dict(KEY.match(key).groups() for key in keys)
                self.attributes[paths[int(number)]] = {"group": kind, **keys}
            elif line.startswith("fl=#! of ") and function in functions:
                number, _, *counts = map(int, line.split()[2:])
                total = self.counts.setdefault(paths[number], [0] * len(self.events))
                for i, count in enumerate(counts):
                    total[i] += count

    def of(self, event):
        column = self.events.index(event)
        return {path: counts[column] for path, counts in self.counts.items() if counts[column]}


class Types(unittest.TestCase):
    def profile(self, program, *options, functions, **more):
        self.out = support.temporary_folder(self) / "events"
        result = profile([PROGRAMS / program], "--types", *options, out=self.out, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return Groups(self.out, functions)

    def test_members(self):
        """Of twelve, two are read, and two others written: each as often as the program says."""
        groups = self.profile("members", functions=["walk", "link_nodes"])
        self.assertEqual(groups.of("Dr"), {"node.key": NODES * ROUNDS, "node.next": NODES * ROUNDS})
        self.assertEqual(groups.of("Dw"), {"node.where.row": NODES, "node.last": NODES})
        # It is a reference to data that is missed, and no fetch of an instruction.
        self.assertEqual(groups.of("Ir"), {})
        self.assertEqual(groups.of("I1mr"), {})
        self.assertTrue(set(groups.of("D1mr")) <= {"node.key", "node.next"})
        self.assertEqual(groups.attributes["node"]["kind"], "struct")
        self.assertEqual(groups.attributes["node"]["size"], "104")
        self.assertEqual(groups.attributes["node"]["line"], "12")
        self.assertTrue(groups.attributes["node"]["file"].endswith("hosted/members.c"))
        self.assertEqual(groups.attributes["node.next"],
                         {"group": "member", "offset": "8", "size": "8", "type": "node *"})
        self.assertEqual(groups.attributes["node.where.row"]["offset"], "52")

    def test_base_classes(self):
        groups = self.profile("derived_members", functions=["total"])
        self.assertEqual(groups.of("Dr"), {"shapes::Square.shapes::Shape.area": NODES,
                                           "shapes::Square.side": NODES})

    def test_other_profilers(self):
        groups = self.profile("members", functions=["walk"], plugin="effective_address")
        self.assertEqual(groups.of("Refs"),
                         {"node.key": NODES * ROUNDS, "node.next": NODES * ROUNDS})

    def test_coverage(self):
        """How much is known stands in the file."""
        self.profile("members", functions=[])
        said = re.search(r"^desc: Types: known of ([0-9.]+) % of references", self.out.read_text(),
                         re.MULTILINE)
        self.assertGreater(float(said.group(1)), 50)

    def test_objects_and_types(self):
        """Groups of both have numbers of their own."""
        groups = self.profile("members", "--objects", functions=["walk"])
        self.assertEqual(groups.of("Dr")["node.key"], NODES * ROUNDS)
        self.assertIn("object", {keys["group"] for keys in groups.attributes.values()})

    def test_tables(self):
        self.profile("members", functions=[])
        for kind, name in (("type", "node"), ("member", "key")):
            result = run([ASSAY, "annotate", "--json", f"--by={kind}", self.out])
            self.assertEqual(result.returncode, 0, result.stderr)
            names = [group["name"] for group in json.loads(result.stdout)["groups"]]
            self.assertIn(name, " ".join(names))

    def test_without_debug_information(self):
        folder = support.temporary_folder(self)
        program = folder / "members"
        shutil.copy(PROGRAMS / "members", program)
        self.assertEqual(run(["strip", "-g", program]).returncode, 0)
        groups = self.profile(program, functions=["walk", "link_nodes"])
        self.assertEqual(groups.counts, {})


if __name__ == "__main__":
    unittest.main()
