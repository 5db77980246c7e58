#!/usr/bin/env python3
"""annotate, merge and diff: whole tables equal to those of Cachegrind's own tools, on its files and
on ours; what a terminal, a pager and shells get."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

import support
from support import ASSAY, GEOMETRY, PROGRAMS, ROOT, needs, profile, read_events, run, terminal_text

DATA = ROOT / "tests" / "end_to_end" / "data"

try:
    import jsonschema
except ImportError:
    jsonschema = None

# All kinds of lines, as old and new releases of Cachegrind write them: points for zeros, zeros left
# out at the end, lines and functions that occur twice, files without counts, names with blanks.
LIBERTIES = """desc: I1 cache: 32768 B, 64 B, 8-way associative
desc: Trigger: Program termination
cmd: ./prog  with blanks
events: Ir Dr Dw
fl=a.c
fn=main
1 10 2 .
0 5
2 . . 3
fl=in line.h
fn=main
7 100 1 1
fl=a.c
fn=operator()(int, char const*) const
3 7 0 1
fn=main
1 1
fl=???
fn=???
0 1000000000000 3
summary: 1000000000123 6 5
"""


def numbers(line: str) -> list[int]:
    """The counts at the beginning of a line of a table."""
    found = []
    for word in line.split():
        if word != "." and not re.fullmatch(r"-?[\d,]+", word):
            break
        found.append(0 if word == "." else int(word.replace(",", "")))
    return found


def cg_annotate(path):
    """Its totals, and its table of functions."""
    shown = run(["cg_annotate", "--auto=no", "--threshold=0", "--show-percs=no", path])
    if shown.returncode != 0 or "WARNING" in shown.stderr:
        raise AssertionError(f"{path}: {shown.stderr}")
    lines = shown.stdout.splitlines()
    totals = next(numbers(line) for line in lines if line.endswith(" PROGRAM TOTALS"))
    begin = next(i for i, line in enumerate(lines) if line.endswith(" file:function")) + 2
    table = {}
    for line in lines[begin:]:
        if not line:
            break
        name = re.match(r"(?:\s*(?:\.|-?[\d,]+)){%d}  (.*)" % len(totals), line).group(1)
        table[name] = numbers(line)[:len(totals)]
    return totals, table


def annotate(*words):
    shown = run([ASSAY, "annotate", "--json", "--auto=no", "--threshold=0", *words])
    if shown.returncode != 0 or shown.stderr:
        raise AssertionError(shown.stderr)
    document = json.loads(shown.stdout)
    first = document["events"][0]["name"] == "Cy"  # which Cachegrind's tools do not know
    return document["totals"][first:], {f"{each['file']}:{each['function']}": each["counts"][first:]
                                        for each in document["functions"]}


def nested_table(text: str, title: str, columns: int) -> dict[str, list[int]]:
    """What a table of files and functions, or of functions and files, says of each pair."""
    section = text.split(f"-- {title}\n")[1].split("\n---")[0]
    table, outer = {}, ""
    pattern = re.compile(r"([<>]?)\s+((?:-?[\d,]+\s+){%d})(.*)" % columns)
    for line in section.splitlines()[2:]:
        found = pattern.match(line)
        if not found:
            continue
        counts = [int(word.replace(",", "")) for word in found[2].split()]
        name = found[3].strip()
        if found[1] and name.endswith(":"):
            outer = name
        else:
            table[name if found[1] else outer + name] = counts
    return table


def peak_memory(argv) -> tuple[int, float]:
    """Of a process, in bytes; and its processor time in seconds."""
    with open(os.devnull, "wb") as nothing:
        child = subprocess.Popen([str(word) for word in argv], stdout=nothing)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise AssertionError(f"{argv}: {child.returncode}")
    return usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
NAMED = f"""desc: a
cmd: ./a
events: Ir
fl=a.cc
fn=shop::find(int)
1 40
fn=shop::find(long)
2 30
fn=void shop::add<{STRING} >({STRING} const&)
3 20
fn=main
4 10
summary: 100
"""


class Names(unittest.TestCase):
    """Tables show short names, each of one function; files and JSON have the full names."""
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.profile = self.folder / "named"
        self.profile.write_text(NAMED)
        self.other = self.folder / "other"
        self.other.write_text(NAMED.replace("3 20", "3 50").replace("100\n", "130\n"))
        self.full = f"void shop::add<{STRING} >({STRING} const&)"

    def text(self, *words, status=0):
        result = run([ASSAY, *words])
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout + result.stderr

    def check(self, *words):
        short, full = self.text(*words), self.text(*words, "--names=full")
        self.assertIn("shop::add<std::string>", short)
        self.assertNotIn("__cxx11", short)
        self.assertIn(self.full, full)
        return short

    def test_short_and_full(self):
        short = self.check("annotate", "--full", "--no-annotate", self.profile)
        self.assertIn("shop::add<std::string>", self.text("annotate", self.profile))
        for name in ("shop::find(int)", "shop::find(long)"):
            self.assertIn(name, short)
        self.assertIn("shop::find(int)", self.text("summary", self.profile))
        self.check("diff", self.profile, self.other)
        self.check("diff", "--format=markdown", self.profile, self.other)
        page = self.folder / "page.html"
        self.text("report", "-q", "-o", page, self.profile)
        self.assertNotIn("__cxx11", page.read_text())

    def test_json_has_full_names(self):
        for words in (["annotate", "--json", self.profile], ["diff", "--json", self.profile, self.other]):
            names = {each["function"] for each in json.loads(self.text(*words))["functions"]}
            self.assertIn(self.full, names)

    def test_limits_take_both(self):
        for name in (self.full, "shop::add<std::string>", "shop::add*"):
            text = self.text("diff", f"--fail-on=Ir@{name}:+1", self.profile, self.other, status=1)
            self.assertIn("Ir of a.cc:shop::add<std::string>: 20 -> 50", text)


WITH_LIBRARIES = """desc: a
cmd: ./a
events: Ir
fl=#! version 1
fl=#! object 0 /home/me/a
fl=#! object 1 /usr/lib/libc.so.6
fl=#! site 1 /home/me/a.cc main 4
fl=/home/me/a.cc
fn=main
4 10
fl=#! binary 0
fl=/home/me/a.cc
fn=work
9 20
fl=#! binary 0
fl=/usr/include/c++/12/bits/stl_algobase.h
fn=std::max<int>
70 30
fl=#! sites 1
fl=#! binary 0
fl=???
fn=malloc
0 40
fl=#! binary 1
fl=???
fn=_dl_start
0 5
fl=#! binary 1
fl=#! stack 1 in=0 jumped=0 _dl_start 5
fl=#! stack 2 in=1 call=1:0x10 main 10
fl=#! stack 3 in=2 inlined=4 std::max<int> 30
fl=#! stack 4 in=2 call=0:0x20:6 work 20
fl=#! stack 5 in=4 call=0:0x30:9 malloc 25
fl=#! stack 6 in=2 call=0:0x40:7 malloc 10
summary: 105
"""


class OwnCode(unittest.TestCase):
    """Library code counts for the lines of own code that called it."""
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.profile = self.folder / "profile"
        self.profile.write_text(WITH_LIBRARIES)

    def lines(self, *options):
        """The counts by function and line."""
        out = self.folder / "own"
        made = run([ASSAY, "merge", "-o", out, *options, self.profile])
        self.assertEqual(made.returncode, 0, made.stderr)
        exported = json.loads(run([ASSAY, "export", "--format=json", out]).stdout)
        return {(function["name"], line["line"]): line["counts"][0]
                for function in exported["functions"] for line in function["lines"]}

    def test_with_contexts(self):
        self.assertEqual(self.lines("--only-own"), {
            ("main", 4): 40, ("main", 7): 10, ("work", 9): 45, ("[libc.so.6]", 0): 5,
            ("[outside of known calls]", 0): 5})
        tree = run([ASSAY, "annotate", "--only-own", "--tree", self.profile]).stdout
        self.assertRegex(tree, r"(?s)95 \(90.5%\)\s+50 \(47.6%\)  main\n *45 .* 45 .*   work\n")

    def test_without_contexts(self):
        self.profile.write_text(re.sub("fl=#! stack.*\n", "", WITH_LIBRARIES))
        self.assertEqual(self.lines("--only-own"), {
            ("main", 4): 40, ("work", 9): 20, ("[libc.so.6]", 0): 45})
        for words in (["annotate"], ["summary"]):
            shown = run([ASSAY, *words, "--only-own", self.profile])
            self.assertIn("profile has no calling contexts: only inlined library code", shown.stderr)

    def test_what_is_own(self):
        self.assertEqual(self.lines("--own=/usr/lib/libc.so.6"), {
            ("malloc", 0): 40, ("_dl_start", 0): 5 + 10 + 30 + 20})

    def test_views(self):
        for words in (["annotate"], ["summary"], ["annotate", "--calls"]):
            shown = run([ASSAY, *words, "--only-own", self.profile])
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertNotIn("malloc", shown.stdout)
        shown = run([ASSAY, "summary", "--only-own", self.profile]).stdout
        self.assertIn(f"  assay annotate --only-own {self.profile}    ", shown)
        # What the user calls own is shown even if it lies in the system's folders.
        shown = run([ASSAY, "annotate", "--only-own", "--own=/usr/include/c++", self.profile])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("/usr/include/c++/12/bits/stl_algobase.h", shown.stdout)
        for option in ("--by=object", "--asm"):
            refused = run([ASSAY, "annotate", "--only-own", option, self.profile])
            self.assertEqual(refused.returncode, 125)
            self.assertIn(option, refused.stderr)


@needs("valgrind", "cg_annotate", "cg_merge", "cg_diff")
class SameAsCachegrind(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.temporary_folder_of_class(cls)
        cls.files = [cls.folder / "liberties"]
        cls.files[0].write_text(LIBERTIES)
        for program, options in (("sort", ["--branch-sim=yes"]), ("work", []), ("matrix", [])):
            theirs, ours = cls.folder / f"{program}.cg", cls.folder / f"{program}.assay"
            peer = run(["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", *options,
                        f"--cachegrind-out-file={theirs}", PROGRAMS / program])
            mine = profile([PROGRAMS / program], "--quiet", "--dump-instr=yes", *GEOMETRY, out=ours)
            if peer.returncode != 0 or mine.returncode != 0:
                raise AssertionError(peer.stderr + mine.stderr)
            cls.files += [theirs, ours]

    def test_totals_and_every_function(self):
        for path in self.files:
            with self.subTest(path=path.name):
                totals, table = cg_annotate(path)
                self.assertGreater(len(table), 2)
                self.assertEqual(annotate(path), (totals, table))
                shown = re.search("^events: (.*)", path.read_text(), re.MULTILINE)[1]
                text = run([ASSAY, "annotate", "--full", "--auto=no", "--threshold=0", "--no-show-percs",
                            "--names=full", f"--show={','.join(shown.split())}", path])
                self.assertEqual(
                    nested_table(text.stdout, "Files and their functions", len(totals)), table)
                turned = nested_table(text.stdout, "Functions and their files", len(totals))
                self.assertEqual(sorted(turned.values()), sorted(table.values()))

    def test_added_up(self):
        one = self.files[1]
        totals, table = annotate(one, one, one)
        once_totals, once = cg_annotate(one)
        self.assertEqual(totals, [3 * count for count in once_totals])
        self.assertEqual(table, {name: [3 * n for n in counts] for name, counts in once.items()})

    def test_merge(self):
        for kind in ("cg", "assay"):
            sources = [self.folder / f"work.{kind}", self.folder / f"matrix.{kind}",
                       self.folder / f"work.{kind}"]
            ours, theirs = self.folder / "merged", self.folder / "merged.cg"
            mine = run([ASSAY, "merge", "-o", ours, *sources])
            self.assertEqual((mine.returncode, mine.stdout, mine.stderr), (0, "", ""))
            run(["cg_merge", "-o", theirs, *sources])
            self.assertEqual(cg_annotate(ours), cg_annotate(theirs))
            self.assertEqual(annotate(ours), cg_annotate(theirs))

    def test_diff(self):
        changes = ["--mod-filename=s/(work|matrix)/program/", "--mod-funcname=s/^_+//"]
        for kind in ("cg", "assay"):
            for options in ([], changes):
                pair = [self.folder / f"work.{kind}", self.folder / f"matrix.{kind}"]
                ours, theirs = self.folder / "difference", self.folder / "difference.cg"
                mine = run([ASSAY, "diff", "--match=exact", *options, "-o", ours, *pair])
                self.assertEqual((mine.returncode, mine.stdout, mine.stderr), (0, "", ""))
                theirs.write_text(run(["cg_diff", *options, *pair]).stdout)
                expected = cg_annotate(theirs)
                self.assertEqual(cg_annotate(ours), expected)
                self.assertEqual(annotate(ours), expected)
                self.assertEqual(annotate(theirs), expected)
                self.assertEqual(annotate("--diff", "--match=exact", *options, *pair), expected)

    def test_different_events_are_refused_with_both_lists(self):
        for command in ("annotate", "merge"):
            result = run([ASSAY, command, self.files[0], self.folder / "work.cg"])
            self.assertEqual(result.returncode, support.failure_status([command]))
            self.assertIn("(Ir Dr Dw)", result.stderr)
            self.assertIn("(Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw)", result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_merging_many_takes_no_more_memory(self):
        one = self.folder / "matrix.assay"  # with counts by instruction
        few, _ = peak_memory([ASSAY, "merge", "-o", self.folder / "few", *[one] * 10])
        many, _ = peak_memory([ASSAY, "merge", "-o", self.folder / "many", *[one] * 1000])
        self.assertLess(many, few + 20_000_000)
        totals, _ = annotate(one)
        self.assertEqual(annotate(self.folder / "many")[0], [1000 * count for count in totals])

    def test_merging_keeps_instructions(self):
        path, twice = self.folder / "matrix.assay", self.folder / "twice"
        run([ASSAY, "merge", "-o", twice, path, path])

        def instructions(name):
            return {line.split()[2]: [int(word) for word in line.split()[4:]]
                    for line in Path(name).read_text().splitlines() if line.startswith("fl=#! at")}

        once = instructions(path)
        self.assertGreater(len(once), 20)
        self.assertEqual(instructions(twice),
                         {place: [2 * n for n in counts] for place, counts in once.items()})

    def test_instructions_below_their_lines(self):
        path = self.folder / "matrix.assay"
        text = run([ASSAY, "annotate", "--full", "--asm", "--show=Ir", path]).stdout
        self.assertRegex(text, r"\n *[\d,]+ +\([\d.]+%\)      +[0-9a-f]+:  [a-z]+ +.*%")
        shown = run([ASSAY, "annotate", "--asm", "--json", "--threshold=0", path])
        checked = 0
        for source in json.loads(shown.stdout)["sources"]:
            for line in source["lines"]:
                columns = zip(*(each["counts"] for each in line["instructions"]))
                self.assertEqual([sum(column) for column in columns], line["counts"])
                self.assertTrue(all(each["text"] for each in line["instructions"]))
                checked += len(line["instructions"])
        self.assertGreater(checked, 20)

    @needs("callgrind_annotate")
    def test_callgrind(self):
        path = self.folder / "callgrind.out"
        run(["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes",
             f"--callgrind-out-file={path}", PROGRAMS / "work"])
        shown = run(["callgrind_annotate", "--auto=no", "--threshold=100", "--show-percs=no", path])
        theirs = {}
        for line in shown.stdout.splitlines():
            found = re.match(r" *([\d,]+)  (.*?):([^/]*?)( \[.*\])?$", line)
            if found:
                is_known = found[2] != "???" or found[4] in (None, " [???]")
                file = found[2] if is_known else found[4].strip()
                theirs[f"{file}:{found[3]}"] = [int(found[1].replace(",", ""))]
        totals, table = annotate(path)
        self.assertIn(f"{totals[0]:,}", shown.stdout)

        def by_name(table):  # they leave out the folder where they run
            return sorted((name.removeprefix(f"{Path.cwd()}/"), counts)
                          for name, counts in table.items())

        self.assertEqual(by_name(table), by_name(theirs))
        merged = self.folder / "callgrind.merged"
        self.assertEqual(run([ASSAY, "merge", "-o", merged, path]).returncode, 0)
        self.assertEqual(cg_annotate(merged), (totals, table))


class Shown(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.source = self.folder / "a.c"
        self.out = self.folder / "out"
        self.write_profile(199)

    def write_profile(self, lines):
        numbers = range(1, lines + 1)
        self.source.write_text("".join(f"line {i};\n" for i in numbers))
        counts = "".join(f"{i} {i} 0\n" for i in numbers)
        self.out.write_text(f"desc: a\ncmd: ./a\nevents: Ir Dr\nfl={self.source}\nfn=f\n{counts}"
                            f"summary: {sum(numbers)} 0\n")

    def on_terminal(self, *words, error=r"\A\Z", **environment) -> str:
        """What assay writes to a terminal of 24 lines."""
        leader, follower = pty.openpty()
        env = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment}
        with subprocess.Popen([ASSAY, *words], stdout=follower, stderr=subprocess.PIPE, env=env,
                              stdin=subprocess.DEVNULL) as process:
            os.close(follower)
            text = terminal_text(leader)
            self.assertRegex(process.stderr.read().decode(), error)
        self.assertEqual(process.returncode, 0)
        return text

    def test_pager_and_colour(self):
        paged = self.folder / "paged"
        long = self.on_terminal("annotate", "--full", self.out, PAGER=f"cat > {paged}; echo through the pager")
        self.assertEqual(long.strip(), "through the pager")
        self.assertIn("line 199;", paged.read_text())
        self.assertIn("\033[", paged.read_text())
        plain = self.on_terminal("annotate", "--full", "--pager=no", self.out, NO_COLOR="1", PAGER="false")
        self.assertIn("line 199;", plain)
        self.assertNotIn("\033", plain)
        short = self.on_terminal("diff", self.out, self.out, PAGER="false")
        self.assertIn("no change reaches the threshold", short)
        # Who leaves the pager has seen enough: no error.
        left = self.on_terminal("annotate", "--full", self.out, PAGER="head -n 2")
        self.assertEqual(left.split(), ["-" * 80, "--", "Profile"])

    @needs("less")
    def test_less_shows_colours_whatever_its_options(self):
        for options in ("-j10 -F -X -E", "EX", ""):
            text = self.on_terminal("annotate", "--full", self.out, LESS=options, PAGER="less -E")
            self.assertNotIn("ESC", text, options)

    def test_pager_that_cannot_run(self):
        for lines in (199, 50_000):  # the latter are more than a pipe holds
            self.write_profile(lines)
            plain = self.on_terminal("annotate", "--full", "--pager=no", self.out)
            for pager in ("/none/less", "none --some", str(self.out)):
                shown = self.on_terminal("annotate", "--full", self.out, PAGER=pager, error="not found|denied")
                self.assertTrue(shown == plain, pager)

    def test_list_goes_through_the_pager_too(self):
        path, paged = self.folder / "instructions", self.folder / "paged"
        instructions = "".join(f"fl=#! at 0:{i:#x} 1 3\n" for i in range(100))
        path.write_text("desc: a: b\ncmd: a\nevents: Ir\nfl=#! version 1\nfl=#! object 0 /none\n"
                        f"fl=a.c\nfn=f\n1 300\n{instructions}summary: 300\n")
        words = self.on_terminal("list", path, PAGER=f"cat > {paged}; echo through the pager")
        self.assertEqual(words.strip(), "through the pager")
        self.assertIn("/none", paged.read_text())
        self.assertIn("/none", self.on_terminal("list", "--pager=no", path, PAGER="false"))

    def test_code_inlined_deeper_than_compilers_make_it(self):
        for depth, status in ((256, 0), (257, 125)):
            path = self.folder / "deep"
            sites = "".join(f"fl=#! site {i} a.c f{i} {i}{f'@{i - 1}' if i > 1 else ''}\n"
                            for i in range(1, depth + 1))
            path.write_text(f"desc: a\ncmd: a\nevents: Ir\nfl=#! version 1\n{sites}fl=a.c\nfn=f\n1 5\n"
                            f"fl=#! sites {depth}\nsummary: 5\n")
            result = run([ASSAY, "merge", "-o", self.folder / "merged", path])
            self.assertEqual(result.returncode, status, result.stderr)
            if status:
                self.assertIn("inlined through more than 256 calls", result.stderr)

    def test_sums_keep_what_all_files_say(self):
        """And the names of block vectors of each, and which commands they were."""
        texts = (("I1 cache: small\ndesc: D1 cache: small\ndesc: block vectors: a.bb", "./a"),
                 ("I1 cache: small\ndesc: D1 cache: large\ndesc: block vectors: b.bb", "./b"))
        pair = []
        for descriptions, command in texts:
            pair.append(self.folder / f"{len(pair)}.events")
            pair[-1].write_text(f"desc: {descriptions}\ncmd: {command}\nevents: Ir\nfl=a.c\nfn=f\n1 5\n"
                                "summary: 5\n")
        merged = self.folder / "merged"
        self.assertEqual(run([ASSAY, "merge", "-o", merged, *pair, pair[0]]).returncode, 0)
        events = read_events(merged)
        self.assertEqual((events.descriptions, events.command, events.summary),
                         (["I1 cache: small", "block vectors: a.bb", "block vectors: b.bb"],
                          "./a; ./b", [15]))

    def test_sums_of_incomplete_profiles_are_incomplete(self):
        kinds = ROOT / "tests" / "unit" / "data" / "version-1.events"
        merged, again = self.folder / "merged", self.folder / "again"
        for out, sources in ((merged, [kinds, kinds]), (again, [merged])):
            result = run([ASSAY, "merge", "-o", out, *sources])
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(f"incomplete {'' if out == merged else f'{merged}: '}{kinds}: ended by SIGKILL",
                          out.read_text())
        self.assertIn("INCOMPLETE, not the counts of a whole run", run([ASSAY, "annotate", merged]).stdout)

    def test_difference_of_functions(self):
        """By the sizes of the changes, those of at least so many percent of the old total."""
        pair = []
        for counts in ({"many": 900, "some": 90, "left": 9, "same": 1},
                       {"many": 880, "some": 91, "made": 30, "same": 1}):
            pair.append(self.folder / f"{len(pair)}.events")
            pair[-1].write_text("desc: a\ncmd: ./a\nevents: Ir\nfl=a.c\n" + "".join(
                f"fn={name}\n1 {count}\n" for name, count in counts.items())
                + f"summary: {sum(counts.values())}\n")
        rows = [["+30", "new", "a.c:made"], ["-20", "-2.2%", "a.c:many"], ["-9", "gone", "a.c:left"],
                ["+1", "+1.1%", "a.c:some"]]
        for threshold, shown in (("0.1", 4), ("0.11", 3), ("2", 2), ("2.01", 1), ("3.01", 0), ("0", 4)):
            with self.subTest(threshold):
                result = run([ASSAY, "diff", f"--threshold={threshold}", *pair])
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                found = [line.split() for line in result.stdout.splitlines() if " a.c:" in line]
                self.assertEqual(found, rows[:shown])
        self.assertIn(rows[3], [line.split() for line in
                                run([ASSAY, "diff", *pair]).stdout.splitlines()])

    def test_clones_are_compared_as_their_function(self):
        pair = []
        for names in (["f(int) [clone .constprop.0]", "g.isra.0", "g.part.0.cold", "h", "h.part.0",
                       "(anonymous namespace)::hot(int) [clone .constprop.0]", "left.cold"],
                      ["f(int)", "g", "g.constprop.1", "h", "h.part.0",
                       "(anonymous namespace)::hot", "made.llvm.123"]):
            pair.append(self.folder / f"{len(pair)}.events")
            pair[-1].write_text(
                "desc: a\ncmd: ./a\nevents: Ir\n#! version 1\n".replace("#!", "fl=#!")
                + "fl=#! object 0 /a\nfl=a.c\n"
                + "".join(f"fn={name}\n1 {10 ** i * (len(pair) + 1)}\n"
                          for i, name in enumerate(names))
                + "".join(f'fl=#! stack {i} in={i - 1} call=0:0x{i} "{name}" {i}\n'
                          for i, name in enumerate(names, 1))
                + f"summary: {sum(10 ** i for i in range(len(names))) * (len(pair) + 1)}\n")
        found = json.loads(run([ASSAY, "diff", "--threshold=0", "--json", *pair]).stdout)
        self.assertEqual({row["function"]: (row["old"][0], row["new"][0])
                          for row in found["functions"]},
                         {"f(int)": (2, 3), "g": (220, 330), "h": (2000, 3000),
                          "h.part.0": (20000, 30000),
                          "(anonymous namespace)::hot": (200000, 300000),
                          "left.cold": (2000000, 0), "made.llvm.123": (0, 3000000)})
        self.assertEqual([row["functions"][-1] for row in found["stacks"]],
                         ["left.cold", "made.llvm.123"])

    def test_difference_of_values_that_may_be_an_error(self):
        """Both lists can be wrong, each by as much as it says."""
        for error, shown in ((0, 2), (4, 2), (5, 1), (10, 0)):
            with self.subTest(error=error):
                pair = []
                for name, counts in (("old", (80, 10)), ("new", (60, 20))):
                    pair.append(self.folder / f"{name}.events")
                    pair[-1].write_text(
                        "desc: a\ncmd: ./a\nevents: Ir\nfl=#! version 1\nfl=#! object 0 /a\n"
                        f"fl=a.c\nfn=f\n1 100\nfl=#! at 0:0x1 1 100\nfl=#! value 0:0x1 1 "
                        f"classic.loaded 100 error={error} 0x5:{counts[0]} 0x6:{counts[1]}\n"
                        "summary: 100\n")
                found = json.loads(run([ASSAY, "diff", "--json", *pair]).stdout)["values"]
                self.assertEqual([(each["value"], each["old"], each["new"]) for each in found],
                                 [("0x5", 80, 60), ("0x6", 10, 20)][:shown])

    def test_difference_of_stacks_and_values(self):
        pair = [DATA / "stacks-old.events", DATA / "stacks-new.events"]
        text = run([ASSAY, "diff", "--full", "--mod-funcname=s/one/two/", *pair]).stdout
        stacks, values = text.split("-- Call stacks that changed")[1].split("-- Values that changed")
        self.assertEqual(stacks.split("\n")[3:5],
                         ["+40  +200.0%    0     main > two > leaf", ""])
        self.assertEqual([line.split() for line in values.splitlines()[3:]],
                         [["8", "18", "0x2", "classic.loaded", "a.c:leaf"],
                          ["12", "20", "0x1", "classic.loaded", "a.c:leaf"]])
        document = json.loads(run([ASSAY, "diff", "--json", *pair]).stdout)
        self.assertEqual(document["stacks"], [
            {"functions": ["main", "one", "leaf"], "oldCalls": 0, "newCalls": 0, "old": [20, 4],
             "new": [60, 4]}])
        self.assertEqual([(each["value"], each["old"], each["new"]) for each in document["values"]],
                         [("0x2", 8, 18), ("0x1", 12, 20)])
        out = self.folder / "stacks.diff"
        run([ASSAY, "diff", "-o", out, *reversed(pair)])
        self.assertEqual([remark for remark in read_events(out).remarks if " stack " in remark],
                         ["#! stack 1 in=0 call=0:0x0 main", "#! stack 2 in=1 call=0:0x0 one",
                          "#! stack 3 in=2 call=0:0x0 leaf -40"])
        self.assertEqual(run([ASSAY, "annotate", out]).returncode, 0)
        same = run([ASSAY, "diff", "--full", pair[0], pair[0]]).stdout
        self.assertEqual(same.count("no change reaches the threshold"), 2)
        self.assertNotIn("Values", same)

    def test_json_keeps_its_schema(self):
        annotated = run([ASSAY, "annotate", "--json", self.out])
        changed = run([ASSAY, "diff", "--json", self.out, self.out])
        stacks = run([ASSAY, "diff", "--json", DATA / "stacks-old.events",
                      DATA / "stacks-new.events"])
        for name, shown in (("annotate", annotated), ("diff", changed), ("diff", stacks)):
            document = json.loads(shown.stdout)
            if jsonschema:
                schema = json.loads((ROOT / "docs/reference" / f"{name}-schema.json").read_text())
                jsonschema.validate(document, schema)
        kinds = run([ASSAY, "annotate", "--json", ROOT / "tests/unit/data/version-1.events"])
        self.assertEqual(json.loads(kinds.stdout)["inlined"], [
            {"file": "prog.h", "function": "helper", "callerFile": "a folder/prog.h",
             "caller": "f(int, char)", "callLine": 8, "counts": [2, 0, 0]}])
        self.assertEqual(json.loads(kinds.stdout)["withInlined"], [
            {"file": "prog.c", "function": "main", "counts": [21, 4, 1]}])
        document = json.loads(annotated.stdout)
        self.assertEqual(document["sources"][0]["lines"][4],
                         {"line": 5, "text": "line 5;", "counts": [5, 0]})

    def test_many_objects_and_descriptions(self):
        """A file made to take long does not."""
        def write(name, descriptions, objects):
            path = self.folder / name
            path.write_text("".join(f"desc: {i}: {name}\n" for i in range(descriptions))
                            + "cmd: x\nevents: Ir\nfl=#! version 1\n"
                            + "".join(f"fl=#! object {i} /lib/{i:07}.so\n" for i in range(objects))
                            + "fl=a.c\nfn=f\n1 5\nsummary: 5\n")
            return path
        files = [write("objects", 1, 200_000), write("texts", 60_000, 0)]
        for command in (["annotate", "--json"], ["merge", "-o", self.folder / "merged"]):
            result = run([ASSAY, *command, *files, files[1]], timeout=120)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_sums_of_two_builds_say_so(self):
        paths = []
        for build in ("00aa", "00bb", "00bb"):
            paths.append(self.folder / f"build{len(paths)}")
            paths[-1].write_text("cmd: a\nevents: Ir\nfl=#! version 1\n"
                                 f"fl=#! object 0 /a build-id={build}\nfl=a.c\nfn=f\n1 5\nsummary: 5\n")
        said = "/a has 2 builds (00aa and 00bb); their counts are added up by line"
        for words in (["merge"], ["export", "--format=csv"], ["report", "-o", self.folder / "page"]):
            result = run([ASSAY, *words, *paths])
            self.assertEqual((result.returncode, result.stderr.count("\n")), (0, 1), result.stderr)
            self.assertIn(said, result.stderr)
            self.assertEqual(run([ASSAY, *words, *paths[1:]]).stderr, "")
        self.assertIn(said, run([ASSAY, "annotate", *paths]).stdout)
        self.assertNotIn("builds", run([ASSAY, "annotate", "--diff", *paths[:2]]).stdout)

    def test_missing_files_are_called_missing(self):
        none = self.folder / "none"
        for words in (["annotate"], ["annotate", "--calls"], ["annotate", "--tree"], ["annotate", "--by=rank"],
                      ["diff", "--by=thread", self.out], ["merge"], ["merge", "--by=rank"]):
            result = run([ASSAY, *words, none])
            self.assertEqual(result.returncode, support.failure_status(words))
            self.assertEqual(result.stderr, f"assay: cannot open '{none}': No such file or directory\n")

    def test_pipe(self):
        """A profile that can be read only once."""
        content = self.out.read_text()
        piped = run([ASSAY, "annotate", "/dev/stdin"], stdin=None, input=content)
        self.assertEqual((piped.returncode, piped.stderr), (0, ""))
        plain = run([ASSAY, "annotate", self.out])
        self.assertEqual(piped.stdout.replace("/dev/stdin", str(self.out)), plain.stdout)

    def test_help_names_every_command(self):
        text = run([ASSAY, "--help"]).stdout
        self.assertEqual(run([ASSAY, "-h"]).stdout, text)
        self.assertIn("  assay run --help ", text)
        for name in ("annotate", "merge", "diff", "list", "export", "simpoint", "report", "plugins",
                     "check-plugin", "completion", "trace"):
            self.assertIn(f"  assay {name} ", text)
            shown = run([ASSAY, name, "--help"])
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), name)
            self.assertEqual(run([ASSAY, "help", name]).stdout, shown.stdout)
            self.assertLessEqual(max(map(len, (text + shown.stdout).splitlines())), 80, name)

    def complete(self, line: str) -> list[str]:
        script = self.folder / "completion.bash"
        script.write_text(run([ASSAY, "completion", "bash"]).stdout)
        words = line.split(" ")
        result = run(["bash", "--norc", "-c",
                      f"compopt() {{ :; }}; source {script}; COMP_LINE={line!r}; "
                      f"COMP_POINT={len(line)}; COMP_WORDS=({' '.join(words)}); "
                      f"COMP_CWORD={len(words) - 1}; _assay {str(ASSAY)!r}; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
                     cwd=self.folder)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("assay ann"), ["annotate"])
        self.assertEqual(self.complete("assay annotate --thr"), ["--threshold="])
        self.assertEqual(self.complete("assay --cpu"), ["--cpu="])
        self.assertEqual(self.complete("assay annotate ou"), ["out"])
        self.assertEqual(self.complete("assay completion f"), ["fish"])
        self.assertEqual(set(self.complete("assay annotate --color=a")), {"auto", "always"})
        for line in ("assay --plugin=cac", "assay --plugin cac", "assay run --plugin=cac"):
            self.assertIn(self.complete(line), (["cache"], ["--plugin=cache"]), line)
        self.assertEqual(self.complete("assay --plugin=branch,cac"), ["branch,cache"])
        self.assertEqual(self.complete("assay --plugin=cache --D"), ["--D1="])
        self.assertEqual(self.complete("assay --plugin=cache --cache-sim=y"), ["yes"])

    def test_bash_types_no_backslashes(self):
        """As on a terminal: readline puts what the functions have found into the line."""
        start, out = self.folder / "start.bash", self.folder / "typed.words"
        start.write_text(run([ASSAY, "completion", "bash"]).stdout +
                         f"assay() {{ echo \"$*\" > new; mv new {out}; }}\n")
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe("bash", ["bash", "--noprofile", "--rcfile", str(start), "-i"],
                       {**os.environ, "TERM": "dumb", "PATH": f"{ASSAY.parent}:{os.environ['PATH']}"})
        self.addCleanup(lambda: (os.kill(child, signal.SIGKILL), os.waitpid(child, 0),
                                 os.close(terminal)))
        os.write(terminal, b"assay --plu\tcac\t --D\t32K\n")
        for _ in range(600):
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 65536)
            if out.exists():
                break
        self.assertEqual(out.read_text(), "--plugin=cache --D1=32K\n")

    def test_bash_leaves_the_words_of_the_program_to_it(self):
        for line in ("assay --plugin cache -- ls --o", "assay run --plugin = cache ls --o",
                     "assay --plugin=cache ls --o", "assay annotate -- --o"):
            self.assertEqual(self.complete(line), [], line)
            self.assertEqual(self.complete(line[:-3] + "ou"), ["out"], line)
        self.assertIn("env", self.complete("assay --plugin = cache en"))
        self.assertIn("env", self.complete("assay -q -- en"))
        self.assertEqual(self.complete("assay --plugin = cache --toggle = a : b --cpu"), ["--cpu="])
        self.assertEqual(self.complete("assay run --cpu"), ["--cpu="])

    @needs("fish")
    def test_fish_completes(self):
        script = self.folder / "assay.fish"
        script.write_text(run([ASSAY, "completion", "fish"]).stdout)

        def complete(line):
            shown = run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                        cwd=self.folder,
                        env={**os.environ, "HOME": str(self.folder),
                             "PATH": f"{ASSAY.parent}:{os.environ['PATH']}"})
            self.assertEqual(shown.stderr, "")
            return [row.split("\t")[0] for row in shown.stdout.splitlines()]

        self.assertEqual(complete("assay ann"), ["annotate"])
        self.assertEqual(complete("assay annotate --thr"), ["--threshold"])
        self.assertEqual(complete("assay --cp"), ["--cpu"])
        self.assertIn("out", complete("assay annotate ou"))
        self.assertEqual(complete("assay completion f"), ["fish"])
        self.assertEqual(set(complete("assay annotate --color=a")),
                         {"--color=auto", "--color=always"})
        self.assertEqual(complete("assay --plugin=cac"), ["--plugin=cache"])
        self.assertEqual(complete("assay --plugin=branch,cac"), ["--plugin=branch,cache"])
        self.assertEqual(complete("assay --plugin=cache --D1"), ["--D1="])

    @needs("zsh")
    def test_zsh_completes(self):
        """Lines are typed on a terminal, tabs and all; a function tells what words they became."""
        (self.folder / ".zshrc").write_text(
            "autoload -U compinit; compinit -D -u; unsetopt list_beep; PROMPT='> '\n"
            f"eval \"$({ASSAY} completion zsh)\"\n"
            "assay() { print -rl -- \"$@\" > words.new; mv words.new words }\n")
        words, typed = self.folder / "words", self.folder / "typed"
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-i"], {**os.environ, "ZDOTDIR": str(self.folder),
                                              "PATH": f"{ASSAY.parent}:{os.environ['PATH']}",
                                              "TERM": "dumb", "HOME": str(self.folder)})
        self.addCleanup(lambda: (os.kill(child, signal.SIGKILL), os.waitpid(child, 0),
                                 os.close(terminal)))

        def complete(line):
            words.unlink(missing_ok=True)
            os.write(terminal, line.encode() + b"\n")
            for _ in range(600):
                # What zsh prints must be read, or it waits.
                if select.select([terminal], [], [], 0.05)[0]:
                    typed.write_bytes(os.read(terminal, 65536))
                if words.exists():
                    return words.read_text().splitlines()
            self.fail(f"zsh does nothing, after: {typed.read_text()}")

        self.assertEqual(complete("assay anno\t"), ["annotate"])
        self.assertEqual(complete("assay annotate --thr\t5 ou\t"),
                         ["annotate", "--threshold=5", "out"])
        self.assertEqual(complete("assay export --form\tspee\t ou\t"),
                         ["export", "--format=speedscope", "out"])
        self.assertEqual(complete("assay --asl\tye\t"), ["--aslr=yes"])
        self.assertEqual(complete("assay completion fi\t"), ["completion", "fish"])
        self.assertEqual(complete("assay --plu\tcac\t --D\t32K"), ["--plugin=cache", "--D1=32K"])

    def test_scripts_are_well_formed(self):
        for shell in ("bash", "zsh", "fish"):
            script = run([ASSAY, "completion", shell])
            self.assertEqual((script.returncode, script.stderr), (0, ""))
            self.assertIn("threshold", script.stdout)
            if shutil.which(shell):
                checked = run([shell, "-n"], stdin=None, input=script.stdout)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        self.assertEqual(run([ASSAY, "completion", "tcsh"]).returncode, 125)


if __name__ == "__main__":
    unittest.main()
