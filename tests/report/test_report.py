#!/usr/bin/env python3
"""The page of assay report in a headless Chromium: what it shows, and that the keyboard suffices."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

import browser
import support
from support import ASSAY, PLUGINS, ROOT, run

PROGRAM = Path(__file__).with_name("walk.c")
USED_BYTES = support.BUILD / "plugins" / "used_bytes" / "used_bytes.so"
VIEWS = ["overview", "functions", "source", "flame", "lines", "values", "phases",
         "calls", "groups", "heap", "threads", "plots"]


def make_profile(folder: Path) -> str:
    """The name of the file in the folder; where the folder is shows in no command."""
    shutil.copy(PROGRAM, folder)
    subprocess.run(["gcc", "-O1", "-g", "-fno-inline", "walk.c", "-o", "walk"], check=True,
                   cwd=folder)
    subprocess.run([ASSAY, "-q", f"--plugin=cache,{USED_BYTES},{PLUGINS / 'contexts.so'}",
                    "--references=yes", "--dump-instr=yes", "--cache.I1=32768,8,64",
                    "--D1=32768,8,64", "--cache.LL=8388608,16,64", "--out=walk.out", "--",
                    "./walk"], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return "walk.out"


def make_versions(folder: Path) -> tuple[str, str]:
    """Two versions of the program: profiles of them, in a folder each. In the new one a loop is shorter,
    lines have moved, and there is a function more and one less."""
    text = PROGRAM.read_text()
    new = (text.replace("j < 1000; ++j) sum +=", "j < 700; ++j) sum +=", 1)
           .replace("static double matrix", "/* moved */\nstatic double matrix", 1)
           .replace("median", "middle"))
    assert new.count("700") == 1 and "middle" in new
    for name, source in (("old", text), ("new", new)):
        (folder / name).mkdir()
        (folder / name / "walk.c").write_text(source)
        subprocess.run(["gcc", "-O1", "-g", "-fno-inline", "walk.c", "-o", "walk"], check=True,
                       cwd=folder / name)
        subprocess.run([ASSAY, "-q", "--plugin=cache", "--cache-sim=no", "--dump-instr=yes",
                        "--out=walk.out", "--", "./walk"], check=True, stdout=subprocess.DEVNULL,
                       cwd=folder / name)
    return "old/walk.out", "new/walk.out"


def make_threads(folder: Path) -> tuple[str, str]:
    """The profile of a process with threads, and the index of a run of two processes."""
    shutil.copy(PROGRAM.with_name("threads.c"), folder)
    subprocess.run(["gcc", "-O1", "-g", "-pthread", "threads.c", "-o", "threads"], check=True,
                   cwd=folder)
    for out, plugins, words in (("threads.out", "cache,classic", []), ("both.out", "cache", ["again"])):
        subprocess.run([ASSAY, "-q", f"--plugin={plugins}", "--cache-sim=no", "--threads",
                        f"--out={out}", "--", "./threads", *words], check=True,
                       stdout=subprocess.DEVNULL, cwd=folder)
    return "threads.out", "index.both.out"


def make_series(folder: Path) -> str:
    """A profile with series, of which that of working sets has one for each thread."""
    shutil.copy(PROGRAM.with_name("threads.c"), folder)
    subprocess.run(["gcc", "-O1", "-g", "-pthread", "threads.c", "-o", "threads"], check=True, cwd=folder)
    subprocess.run([ASSAY, "-q", "--plugin=reuse,working_set", "--interval-size=5000", "--out=series.out",
                    "--", "./threads"], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return "series.out"


def make_heap(folder: Path) -> str:
    """A profile with objects, types and contexts."""
    shutil.copy(ROOT / "examples" / "programs" / "particles.c", folder)
    subprocess.run(["gcc", "-O1", "-g", "-fno-inline", "particles.c", "-o", "particles"], check=True, cwd=folder)
    subprocess.run([ASSAY, "-q", "--plugin=cache", "--objects", "--types", "--contexts", "--dump-instr=yes",
                    "--out=heap.out", "--", "./particles"], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return "heap.out"


def make_blocks(folder: Path) -> str:
    """A heap with a known peak."""
    shutil.copy(ROOT / "tests" / "programs" / "hosted" / "heap.c", folder)
    subprocess.run(["gcc", "-O1", "-g", "-fno-inline", "heap.c", "-o", "heap"], check=True, cwd=folder)
    subprocess.run([ASSAY, "-q", "--plugin=cache", "--objects", "--out=blocks.out", "--", "./heap"],
                   check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return "blocks.out"


def make_inlined(folder: Path):
    """A profile with inlining sites only, and one with many events."""
    subprocess.run(["gcc", "-O2", "-g", "walk.c", "-o", "inlined"], check=True, cwd=folder)
    for out, options in (("inlined.out", ["--cache-sim=no"]), ("machine.out", ["--machine=zen4", "--branch-sim=yes"])):
        subprocess.run([ASSAY, "-q", *options, f"--out={out}", "--", "./inlined"],
                       check=True, stdout=subprocess.DEVNULL, cwd=folder)


def make_report(folder: Path, name: str, *words) -> str:
    result = run([ASSAY, "report", "-o", name, *words], cwd=folder)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return (folder / name).as_uri()


def write_phases(folder: Path) -> list:
    vectors = "".join("T" + "".join(f":{block + 10 * phase}:{1000 * block}   " for block in (1, 2, 3))
                      + "\n" for phase in (0, 1, 0, 2) for _ in range(20))
    (folder / "bb.out").write_text(vectors)
    (folder / "simpts").write_text("3 0\n25 1\n70 2\n")
    return ["--block-vectors", folder / "bb.out", "--simpoints", folder / "simpts"]


def write_long_names(folder: Path, file_name: str, largest: int) -> Path:
    """A profile with everything to see, of names as templates and generated code have them: some
    can be broken into lines, some nowhere."""
    template = "__gnu_cxx::__normal_iterator<int*, std::vector<int, std::allocator<int> > > "
    names = [template * 8 + f"f{i}" if i % 2 else "_ZN" + "4nameI" * 60 + f"_{i}"
             for i in range(20)]
    file = "/home/somebody/" + "a_long_folder/" * 20 + "predefined_ops.h"
    counts = [largest // (i + 1) for i in range(len(names))]
    lines = "".join(
        f"fn={name}\n{i} {count} {count} {count // 3}\nfl=#! at 0:{i:#x} {i} {count}\n"
        f"fl=#! of {i} {i} {count // 2}\nfl=#! of {i + 20} {i} {count // 3}\n"
        f"fl=#! value 0:{i:#x} {i} used_bytes.bytes {count // 64} 0x8:{count // 64}\n"
        f"fl=#! value 0:{i:#x} {i} classic.loaded {count} error=9 "
        f"0xffffffffffffffff:{count // 2} 0x1:1\nfl={file}\n" for i, (name, count) in enumerate(zip(names, counts, strict=True), 1))
    stacks = "".join(f'fl=#! stack {i} in={i // 2} call=0:{i:#x} "{name}" {count}\n'
                     for i, (name, count) in enumerate(zip(names, counts, strict=True), 1))
    series = "".join(f'fl=#! series "{names[1]}" from="{file}{i}" "{names[2]}"\n'
                     f'fl=#! x "{names[3]}" unit="{names[4]}"\n'
                     f'fl=#! y "{names[5]}" unit="{names[6]}"\nfl=#! y "{names[7]}" unit=u\n'
                     f'fl=#! points 0:{largest}:1 {largest}:0:{i}\n' for i in range(8))
    groups = "".join(f'fl=#! group {i} object in=0 "{name}" class=heap size={2 ** i} '
                     f'blocks={largest} stack={i}\n' for i, name in enumerate(names, 1))
    groups += "".join(f'fl=#! group {i + 20} type in={i + 19 if i > 1 else 0} "{name}" '
                      f'size={2 ** 12} offset={i} type="{name}"\n' for i, name in enumerate(names, 1))
    total = sum(counts)
    path = folder / file_name
    path.write_text(
        f"desc: a long description: {file}\ncmd: {file} --option={names[0]}\n"
        "events: Ir ReadB UsedB\nfl=#! version 1\n"
        "fl=#! event Ir unit=instructions profiler=cache "
        f'"instructions executed {"at length " * 20}"\n'
        f'fl=#! derived "a figure of a long name {"and so on " * 20}" unit=% = UsedB / ReadB\n'
        f"fl=#! object 0 {file}\nfl=#! incomplete by {file}\n{series}{groups}fl={file}\n{lines}{stacks}"
        f"summary: {total} {total} {sum(count // 3 for count in counts)}\n")
    return path


@unittest.skipUnless(browser.CHROMIUM, "Chromium is not installed")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = support.temporary_folder_of_class(cls)
        cls.folder = folder
        cls.profile = make_profile(folder)
        cls.page = make_report(folder, "walk.html", cls.profile)
        all_kinds = ROOT / "tests" / "unit" / "data" / "version-1.events"
        cls.kinds = make_report(folder, "kinds.html", *write_phases(folder), all_kinds)
        (folder / "points").write_text("3 0\n25 1\n")
        (folder / "labels").write_text("".join(f"{phase}\n" * 20 for phase in (0, 1, 0, 2)))
        cls.labelled = make_report(folder, "labelled.html", "--block-vectors", "bb.out",
                                   "--simpoints", "points", "--labels", "labels", all_kinds)
        cls.difference = make_report(folder, "diff.html", "--diff", cls.profile, cls.profile)
        cls.versions = make_report(folder, "versions.html", "--diff", *make_versions(folder))
        threads, index = make_threads(folder)
        cls.threads = make_report(folder, "threads.html", threads)
        cls.index = make_report(folder, "index.html", index)
        series = make_series(folder)
        cls.series = make_report(folder, "series.html", series)
        cls.series_data = json.loads(run([ASSAY, "export", "--format=json", "-o", "-", folder / series]).stdout)["series"]
        cls.series_difference = make_report(folder, "series-diff.html", "--diff", series, series)
        cls.blocks = make_report(folder, "blocks.html", make_blocks(folder))
        heap = make_heap(folder)
        cls.heap = make_report(folder, "heap.html", heap)
        cls.heap_difference = make_report(folder, "heap-diff.html", "--diff", heap, heap)
        make_inlined(folder)
        cls.inlined = make_report(folder, "inlined.html", "inlined.out")
        cls.machine = make_report(folder, "machine.html", "machine.out")
        data = ROOT / "tests" / "end_to_end" / "data"
        cls.stacks = make_report(folder, "stacks.html", "--diff", data / "stacks-old.events",
                                 data / "stacks-new.events")
        cls.groups = make_report(folder, "groups.html", data / "groups.events")
        hostile = folder / "hostile"
        name = "</script><img src=x onerror=document.body.dataset.hacked=1>"
        hostile.write_text(f"desc: {name}: {name}\ncmd: {name}\nevents: Ir\nfl={name}\nfn={name}\n"
                           "1 5\nsummary: 5\n")
        cls.hostile = make_report(folder, "hostile.html", hostile)
        long_names = write_long_names(folder, "long", 2 ** 40)
        cls.long = make_report(folder, "long.html", *write_phases(folder), long_names)
        cls.long_difference = make_report(folder, "long-diff.html", "--diff",
                                          write_long_names(folder, "shorter", 2 ** 35), long_names)
        large = folder / "large"
        large.write_text("desc: a\ncmd: large\nevents: Ir Dr\n" + "".join(
            f"fl=file{i % 300}.c\nfn=function{i}\n{i} {i} 1\n" for i in range(1, 60001)) +
            f"summary: {60000 * 60001 // 2} 60000\n")
        cls.large = make_report(folder, "large.html", large)
        lists = folder / "lists"
        lists.write_text("desc: a\ncmd: lists\nevents: Ir\nfl=#! version 1\n"
                         "fl=#! object 0 /bin/lists\nfl=a.c\nfn=f\n1 2500\n" + "".join(
                             f"fl=#! value 0:{i:#x} 1 classic.loaded {i} {i:#x}:{i}\n"
                             for i in range(1, 2501)) + "summary: 2500\n")
        cls.lists = make_report(folder, "lists.html", lists)
        source, moved = folder / "moved.c", folder / "moved"
        source.write_text("a;\n")
        moved.write_text(f"desc: a\ncmd: b\nevents: Ir\nfl={source}\nfn=f\n1 5\nsummary: 5\n")
        os.utime(moved, (1000, 1000))
        cls.moved = make_report(folder, "moved.html", moved)
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.console.clear()

    def tearDown(self):
        self.assertEqual(self.browser.console, [])  # no error, nothing blocked, nothing loaded

    def texts(self, selector) -> list[str]:
        return self.browser.evaluate(
            f"[...document.querySelectorAll({selector!r})].map(each => each.textContent.trim())")

    def view(self) -> str:
        return self.browser.evaluate(
            "document.querySelector('[role=tab][aria-selected=true]').id.slice(4)")

    def test_all_views_fit_and_are_legible(self):
        beside = "source/Ir//instructions"
        for page, views in ((self.page, VIEWS[:5] + ["calls", beside]), (self.kinds, VIEWS + [beside]),
                            (self.difference, VIEWS[:5]), (self.stacks, ["flame"]),
                            (self.versions, VIEWS[:4] + [beside, "calls", "groups"]),
                            (self.threads, ["threads", "values", beside]), (self.index, ["threads"]),
                            (self.groups, ["source", "groups", "threads"]), (self.blocks, ["heap", "groups"]),
                            (self.series, ["plots"]), (self.series_difference, ["plots"]),
                            (self.hostile, VIEWS)):
            for width, dark in ((1280, False), (390, True), *([(1400, True), (390, False)] if views == ["plots"] else [])):
                for view in views:
                    self.browser.open(f"{page}#{view}", width, 844, dark)
                    self.assertEqual(self.view(), view.split("/")[0])
                    self.assertEqual(self.browser.evaluate(
                        "document.documentElement.scrollWidth"), width)
                    self.assertGreater(len(self.texts("main")[0]), 40)
                    self.assertEqual(self.browser.evaluate(UNNAMED), [], f"{page}#{view}")
                    self.assertGreaterEqual(self.browser.evaluate(CONTRAST), 4.5)
        self.assertIsNone(self.browser.evaluate("document.body.dataset.hacked || null"))

    def test_long_names_leave_room_for_numbers(self):
        for page, views in ((self.long, VIEWS), (self.long_difference, VIEWS[:4]),
                            (self.threads, ["threads", "values"]), (self.index, ["threads"])):
            for width in (1280, 500, 390):
                for view in views:
                    self.browser.open(f"{page}#{view}", width, 844)
                    self.assertEqual(self.view(), view)
                    self.assertGreater(len(self.texts("main")[0]), 40)
                    self.assertEqual(self.browser.evaluate(MISPLACED), [], f"{view} {width} wide")
        self.browser.open(f"{self.long}#flame", 390, 844)
        self.browser.evaluate("document.querySelector('.flame').focus()")
        self.browser.press("ArrowDown")
        bottom = "document.querySelector('.status').getBoundingClientRect().bottom"
        self.assertLess(self.browser.evaluate(bottom), 844)
        self.assertIn("27.8 %", self.texts(".status")[0])

    def test_summary(self):
        """It is that of assay summary, and leads to the places."""
        self.browser.open(self.page)
        self.assertEqual(self.view(), "overview")
        printed = run([ASSAY, "summary", self.profile], cwd=self.folder).stdout
        rows = self.texts(".findings li")
        self.assertEqual(len(rows), len(re.findall(r"^ +[\d.]+ %  ", printed, re.M)))
        for title in self.texts(".summary h2"):
            self.assertIn(f"\n{title}\n", printed)
        for share in self.texts(".findings .num"):
            self.assertRegex(printed, rf"(?m)^ +{re.escape(share)}  ")
        for command in self.texts(".summary .next code"):
            self.assertIn(f"  {command}    ", printed)
        for selector in (".findings .functions .function", ".findings .lines .place"):
            self.browser.open(self.page)
            self.browser.evaluate(f"document.querySelector('{selector}').click()")
            self.browser.settle()
            self.assertEqual(self.view(), "source")
            self.assertEqual(self.texts(".source .row.cursor .number"), ["19"])
        self.browser.open(self.difference)
        self.assertEqual(self.texts(".summary"), [])

    def test_summary_leads_to_data(self):
        self.browser.open(self.heap)
        self.browser.evaluate("document.querySelector('.findings .data button').click()")
        self.browser.settle()
        self.assertEqual(self.view(), "groups")
        self.assertRegex(self.texts(".columns h2")[1], r"^main \(particles\.c:\d+\)$")

    def legend(self) -> dict[str, str]:
        return {each.split(" (")[0].partition("B")[2]: each.partition("B")[0] + "B" for each in self.texts(".sites-legend li")}

    def test_heap(self):
        """The curve begins at its peak, follows the keyboard, and leads to the sites."""
        self.browser.open(self.blocks + "#heap")
        text = self.texts("main")[0]
        self.assertIn("At most 898 KiB in use", text)
        self.assertIn("248 KiB never freed", text)
        legend = self.legend()
        self.assertEqual((legend["spike"], legend["grow"], legend["lose"], legend["forget"]),
                         ("391 KiB", "313 KiB", "195 KiB", "0 B"))
        self.assertIn(", the peak", self.texts(".status")[0])
        self.browser.evaluate("document.querySelector('.plot').focus()")
        self.browser.press("End")
        legend = self.legend()
        self.assertEqual((legend["spike"], legend["grow"], legend["lose"], legend["forget"]),
                         ("0 B", "0 B", "195 KiB", "48.8 KiB"))
        self.assertEqual(len(self.texts(".plot .area")), len(legend))
        self.assertRegex(self.texts(".sites tbody tr")[0], r"^spike \(heap\.c:\d+\)← main")
        self.browser.evaluate("document.querySelectorAll('.sites th button')[2].click()")
        self.browser.settle()
        self.assertEqual([each.split(" ")[0] for each in self.texts(".sites tbody .wide")][:2], ["lose", "forget"])
        self.browser.evaluate("document.querySelector('.sites tbody button').click()")
        self.browser.settle()
        self.assertEqual(self.view(), "groups")
        self.assertRegex(self.texts(".columns h2")[1], r"^lose \(heap\.c:\d+\)$")
        for key in ("Never freed", "When the heap was largest"):
            self.assertIn(key, self.texts(".made td"))
        self.browser.open(self.blocks + "#plots")
        self.assertIn("not in this report", self.texts("h2")[0])

    def test_views_lead_to_one_another(self):
        """From a frame to its lines, to a line's instructions and objects, and back to the frame."""
        self.browser.open(self.heap + "#flame/Ir", 1400)
        self.assertEqual(self.texts(".frame-lines"), [])
        self.browser.evaluate("[...document.querySelectorAll('.frame')].find(each => each.textContent === 'move').click()")
        self.browser.settle()
        lines = self.texts(".frame-lines li")
        self.assertRegex(self.texts(".frame-lines")[0], r"^Lines of move, particles\.c, for all its callers")
        hot = next(i for i, line in enumerate(lines) if "particles[i].x += particles[i].v" in line)
        self.browser.evaluate(f"document.querySelectorAll('.frame-lines li button')[{hot}].click()")
        self.browser.settle()
        self.assertEqual(self.view(), "source")
        self.assertIn("particles[i].x +=", self.texts(".source .row.cursor .text")[0])
        self.assertEqual(self.texts(".assembly .row"), [])
        self.browser.evaluate("document.querySelector('.source .row.cursor').click()")
        self.browser.settle()
        self.assertGreater(len(self.texts(".assembly .row.of-line")), 3)
        self.assertEqual(self.texts(".line-functions button"), ["move"])
        self.assertRegex(self.texts(".status")[0], r"Cy by object: main \(particles\.c:\d+\)")
        self.browser.press("a")  # closed for good
        self.browser.evaluate("document.querySelectorAll('.source .row')[20].click()")
        self.browser.settle()
        self.assertEqual(self.texts(".assembly .row"), [])
        self.browser.evaluate("[...document.querySelectorAll('.source .row')].find(each => each.textContent.includes('particles[i].x +=')).click()")
        self.browser.settle()
        self.browser.evaluate("document.querySelector('.line-functions button').click()")
        self.browser.settle()
        self.assertEqual(self.view(), "flame")
        self.assertEqual(self.texts(".frame.cursor"), ["move"])

    def test_inclusive_counts(self):
        """Of calls, and of code that was inlined."""
        self.browser.open(self.heap + "#functions/Cy")
        self.assertEqual(self.texts(".head [role=columnheader]")[1:3], ["Cy incl.", "▼\u00a0Cy"])
        self.browser.press("/")
        self.browser.type("main particles.c")
        main = self.texts(".functions .row:first-child .cell")
        counted = json.loads(run([ASSAY, "annotate", "--json", "--calls", "heap.out"], cwd=self.folder).stdout)
        function = next(each for each in counted["calls"] if each["function"] == "main")
        title = "document.querySelector('.functions .cell').title"
        self.assertEqual(self.browser.evaluate(title), f"Cy: {function['inclusive'][0]:,}")
        self.assertNotEqual(main[0], main[1])
        self.browser.open(self.heap_difference + "#functions/Ir")
        self.assertEqual(self.texts(".head [role=columnheader]")[1], "Ir incl.")
        self.browser.open(self.inlined + "#functions/Ir")
        self.browser.press("/")
        self.browser.type("main walk.c")
        main = self.texts(".functions .row:first-child .cell")
        self.assertEqual(self.texts(".head [role=columnheader]")[1], "Ir incl.")
        self.assertNotEqual(main[0], main[1])

    def test_inclusive_counts_of_lines(self):
        """A line that only calls has the counts of the function that it calls."""
        self.browser.open(self.heap + "#source/Ir", 1400)
        self.assertEqual(self.texts(".source .head [role=columnheader]")[:2], ["Ir incl.", "Ir"])
        rows = self.browser.evaluate("[...document.querySelectorAll('.source .row')].map(row => "
                                     "[...row.children].map(each => each.textContent.trim()))")
        cells = {row[-1]: row for row in rows if len(row) > 3}
        number = lambda text: int(text.split()[0].replace(",", ""))
        own = sum(number(row[1]) for row in rows if len(row) > 3 and row[1] and row[2] in ("14", "15", "16"))
        call = next(row for text, row in cells.items() if re.search(r"\bmove\(particles\)", text))
        self.assertEqual(number(call[0]), own + number(call[1]))
        self.browser.open(self.heap + "#source/Ir", 390)
        self.assertEqual(self.texts(".source .head [role=columnheader]")[0], "Ir")

    def test_all_columns_can_be_seen(self):
        for page in (self.heap, self.heap_difference, self.machine, self.page):
            self.browser.open(page + "#functions", 1400)
            self.assertEqual(self.browser.evaluate(HIDDEN_COLUMNS), [], page)

    def test_quick_keys(self):
        """Four keys before anything is drawn."""
        self.browser.open(self.page + "#functions")
        events = self.texts(".top option")
        for key, index in (("]", 4), ("[", 2)):
            self.browser.evaluate(f"for (let i = 0; i < {4 if key == ']' else 2}; ++i) "
                                  f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))")
            self.browser.settle()
            self.assertEqual(self.browser.evaluate("document.querySelector('.top select').value"), str(index))
            self.assertIn(f"/{events[index].split(':')[0]}", self.browser.evaluate("location.hash"))

    def test_going_back_keeps_the_search(self):
        self.browser.open(self.page + "#functions/D1mr")
        self.browser.press("/")
        self.browser.type("by_ walk.c")
        self.browser.evaluate("document.querySelectorAll('.functions .row')[1].click()")
        self.browser.settle()
        self.assertEqual(self.view(), "source")
        self.browser.evaluate("history.back()")
        self.browser.wait("document.querySelector('.functions')")
        self.browser.settle()
        self.assertEqual(self.texts(".functions .name b"), ["by_columns", "by_rows"])
        self.assertEqual(self.texts(".functions .row.cursor .name b"), ["by_rows"])

    def test_bars_line_up(self):
        for page in (self.page + "#overview", self.threads + "#values", self.index + "#threads"):
            self.browser.open(page)
            sides = self.browser.evaluate(
                "[...document.querySelectorAll('.values .bars, .panel > .bars, .threads table')].map(list => new Set([...list.querySelectorAll("
                "'.track')].map(each => [each.getBoundingClientRect().left, each.getBoundingClientRect().width].join())).size)")
            self.assertLessEqual(max(sides, default=1), 1, page)

    def test_colours_of_changes(self):
        """A decrease is never shown in the colour of heat."""
        self.browser.open(self.versions + "#overview")
        colours = self.browser.evaluate("[...document.querySelectorAll('.bars li')].map(each => "
                                        "[each.querySelector('.num').textContent[0], each.querySelector('.track').className])")
        self.assertIn(["-", "track shrunk"], colours)
        for sign, name in colours:
            self.assertEqual(name, "track shrunk" if sign == "-" else "track grown")

    def test_page_is_not_too_large(self):
        """Names that cannot be compressed, so that not all fit, and a file that is left out."""
        numbers = random.Random(1)
        path = self.folder / "names"
        path.write_text("desc: a\ncmd: names\nevents: Ir\nfl=/etc/passwd\n" + "".join(
            f"fn={numbers.getrandbits(2400):x}\n1 {i}\n" for i in range(1, 12001)) +
            f"summary: {12000 * 12001 // 2}\n")
        made = run([ASSAY, "report", "-o", "names.html", path], cwd=self.folder)
        self.assertEqual(made.returncode, 0)
        self.assertEqual(made.stderr.count("left out"), 1, made.stderr)
        size = (self.folder / "names.html").stat().st_size
        self.assertIn(size, range(4_000_000, 5_000_001))
        self.browser.open((self.folder / "names.html").as_uri() + "#functions")
        self.assertRegex(self.texts("[role=status]")[0], r"functions; [\d,]+ with the lowest counts are left out")

    def test_sources_that_are_newer(self):
        self.browser.open(self.page + "#source")
        self.assertEqual(self.texts("main .warning"), [])
        self.browser.open(self.moved + "#source")
        self.assertIn("is newer than", self.texts("main .warning")[0])
        self.assertIn("a;", self.texts(".source .text"))
        self.assertEqual(self.browser.evaluate(MISPLACED), [])

    def test_functions_by_keyboard(self):
        self.browser.open(self.page + "#functions/D1mr")
        names = self.texts(".functions .name b")
        self.assertEqual(names[:3], ["by_columns", "by_rows", "move"])
        self.browser.press("/")
        self.browser.type("by_ walk.c")
        self.assertEqual(self.texts(".functions .name b"), ["by_columns", "by_rows"])
        self.assertEqual(self.texts("[role=status]")[0], "2 functions")
        self.browser.evaluate("document.querySelector('.functions').focus()")
        self.browser.press("ArrowDown")
        self.browser.press("Enter", "\r")
        self.assertEqual(self.view(), "source")
        self.assertIn("sum += matrix[i][j]", self.texts(".source .row.cursor .text")[0])
        self.assertEqual(self.texts(".source .row.cursor .number"), ["12"])
        self.browser.press("p")  # the hottest line of the file
        self.assertEqual(self.texts(".source .row.cursor .number"), ["19"])

    def test_sorting(self):
        self.browser.open(self.page + "#functions/Ir")
        for _ in range(2):
            self.browser.evaluate("document.querySelector('.head .first button').click()")
            self.browser.settle()
        names = self.texts(".functions .name b")
        self.assertEqual(names, sorted(names, reverse=True))
        self.assertEqual(self.browser.evaluate(
            "document.querySelector('.head .first').getAttribute('aria-sort')"), "descending")

    def test_events(self):
        self.browser.open(self.page + "#overview/Ir")
        self.browser.press("]")
        self.assertIn("Where it goes: I1mr", self.texts("h2"))
        self.browser.press("[")
        self.browser.press("3")
        self.assertEqual(self.view(), "source")
        self.assertEqual(self.texts(".source .head span")[:2], ["Ir incl.", "Ir"])

    def test_history(self):
        self.browser.open(self.page + "#overview/Ir")
        address = "location.hash"
        for view in ("functions", "source"):
            self.browser.evaluate(f"document.getElementById('tab-{view}').click()")
            self.browser.settle()
        for step, view in (("back", "functions"), ("back", "overview"), ("forward", "functions")):
            self.browser.evaluate(f"setTimeout(() => history.{step}(), 0)")
            self.browser.wait(f"document.querySelector('#tab-{view}')?.ariaSelected === 'true'")
            self.assertEqual(self.browser.evaluate(address), f"#{view}/Ir")
        self.browser.evaluate("location.hash = '#source/Dr/' + encodeURIComponent("
                                     "document.title)")  # no source: the usual one
        self.browser.wait("document.querySelector('#tab-source').ariaSelected === 'true'")
        self.browser.settle()
        shown = self.browser.evaluate("document.querySelector('main').textContent")
        self.assertIn("matrix[i][j]", shown[-5000:])
        self.assertEqual(self.browser.evaluate(address), "#source/Dr")
        self.browser.evaluate("location.hash = '#overview/%'")
        self.browser.wait("document.querySelector('#tab-overview').ariaSelected === 'true'")

    def test_flame_graph(self):
        self.browser.open(self.page + "#flame/Refs")
        self.assertTrue({"main", "median", "by_columns"} <= set(self.texts(".flame .frame")))
        widths = self.browser.evaluate(
            "Object.fromEntries([...document.querySelectorAll('.flame .frame')]"
            ".map(each => [each.textContent, each.getBoundingClientRect().width]))")
        self.assertAlmostEqual(widths["by_rows"], widths["by_columns"], delta=2)
        self.browser.evaluate("document.querySelector('.flame').focus()")
        for _ in range(4):
            self.browser.press("ArrowDown")
        self.assertIn("median", self.texts(".status b")[0])
        self.browser.press("Enter", "\r")
        self.assertNotIn("by_rows", self.texts(".flame .frame"))
        self.browser.press("Escape")
        self.assertIn("by_rows", self.texts(".flame .frame"))

    def test_difference_of_flame_graphs(self):
        self.browser.open(self.stacks + "#flame")
        shown = """Object.fromEntries([...document.querySelectorAll('.flame .frame')].map(
            each => [each.title, [each.style.background, each.getBoundingClientRect().width]]))"""
        frames = self.browser.evaluate(shown)
        (grown, wide), (same, narrow) = (
            frames["leaf: 60 (80.0 %), changed by +40 (+200.0 %)"],
            frames["leaf: 10 (13.3 %), unchanged"])
        red, green, blue = map(int, re.findall(r"\d+", grown))
        self.assertGreater(red, max(green, blue))
        self.assertEqual(len(set(re.findall(r"\d+", same))), 1)  # grey
        self.assertAlmostEqual(wide / narrow, 6, delta=0.2)
        self.browser.evaluate("document.querySelector('button[aria-pressed]').click()")
        self.browser.settle()
        frames = self.browser.evaluate(shown)
        self.assertIn("leaf: 20 (57.1 %), changed by +40 (+200.0 %)", frames)

    def test_cache_lines(self):
        self.browser.open(self.page + "#lines")
        shown = dict(zip(self.texts(".cacheline .linkish"), self.texts(".cacheline .num")))
        self.assertTrue(shown["move"].endswith("bytes, 12.5 % used"), shown)  # 8 of 64
        bytes_used = self.browser.evaluate("""[...[...document.querySelectorAll('.cacheline > div')]
            .find(each => each.querySelector('.linkish').textContent === 'move')
            .querySelectorAll('.strip i')].map(each => each.title)""")
        self.assertEqual(len(bytes_used), 64)  # calloc's memory begins 16 bytes behind a line
        self.assertEqual([title for title in bytes_used if "100.0 %" in title],
                         [f"byte {i}: used in 100.0 % of the lines" for i in range(16, 24)])
        self.assertGreater(len(self.texts(".heatmap i")), 400)

    def choose(self, selector, value):
        self.browser.evaluate(f"""(() => {{
            const chosen = document.querySelector({selector!r});
            chosen.value = {value!r};
            chosen.dispatchEvent(new Event('change', {{ bubbles: true }}));
        }})()""")
        self.browser.settle()

    def click(self, text):
        self.browser.evaluate(f"[...document.querySelectorAll('main button')]"
                              f".find(each => each.textContent === {text!r}).click()")
        self.browser.settle()

    def test_objects(self):
        self.browser.open(self.groups + "#groups/Ir")
        self.assertEqual(self.texts("[role=tab][aria-selected=true]"), ["Objects, types"])
        self.assertIn("Ir is not counted by object", self.texts("main p")[0])
        self.browser.press("]")
        self.browser.press("]")
        rows = "main .columns > div:first-child td:not(.wide)"
        self.assertEqual(self.texts(rows), ["129", "97.0 %", "2", "1.50 %", "1", "0.75 %", "1",
                                            "0.75 %"])
        self.browser.press("[")
        self.assertEqual(self.texts(rows)[-2:], ["1", "0.25 %"])
        self.assertIn("malloc ← make_node ← main", self.texts("table.made td"))
        self.click("stack of thread 1")
        self.assertEqual(self.texts("h2"), ["Dr by object", "stack of thread 1", "What is in it",
                                            "Lines that touch it"])
        self.click("sum")
        self.assertIn("in main", self.texts("main p"))
        self.browser.press("/")
        self.browser.type("malloc")
        self.assertEqual(self.texts("[role=status]"), ["1 object"])

    def test_layout_of_a_type(self):
        self.browser.open(self.groups + "#groups/D1mr")
        self.choose(".tools select", "type")
        layout = "main .columns > div:last-child section:nth-child(2) tr"
        self.assertEqual([re.sub(r"\s+", " ", text) for text in self.texts(layout)], [
            "OffsetSizeNameD1mr", "08next struct node *8060.2 %", "84flag unsigned, bits 0:110.75 %",
            "84kind unsigned, bits 1:700.00 %", "124(no counts)", "1648place struct place96.77 %",
            "168x double96.77 %", "2440name char[40]00.00 %", "cache line 1",
            "648key long3929.3 %", "7216(no counts)"])
        titles = self.browser.evaluate(
            "[...document.querySelectorAll('.strip i')].map(each => each.title)")
        self.assertEqual(len(titles), 128)
        self.assertEqual([titles[i] for i in (7, 8, 12, 16, 64, 87, 88)], [
            "byte 7: next: 80", "byte 8: flag: 1, kind: 0", "byte 12: nothing",
            "byte 16: place.x: 9", "byte 64: key: 39", "byte 87: nothing", ""])
        self.click("place")
        self.assertEqual(self.texts("h2")[1], "place")

    def test_from_line_to_object_and_back(self):
        self.browser.open(self.groups + "#source/D1mr")
        self.assertEqual(self.texts(".status div"), [
            "by object: make_node (a.c:12) 119, make_names (a.c:14) 1",
            "by type: struct node: next 80, struct node: key 39",
            "by thread: main 100, </script><b>worker 20"])
        self.click("struct node: key")
        self.assertEqual(self.view(), "groups")
        self.assertEqual(self.texts("h2")[:2], ["D1mr by type", "key"])
        self.click("a.c:20")
        self.assertEqual(self.view(), "source")
        self.assertEqual(self.texts(".source .row.cursor .number"), ["20"])

    def counts(self, selector) -> list[int]:
        return [int(text.replace(",", "").replace("+", "")) for text in self.texts(selector)
                if text not in ("", "=")]

    def test_instructions_beside_the_source(self):
        self.browser.open(self.page + "#source/Ir")
        self.assertEqual(self.texts(".assembly .row"), [])
        self.browser.press("a")
        hot = ".source .row.cursor "
        self.assertEqual(self.texts(hot + ".number"), ["12"])
        line = self.texts(hot + ".count")[0].split()[0]
        marked = ".assembly .row.of-line "
        self.assertEqual(set(self.texts(marked + ".number:nth-child(2)")), {"12"})
        self.assertEqual(sum(self.counts(marked + ".count")), int(line.replace(",", "")))
        self.assertTrue(any(text.startswith("addsd") for text in self.texts(marked + ".text")))
        self.assertTrue(any(re.search(r"<by_rows\+0x[0-9a-f]+>$", text)
                            for text in self.texts(marked + ".text")))
        self.assertEqual(self.texts(".assembly .title"), ["by_rows"])
        # From an instruction to its line.
        self.browser.evaluate("[...document.querySelectorAll('.assembly .row')].find("
                              "each => each.textContent.includes('ret')).click()")
        self.browser.settle()
        self.assertEqual(self.texts(hot + ".number"), ["14"])
        self.assertEqual(self.texts(".assembly .row.cursor .number")[0], "14")
        self.assertTrue(self.browser.evaluate("location.hash").endswith("//instructions"))
        self.browser.press("a")
        self.assertEqual(self.texts(".assembly .row"), [])
        self.browser.evaluate("setTimeout(() => history.back(), 0)")
        self.browser.wait("document.querySelector('.assembly .row') !== null")

    def test_instructions_that_are_not_there(self):
        self.browser.open(self.threads + "#source/Ir//instructions")
        self.assertIn("--dump-instr=yes", self.texts(".beside .panel.assembly-none")[0])
        self.assertIn("assay --dump-instr=yes -- ./threads", self.texts("pre"))
        self.browser.open(self.kinds + "#source/Ir//instructions")
        self.assertIn("Only addresses are shown", self.texts(".beside .warning")[0])

    def test_two_versions_of_a_source(self):
        self.browser.open(self.versions + "#source/Ir")
        loop = self.texts(".source .row.cursor > *")
        self.assertEqual(loop[:4], ["4,001,000", "2,801,000", "-1,200,000", "12"])
        self.assertRegex(loop[4], r"^−\s*for .* j < 1000")
        self.assertEqual(loop[5], "13")
        self.assertRegex(loop[6], r"^\+\s*for .* j < 700")
        self.assertIn("line 13, which was line 12", self.texts(".status b"))
        self.assertIn("4,001,000 → 2,801,000 -1,200,000 (-30.0 %)", self.texts(".status")[0])
        color = "getComputedStyle(document.querySelector('.source .row.cursor')).backgroundColor"
        red, green, blue = map(int, re.findall(r"\d+", self.browser.evaluate(color))[:3])
        self.assertGreater(blue, max(red, green))  # it has shrunk
        # In a narrow window, and beside instructions, one below the other: the text before is above.
        for width, view in ((390, "source/Ir"), (1280, "source/Ir//instructions")):
            self.browser.open(f"{self.versions}#{view}", width)
            rows = self.texts(".source .row .text")
            at = next(i for i, text in enumerate(rows) if "j < 700" in text)
            self.assertRegex(rows[at - 1], r"^−\s*for .* j < 1000")
            self.assertIn("-1,200,000", self.texts(".source .row.cursor .count"))

    def test_functions_of_two_versions(self):
        self.browser.open(self.versions + "#functions/Ir")
        self.assertEqual(self.texts(".functions .name b")[0], "by_rows")
        self.browser.press("/")
        self.browser.type("median")
        self.assertEqual(self.texts(".functions .row .name b"), ["median"])
        self.browser.evaluate("document.querySelector('.functions').focus()")
        self.browser.press("Enter", "\r")  # only the old version has it
        self.assertRegex(self.texts(".status b")[0], r"^line \d+, which was line \d+$")
        self.assertIn("rand()", self.texts(".source .row.cursor .text")[0])
        self.assertRegex(self.browser.evaluate("location.hash"), r"%3Aold\d+$")
        self.browser.open(self.difference + "#source/Ir")
        self.assertEqual(set(self.texts(".source .row .count:nth-child(3)")), {"=", ""})

    def test_threads(self):
        self.browser.open(self.threads + "#threads/Ir")
        names = "main .columns > div:first-child .linkish"
        self.assertEqual(set(self.texts(names)), {"reader", "writer", "threads"})
        self.click("writer")
        own = int(self.texts("tr.chosen .num")[0].replace(",", ""))
        functions = dict(zip(self.texts("main .columns > div:last-child section:first-child .linkish"),
                             self.counts("main .columns > div:last-child section:first-child td.num:first-child")))
        self.assertEqual(sum(functions.values()), own)
        self.assertGreater(functions["write_all"], 20 * 1000)
        self.assertNotIn("read_all", functions)
        self.click("write_all")
        self.assertEqual(self.view(), "source")
        self.browser.evaluate("setTimeout(() => history.back(), 0)")
        self.browser.wait("document.querySelector('#tab-threads').ariaSelected === 'true'")
        self.click("Search and sort them, with all events")
        self.assertEqual(self.view(), "functions")
        self.assertEqual(self.texts(".functions .name b")[0], "write_all")
        self.assertNotIn("read_all", self.texts(".functions .name b"))
        address = self.browser.evaluate("location.href")
        self.browser.open(address)
        self.assertEqual(self.texts(".functions .name b")[0], "write_all")
        self.choose(".tools select", "")
        self.assertIn("read_all", self.texts(".functions .name b"))
        self.browser.press("/")
        self.browser.type("no such function")
        self.assertEqual(self.texts("main p"), ["No function matches."])

    def test_processes(self):
        self.browser.open(self.index + "#threads/Ir")
        self.assertEqual(self.texts("[role=tab][aria-selected=true]"), ["Processes, programs, threads"])
        names = [re.sub(r"^\d+ ", "", text)
                 for text in self.texts("main .columns > div:first-child .linkish")]
        self.assertEqual(names[0], "./threads again")
        self.assertEqual(sorted(names[1:]), ["./threads", "./threads again"])
        itself, together = self.counts("tr.chosen td.num:first-child, tr.chosen td.num:nth-child(3)")
        others = self.counts("main .columns > div:first-child tbody tr:not(.chosen) td.num:first-child")
        self.assertEqual(together, itself + sum(others))
        self.choose(".tools select", "program")
        self.assertEqual(self.texts("[role=status]"), ["1 program"])
        self.browser.press("/")
        self.browser.type("nothing")
        self.assertIn("No program is named so.", self.texts("main p"))

    def test_views_without_data_say_how_to_get_it(self):
        wanted = {"flame": "--contexts", "calls": "--contexts", "groups": "--objects", "heap": "--objects", "threads": "--threads",
                  "lines": "--plugin=used_bytes", "values": "--plugin=classic", "phases": "assay simpoint",
                  "plots": "--plugin=reuse"}
        self.browser.open(self.lists)
        tabs = self.browser.evaluate("[...document.querySelectorAll('nav .missing')].map(each => each.id.slice(4))")
        self.assertEqual(set(tabs), set(wanted) - {"values"})
        for page, views in ((self.lists, tabs), (self.hostile, ["values"])):
            for view in views:
                self.browser.open(f"{page}#{view}")
                self.assertIn(wanted[view], self.texts("main")[0])
                self.assertTrue(any("assay " in text for text in self.texts("main pre")), view)
                self.assertEqual(self.texts("main table, main ol, main [role=grid]"), [])
        self.assertIn("-- PROGRAM ARGUMENT...", self.texts("main pre")[0])  # the hostile one's has < and >
        self.browser.open(self.difference + "#calls")
        self.assertEqual(self.texts("main pre"), ["assay report walk.out\nassay report walk.out"])
        self.browser.press("1")
        self.assertEqual(self.view(), "overview")

    def test_plots(self):
        curve, *sets = self.series_data
        self.browser.open(self.series + "#plots", 1400)
        self.assertEqual(self.texts("main h2"), ["miss curve reuse", "working set working_set"])
        # One picture of the curve; of the working sets one of lines and one of pages, with all threads.
        self.assertEqual(self.browser.evaluate(
            "[...document.querySelectorAll('.plot')].map(each => each.querySelectorAll('.curve').length)"),
            [1, len(sets), len(sets)])
        self.assertGreater(len(sets), 1)
        self.assertEqual(self.texts("figcaption"), ["misses", "lines", "pages"])
        self.assertEqual(self.texts(".plot-x"), ["cache size (bytes), on a logarithmic scale"] +
                         2 * ["executed before (instructions)"])
        ticks = self.texts(".plots:first-child .tick text")
        self.assertIn("64 B", ticks)
        self.assertTrue(any("KiB" in tick for tick in ticks), ticks)
        self.assertTrue(all(len(tick) < 9 for tick in ticks), ticks)
        # Of a path, the points are where the numbers say.
        path = self.browser.evaluate("document.querySelector('.curve').getAttribute('d')")
        places = [[float(word) for word in place.split()] for place in re.split("[ML]", path)[1:]]
        self.assertEqual(len(places), len(curve["points"]))
        self.assertEqual(places, sorted(places))  # x grows, and the curve goes down the page

    def test_plots_by_keyboard_and_pointer(self):
        curve, *sets = self.series_data
        text = lambda point: (f"{point[0]:,} ", f" {point[1]:,} misses")
        for width, dark in ((1400, False), (390, True)):
            self.browser.open(self.series + "#plots", width, 844, dark)
            self.browser.evaluate("document.querySelector('.plot').focus()")
            for key, point in (("ArrowRight", 0), ("ArrowRight", 1), ("End", -1), ("Home", 0), ("ArrowLeft", 0)):
                self.browser.press(key)
                for shown in (self.texts(".status")[0], self.browser.evaluate(
                        "document.querySelector('.plot').getAttribute('aria-valuetext')")):
                    for part in text(curve["points"][point]):
                        self.assertIn(part, shown, key)
            self.browser.press("Escape")
            self.assertIn("Point at the curve", self.texts(".status")[0])
            # At the right edge, the last point.
            x, y, right = self.browser.evaluate("(() => { const box = document.querySelector('.plot').getBoundingClientRect();"
                                                "return [box.left + 57, box.top + 50, box.right - 3]; })()")
            self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
            self.browser.settle()
            self.assertIn(text(curve["points"][0])[1], self.texts(".status")[0])
            self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=right, y=y)
            self.browser.settle()
            self.assertIn(text(curve["points"][-1])[1], self.texts(".status")[0])
            self.assertEqual(self.browser.evaluate("document.querySelectorAll('.plot circle').length"), 1)

    def test_numbers_of_plots(self):
        curve, *sets = self.series_data
        self.browser.open(self.series + "#plots")
        self.assertEqual(self.texts("main td"), [])
        self.browser.evaluate("document.querySelectorAll('summary').forEach(each => each.click())")
        self.browser.settle()
        numbers = lambda points: [f"{number:,}" for point in points for number in point]
        self.assertEqual(self.texts(".plots:first-child td"), numbers(curve["points"]))
        self.assertEqual(self.texts(".plots:first-child th"), ["cache size (bytes)", "misses"])
        self.assertEqual(self.texts(".plots:last-child td"), numbers(sets[0]["points"]))
        self.choose(".plots:last-child details select", "1")
        self.assertEqual(self.texts(".plots:last-child td"), numbers(sets[1]["points"]))

    def test_curves_are_chosen(self):
        _, *sets = self.series_data
        self.browser.open(self.series + "#plots")
        count = "document.querySelectorAll('.plots:last-child .plot .curve').length"
        self.assertEqual(self.texts(".plot-legend button"), [f"thread {each['thread']}" for each in sets])
        self.browser.evaluate("document.querySelector('.plot-legend button').click()")
        self.browser.settle()
        self.assertEqual(self.browser.evaluate(count), 2 * (len(sets) - 1))
        self.browser.evaluate("document.querySelectorAll('.plot-legend button[aria-pressed=true]').forEach(each => each.click())")
        self.browser.settle()
        self.assertIn("No curve is chosen that has points.", self.texts("main p"))
        self.browser.open(self.series_difference + "#plots")
        self.assertEqual(self.texts(".plots:first-child .plot-legend button"), ["before", "after"])

    def test_values_that_are_addresses(self):
        self.browser.open(self.threads + "#values")
        self.browser.press("/")
        self.browser.type("threads.c write_all")
        self.assertRegex(" ".join(self.texts(".values code")), r"\bread_all 0x[0-9a-f]+")
        self.assertRegex(" ".join(self.texts(".values code")), r"\bwrite_all 0x[0-9a-f]+")
        self.browser.type(" nowhere")
        self.assertIn("No list matches.", self.texts("main p"))

    def test_values_and_phases(self):
        self.browser.open(self.kinds + "#values")
        self.assertIn("0x2a = 42", self.texts(".values code"))
        self.browser.open(self.kinds + "#phases")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('rect').length"), 4)
        self.assertEqual(self.texts("tbody tr:first-child td"), ["0", "3", "40", "50.0 %"])
        self.assertIn("resemble most", self.texts("main p")[0])

    def test_phases_with_labels(self):
        self.browser.open(self.labelled + "#phases")
        self.assertIn("are one phase", self.texts("main p")[0])
        self.assertEqual(self.texts("tbody td"), [
            "0", "3", "40", "66.7 %", "1", "25", "20", "33.3 %", "others", "none", "20", ""])
        self.assertEqual(self.browser.evaluate(
            "[...document.querySelectorAll('rect')].pop().getAttribute('fill')"), "var(--soft)")

    def test_values_left_out(self):
        self.browser.open(self.kinds + "#values")
        self.assertNotIn("most frequent", self.texts("[role=status]")[0])
        self.browser.open(self.lists + "#values")
        self.assertIn("the 2,000 most frequent of 2,500 are", self.texts("[role=status]")[0])
        self.assertIn("0x9c4 = 2,500", self.texts(".values code"))

    def test_large_profiles_stay_quick(self):
        self.browser.open(self.large + "#functions")
        self.assertLess(self.browser.evaluate("document.querySelectorAll('.row').length"), 60)
        self.assertIn("are left out", self.texts("[role=status]")[0])
        self.browser.evaluate("document.querySelector('.functions').focus()")
        self.browser.press("End")
        self.assertEqual(self.texts(".functions .row.cursor .name b"), ["function40001"])


# Heads of columns that are not in view.
HIDDEN_COLUMNS = """(() => {
  const list = document.querySelector('.functions').getBoundingClientRect();
  return [...document.querySelectorAll('.head [role=columnheader]')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.right > list.right || box.left < list.left || box.bottom > document.querySelector('.spacer').getBoundingClientRect().top + 1;
  }).map(each => each.textContent);
})()"""

# Controls that a screen reader has no name for.
UNNAMED = """[...document.querySelectorAll('button, select, input, [role=grid], [role=tree], [role=slider]')]
  .filter(each => !(each.textContent.trim() || each.getAttribute('aria-label') ||
                    (each.labels && each.labels.length))).map(each => each.outerHTML)"""

# What reaches out of the window, of its card or of itself, numbers in several lines, and cards
# that cover one another. What scrolls on its own may hold more than can be seen.
MISPLACED = """(() => {
  const box = each => each.getBoundingClientRect();
  const within = (each, left, right) => box(each).left >= left - 1 && box(each).right <= right + 1;
  const rolls = each => each.parentElement.closest('.virtual, .flame, .scroll-x, nav');
  const shown = [...document.querySelectorAll('#app *')].filter(
    each => box(each).width && !rolls(each));
  const cards = [...document.querySelectorAll('.panel')];
  const fits = each => {
    const card = each.parentElement.closest('.panel');
    const spills = each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0 &&
      getComputedStyle(each).overflowX === 'visible';
    return !spills && within(each, 0, innerWidth) &&
      (!card || within(each, box(card).left, box(card).right));
  };
  const broken = number => {
    const text = document.createRange();
    text.selectNodeContents(number);
    return new Set([...text.getClientRects()].map(line => line.top)).size > 1;
  };
  const numbers = shown.filter(each => each.matches('.num') && !each.querySelector('*'));
  const covered = (a, b) => box(a).left < box(b).right && box(b).left < box(a).right &&
    box(a).top < box(b).bottom && box(b).top < box(a).bottom;
  return [...shown.filter(each => !fits(each)), ...numbers.filter(broken),
          ...cards.filter((a, i) => cards.some((b, j) => j > i && covered(a, b)))]
    .map(each => each.outerHTML.slice(0, 120));
})()"""

# The lowest contrast of text with its panel (WCAG 2.1, 1.4.3), of the colours that texts have.
CONTRAST = """(() => {
  const channel = c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const luminance = color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number);
    return .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b); };
  const probe = document.createElement('i');
  document.body.append(probe);
  const value = name => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
  const contrast = (a, b) => { const [x, y] = [luminance(value(a)), luminance(value(b))];
    return (Math.max(x, y) + .05) / (Math.min(x, y) + .05); };
  const least = Math.min(...['--text', '--soft', '--accent', '--worse', '--better'].flatMap(
    text => ['--page', '--panel', '--row'].map(back => contrast(text, back))));
  probe.remove();
  return least;
})()"""


if __name__ == "__main__":
    unittest.main()
