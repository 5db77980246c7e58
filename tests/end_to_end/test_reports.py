#!/usr/bin/env python3
"""assay report: what the page contains. How it looks and reacts, tests/report/ tests in a browser."""

import base64
import gzip
import json
import os
import re
import shutil
import unittest
from collections import Counter
from pathlib import Path

import support
from support import ASSAY, GEOMETRY, PLUGINS, PROGRAMS, ROOT, profile, read_events, run, with_cycles

ALL_KINDS = ROOT / "tests" / "unit" / "data" / "version-1.events"


def data_of(page: str) -> dict:
    encoded = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>',
                        page)
    data = json.loads(gzip.decompress(base64.b64decode(encoded[1])))
    unpack_flame(data["flame"])
    return data


def unpack_flame(flame: dict):
    """As the page does: names by their numbers, and counts with those of the frames within."""
    flame["name"] = [flame["texts"][number] for number in flame["name"]]
    for counts in flame["counts"] + flame.get("old", []):
        for i in range(len(counts) - 1, 0, -1):
            counts[flame["parent"][i]] += counts[i]


class Reports(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.page = self.folder / "report.html"

    def report(self, *words) -> dict:
        result = run([ASSAY, "report", "-o", self.page, *words])
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        return data_of(self.page.read_text())

    def refused(self, *words) -> str:
        page = self.folder / "refused.html"
        result = run([ASSAY, "report", "-o", page, *words])
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (125, "", 1))
        self.assertFalse(page.exists())
        return result.stderr

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def test_counts_are_the_file_s(self):
        out = self.folder / "events"
        result = profile([PROGRAMS / "calling", "plain"], *GEOMETRY, "--references=yes", out=out,
                         plugin=f"cache,{PLUGINS / 'contexts.so'}",
                         env={**os.environ, "LD_BIND_NOW": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        data, events = self.report(out), with_cycles(read_events(out))
        self.assertEqual([event["name"] for event in data["events"]], events.events)
        self.assertEqual([event["total"] for event in data["events"]], events.summary)
        for index in range(len(events.events)):
            found = Counter()
            for name, count in zip(data["functions"]["name"], data["functions"]["counts"][index],
                                   strict=True):
                found[name] += count
            self.assertEqual(+found, Counter({name: counts[index] for name, counts in
                                              events.functions.items() if counts[index]}))
            self.assertEqual(sum(sum(source["counts"][index]) for source in data["sources"]),
                             events.summary[index])
        source = next(each for each in data["sources"] if each["name"].endswith("/calling.c"))
        text = (ROOT / "tests/programs/hosted/calling.c").read_text().splitlines()
        for first, lines in source["pieces"]:
            self.assertEqual(lines, text[first - 1:first - 1 + len(lines)])
        shown = {first + i for first, lines in source["pieces"] for i in range(len(lines))}
        self.assertLessEqual(set(source["lines"]), shown)

        flame = data["flame"]
        self.assertEqual([events.events[event] for event, by_stack in
                          zip(flame["events"], flame["byStack"]) if by_stack], ["Refs", "Calls"])
        calls = flame["events"].index(events.events.index("Calls"))
        paths = [""]
        for parent, name in zip(flame["parent"][1:], flame["name"][1:]):
            paths.append(paths[parent] + "/" + name)
        totals = [column[0] for column in flame["counts"]]
        self.assertEqual(totals, [events.summary[event] for event in flame["events"]])
        twice = [count for path, count in zip(paths, flame["counts"][calls])
                 if path.endswith("/plain/twice")]
        self.assertEqual(twice, [20])  # 5 calls, which make 15

    def test_nothing_of_a_profile_can_get_out_of_its_data(self):
        name = "</script><script>intrude(1)</script><!--"
        path = self.write("hostile", f"desc: a: <b>\ncmd: {name}\nevents: Ir\nfl=<i>\nfn={name}\n"
                                     f"1 5\nsummary: 5\n")
        data = self.report(path)
        self.assertEqual(data["functions"]["name"], [name])
        page = self.page.read_text()
        self.assertEqual(page.count("intrude"), 1)  # in the title
        path = self.write("escapes", "desc: part: a\x1b[31m\ncmd: c\x9b\nevents: Ir\n"
                                     "fl=#! version 1\nfl=#! event Ir unit=i \"e\\x1b\"\nfl=\x07\nfn=\x1b\n1 5\n"
                                     "summary: 5\n")
        data = self.report(path)
        self.assertEqual((data["descriptions"], data["commands"]),
                         ([["part", "a\\x1b[31m"]], ["c\\xc2\\x9b"]))
        self.assertEqual((data["functions"]["name"], data["functions"]["file"]),
                         (["\\x1b"], ["\\x07"]))
        self.assertEqual(data["events"][0]["description"], "e\\x1b")
        self.assertIn("<title>c\\xc2\\x9b - assay", self.page.read_text())
        self.assertIn("<title>&lt;/script&gt;&lt;script&gt;intrude(1)&lt;/script&gt;&lt;!-- - assay",
                      page)
        self.assertEqual(page.count("</script>"), 2)
        self.assertIn("default-src 'none'", page)
        self.assertIsNone(re.search(r'(src|href)="(?!data:,)', page))

    def test_difference(self):
        head = "desc: a\ncmd: ./t\nevents: Ir\n"
        old = self.write("old", head + "fl=a.c\nfn=f\n1 5\nfn=gone\n2 3\nsummary: 8\n")
        new = self.write("new", head + "fl=a.c\nfn=f\n1 7\nfn=made\n4 9\nsummary: 16\n")
        data = self.report("--diff", old, new)
        self.assertEqual({name: (before, after) for name, before, after in
                          zip(data["functions"]["name"], data["functions"]["old"][0],
                              data["functions"]["counts"][0])},
                         {"f": (5, 7), "gone": (3, 0), "made": (0, 9)})
        self.assertEqual((data["events"][0]["old"], data["events"][0]["total"]), (8, 16))
        self.assertIn("compares two files", self.refused("--diff", old))
        self.assertIn("differ from those of", self.refused("--diff", old, ALL_KINDS))

    def test_difference_of_sources(self):
        """Both versions of a source, line beside line; a source without its like; one version gone."""
        texts = {"old": "a;\nfor (i = 0; i < 9; ++i) f();\nb;\n",
                 "new": "a;\n// more\nfor (i = 0; i < 5; ++i) f();\nb;\n"}
        for name, text in texts.items():
            (self.folder / name).mkdir()
            for file in ("main.c", "same.c"):
                (self.folder / name / file).write_text(text if file == "main.c" else "x;\n")
        head = "desc: a\ncmd: ./t\nevents: Ir\n"
        old = self.write("old.out", f"{head}fl={self.folder}/old/main.c\nfn=f\n2 90\n3 1\n"
                                    f"fl={self.folder}/old/same.c\nfn=g\n1 4\nfl=gone.c\nfn=h\n1 2\nsummary: 97\n")
        new = self.write("new.out", f"{head}fl={self.folder}/new/main.c\nfn=f\n3 50\n4 1\n"
                                    f"fl={self.folder}/new/same.c\nfn=g\n1 3\nsummary: 54\n")
        found = {Path(each["name"]).name: each
                 for each in self.report("--diff", old, new)["sources"]}
        main = found["main.c"]
        self.assertEqual((main["name"], main["old"]["name"]),
                         (f"{self.folder}/new/main.c", f"{self.folder}/old/main.c"))
        self.assertEqual((main["lines"], main["counts"], main["old"]["lines"], main["old"]["counts"]),
                         ([3, 4], [[50, 1]], [2, 3], [[90, 1]]))
        self.assertEqual(main["pairs"], [[1, 1, 1, 1], [0, 2, 1, 0], [2, 3, 1, 0], [3, 4, 1, 1]])
        self.assertEqual(main["pieces"], [[1, texts["new"].splitlines()]])
        self.assertEqual(main["oldPieces"], [[1, texts["old"].splitlines()]])
        same = found["same.c"]
        self.assertNotIn("pairs", same)
        self.assertEqual((same["pieces"], same["old"]["counts"], same["counts"]), ([[1, ["x;"]]], [[4]], [[3]]))
        gone = found["gone.c"]
        self.assertEqual((gone["isThere"], gone["old"]["isThere"], gone["old"]["counts"]), (False, True, [[2]]))
        # The same function, in whichever folder it was compiled.
        moved = self.report("--diff", old, new)["functions"]
        self.assertEqual(dict(zip(moved["name"], zip(moved["old"][0], moved["counts"][0]))),
                         {"f": (91, 51), "g": (4, 3), "h": (2, 0)})
        shutil.move(self.folder / "old", self.folder / "elsewhere")
        self.assertFalse(self.sources_of(old, new)["main.c"]["old"]["found"])
        again = self.sources_of(f"--old-map={self.folder}/old={self.folder}/elsewhere", old, new)
        self.assertEqual(again["main.c"]["oldPieces"], main["oldPieces"])
        self.assertIn("--old-map is for the sources of OLD", self.refused("--old-map=a=b", old))

    def sources_of(self, *words):
        return {Path(each["name"]).name: each for each in self.report("--diff", *words)["sources"]}

    def test_instructions(self):
        """Of each line the same counts; none in a profile without them."""
        out = self.folder / "out"
        for more, are_there in ((["--dump-instr=yes"], True), ([], False)):
            result = profile([PROGRAMS / "calling", "plain"], "--cache-sim=no", *more, out=out)
            self.assertEqual(result.returncode, 0, result.stderr)
            data = self.report(out)
            self.assertEqual(data["assembly"] is not None, are_there)
            source = next(each for each in data["sources"] if each["name"].endswith("/calling.c"))
            self.assertEqual(source["assembly"] is not None, are_there)
            if not are_there:
                continue
            assembly, lines = source["assembly"], Counter()
            for line, count in zip(assembly["line"], assembly["counts"][0]):
                lines[line] += count
            self.assertEqual(lines, Counter(dict(zip(source["lines"], source["counts"][0]))))
            self.assertIn("retq", assembly["text"])
            self.assertTrue(any(re.search(r"^callq? .* <twice>$", text) for text in assembly["text"]))
            numbers = [int(address, 16) for address in assembly["address"]]
            self.assertEqual(numbers, sorted(numbers))
            self.assertEqual(data["assembly"]["leftOut"], 0)
            same = self.report("--diff", out, out)
            self.assertTrue(all(each["isSame"] for each in same["assembly"]["objects"] if "calling" in each["path"]))
            for each in same["sources"]:
                if each["assembly"] and each["name"].endswith("/calling.c"):
                    self.assertEqual(each["assembly"]["old"], each["assembly"]["counts"])

    def test_difference_of_stacks(self):
        folder = ROOT / "tests" / "end_to_end" / "data"
        flame = self.report("--diff", folder / "stacks-old.events",
                            folder / "stacks-new.events")["flame"]
        self.assertEqual(flame["name"], ["", "main", "one", "leaf", "leaf"])
        self.assertEqual(flame["old"][0], [35, 35, 20, 20, 10])
        self.assertEqual(flame["counts"][0], [75, 75, 60, 60, 10])

    def test_flame_graph_has_what_is_outside_of_known_calls(self):
        path = self.write("events", "desc: a\ncmd: ./t\nevents: Ir Dr\nfl=#! version 1\n"
                                    "fl=#! object 0 /bin/t\nfl=a.c\nfn=f\n1 100 30\n"
                                    "fl=#! stack 1 in=0 call=0:0x10 f 60\nsummary: 100 30\n")
        flame = self.report(path)["flame"]
        self.assertEqual(flame["events"], [0])
        self.assertEqual(flame["name"], ["", "f", "[outside of known calls]"])
        self.assertEqual(flame["counts"][0], [100, 60, 40])
        flame = self.report("--diff", path, path)["flame"]
        self.assertEqual((flame["counts"][0], flame["old"][0]), ([100, 60, 40], [100, 60, 40]))

    def test_what_is_left_out(self):
        """What counts least, of very many functions, lines and lists of values."""
        most, lists = 20_000, 2_000
        head = "desc: a: b\ncmd: ./t\nevents: Ir\nfl=#! version 1\nfl=#! object 0 /t\nfl=a.c\n"
        counts = [7 + i * 7919 % (most + 5) for i in range(most + 5)]  # each once
        text = "".join(f"fn=f{count}\n1 {count}\n" for count in counts)
        data = self.report(self.write("functions", f"{head}{text}summary: {sum(counts)}\n"))
        self.assertEqual(data["functions"]["leftOut"], 5)
        self.assertEqual(data["functions"]["counts"][0], sorted(counts, reverse=True)[:most])
        self.assertEqual(data["functions"]["name"][0], f"f{max(counts)}")

        text = "".join(f"fl={file}\nfn=f\n" + "".join(f"{i} {count}\n" for i in range(1, lines + 1))
                       for file, lines, count in (("cold.c", 60_000, 1), ("hot.c", 150_000, 2)))
        data = self.report(self.write("lines", f"{head}{text}summary: {60_000 + 2 * 150_000}\n"))
        self.assertEqual([source["name"] for source in data["sources"]], ["hot.c"])

        text = "".join(f"fl=#! value 0:{i:#x} 1 classic.loaded {i} 0x5:{i}\n"
                       for i in range(1, lists + 4))
        data = self.report(self.write("values", f"{head}fn=f\n1 5\n{text}summary: 5\n"))
        self.assertEqual(data["valuesLeftOut"], 3)
        self.assertEqual([each["total"] for each in data["values"]],
                         list(range(lists + 3, 3, -1)))

    def test_sources_that_are_newer(self):
        sources = [self.write(name, "a;\n") for name in ("new.c", "old.c")]
        path = self.write("events", "desc: a\ncmd: ./t\nevents: Ir\n" + "".join(
            f"fl={source}\nfn=f\n1 5\n" for source in sources) + "summary: 10\n")
        os.utime(path, (1000, 1000))
        os.utime(sources[1], (1000, 1000))
        found = {each["name"]: each["warning"] for each in self.report(path)["sources"]}
        self.assertEqual(found.pop(str(sources[0])), f"Warning: {sources[0]} is newer than {path}; "
                                                     "its lines may have moved since then.")
        self.assertEqual(found, {str(sources[1]): ""})

    def test_values_and_phases(self):
        vectors = self.write("bb", "# exp-bbv\nT:1:90   :2:10   \nT:2:100   \nT:1:100   \n"
                                   "T:2:50   :3:1   \n\n# Total instructions: 351\n")
        points = self.write("simpts", "2 0\n1 1\n")
        weights = self.write("weights", "0.6 0\n0.4 1\n")
        data = self.report("--block-vectors", vectors, "--simpoints", points, "--weights", weights,
                           ALL_KINDS)
        self.assertEqual(data["phases"], {
            "instructions": [100, 100, 100, 51], "phases": [0, 1, 0, 1], "labelled": False,
            "points": [{"interval": 2, "cluster": 0, "weight": 0.6},
                       {"interval": 1, "cluster": 1, "weight": 0.4}]})
        self.assertEqual(data["values"][0]["list"], "classic.loaded")
        self.assertLessEqual(sum(count for _, count in data["values"][0]["values"]),
                             data["values"][0]["total"])
        (self.folder / "bb.simpts").write_text("2 0\n1 1\n")  # is found by its name
        shares = self.report("--block-vectors", vectors, ALL_KINDS)
        self.assertEqual([point["weight"] for point in shares["phases"]["points"]],
                         [200 / 351, 151 / 351])

    def test_phases_are_those_of_simpoint(self):
        out, vectors = self.folder / "events", self.folder / "bb.gz"
        result = profile([PROGRAMS / "sort"], "--interval-size=20000", f"--bb-out-file={vectors}",
                         plugin="bbv", out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        for coverage in (1, 0.5):
            told = run([ASSAY, "simpoint", f"--coverage={coverage}", vectors]).stdout
            printed = [line.split() for line in told.splitlines()
                       if re.match(r"  [A-Za-z] +[0-9.]+%", line)]
            phases = self.report("--block-vectors", vectors, out)["phases"]
            found = Counter(phases["phases"])
            self.assertEqual([found[i] for i in range(len(phases["points"]))],
                             [int(intervals) for _, _, intervals, _ in printed])
            weights, covered = Counter(), 0
            for phase, instructions in zip(phases["phases"], phases["instructions"], strict=True):
                weights[phase] += instructions
                covered += instructions if phase < len(phases["points"]) else 0
            for i, point in enumerate(phases["points"]):
                self.assertAlmostEqual(point["weight"], weights[i] / covered, places=5)
            self.assertEqual(found[len(phases["points"])] == 0, coverage == 1)

    def test_as_many_intervals_as_simpoint_reads(self):
        most = 1 << 20
        vectors = self.write("bb", "T:1:9   \n" * most)
        phases = self.report("--block-vectors", vectors, ALL_KINDS)["phases"]
        self.assertEqual(len(phases["instructions"]), most)
        with vectors.open("a") as file:
            file.write("T:1:9   \n")
        self.assertIn(f"more than {most} intervals",
                      self.refused("--block-vectors", vectors, ALL_KINDS))

    def test_labels_of_other_files(self):
        vectors = self.write("bb", "T:1:90   \nT:2:10   \nT:1:90   \n")
        points = self.write("points", "0 0\n1 1\n")
        words = ["--block-vectors", vectors, "--simpoints", points, "--labels"]
        phases = self.report(*words, self.write("labels", "0 0.5\n1 0\n0 0.5\n"),
                             ALL_KINDS)["phases"]  # as SimPoint writes them, with distances
        self.assertEqual(phases["phases"], [0, 1, 0])
        self.assertIn("labels of 1 intervals, but there are 3 block vectors", self.refused(
            *words, self.write("short", "0\n"), ALL_KINDS))
        self.assertIn("interval 1 is not in phase 1, which it represents", self.refused(
            *words, self.write("other", "0\n0\n1\n"), ALL_KINDS))
        self.assertIn("need their points", self.refused("--labels", vectors, ALL_KINDS))

    def test_calls(self):
        """The callers of each function, and one outside, make up its inclusive counts."""
        stacks = ROOT / "tests" / "end_to_end" / "data" / "contexts.events"
        calls = self.report(stacks)["calls"]
        found = [Counter() for _ in calls["counts"]]
        for event, counts in enumerate(calls["counts"]):
            for callee, count in zip(calls["callee"], counts, strict=True):
                found[event][callee] += count
            self.assertEqual(+found[event], +Counter(dict(enumerate(calls["inclusive"][event]))))
        named = dict(zip(calls["name"], zip(*calls["inclusive"])))
        self.assertEqual(named["fact"][:3], (110, 8, 44))
        self.assertEqual(calls["name"][-1], "[outside of known calls]")
        self.assertIsNone(self.report("--diff", stacks, stacks)["calls"])
        self.assertIsNone(self.report(ROOT / "tests" / "unit" / "data" / "cachegrind.out")["calls"])

    def test_groups(self):
        """What groups count themselves is what their lines do."""
        path = ROOT / "tests" / "end_to_end" / "data" / "groups.events"
        data = self.report(path)
        groups = data["groups"]
        self.assertEqual([kind["name"] for kind in groups["kinds"]], ["object", "type", "thread"])
        self.assertEqual([kind["counts"] for kind in groups["kinds"]],
                         [[0, 399, 133], [0, 330, 129], [690, 400, 133]])
        self.assertEqual((groups["leftOut"], groups["lines"]["leftOut"]), (0, 0))
        for event, counts in enumerate(groups["counts"]):
            own = Counter(dict(enumerate(counts)))
            for index, parent in enumerate(groups["parent"]):
                self.assertLessEqual(parent, index)
                if parent:
                    own[parent - 1] -= counts[index]
            lines = Counter()
            for group, count in zip(groups["lines"]["group"], groups["lines"]["counts"][event],
                                    strict=True):
                lines[group] += count
            self.assertEqual(+own, +lines)
        node = groups["name"].index("make_node (a.c:12)")
        self.assertEqual(groups["attributes"][node], {"class": "heap", "size": "88", "blocks": "1000",
                                                      "bytes": "88000", "peak": "88000"})
        self.assertEqual(groups["callers"][node], ["malloc", "make_node", "main"])
        twice = self.report(path, path)["groups"]
        self.assertEqual(len(twice["name"]), len(groups["name"]))
        self.assertEqual([counts[node] for counts in twice["counts"]], [0, 660, 258])
        self.assertEqual(twice["attributes"][node]["blocks"], "2000")
        self.assertIsNone(self.report("--diff", path, path)["groups"])
        self.assertIsNone(self.report(ROOT / "tests" / "unit" / "data" / "cachegrind.out")["groups"])
        result = run([ASSAY, "report", "-o", self.page, "-"], input=path.read_text())
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_malformed_phases(self):
        good = self.write("bb", "T:1:90   \n")
        for text, error in (("T:1:x   \n", "bb2:1: expected a number"),
                            ("# nothing\n", "has no intervals")):
            self.assertIn(error, self.refused("--block-vectors", self.write("bb2", text), ALL_KINDS))
        self.assertIn("simpts:1: there are 1 block vectors, counted from 0 (7)", self.refused(
            "--block-vectors", good, "--simpoints", self.write("simpts", "7 0\n"), ALL_KINDS))
        many = self.write("simpts", "".join(f"0 {i}\n" for i in range(10_001)))
        self.assertIn("more than 10000 points", self.refused(
            "--block-vectors", good, "--simpoints", many, ALL_KINDS))
        self.assertIn("--simpoints needs", self.refused("--simpoints", good, ALL_KINDS))


if __name__ == "__main__":
    unittest.main()
