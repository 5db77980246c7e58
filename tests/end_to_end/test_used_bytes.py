"""The used-bytes profiler on a program whose numbers are known on paper (hosted/footprints.c), and
with code against a model of the cache that gets Valgrind's trace."""

import os
from collections import OrderedDict
import unittest

import support
from support import PROGRAMS, profile, read_events

FOOTPRINTS = PROGRAMS / "footprints"
LINE = 64


def usage(lines, used, again=0):
    """As the columns of an events file: read, used, wasted, read again."""
    return [lines * LINE, used, lines * LINE - used, again * LINE]


class UsedBytes(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.out = self.folder / "events"
        self.report = self.folder / "report"

    def run_case(self, case, *options):
        result = profile([FOOTPRINTS, case], *options, f"--usage-report={self.report}",
                         plugin="used_bytes", out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def function(self, name):
        return read_events(self.out).functions.get(name)

    def rows(self, title):
        """The rows of a table of the report: name, read, unique, used, wasted."""
        rows = {}
        lines = iter(self.report.read_text().splitlines())
        for line in lines:
            if line.split()[:2] == [title, "read"]:
                break
        for line in lines:
            if not line:
                break
            name, *numbers = line.strip().rsplit(maxsplit=6)
            values = [int(n.replace(",", "")) for n in numbers if not n.endswith("%")]
            rows[name] = dict(zip(("read", "unique", "used", "wasted"), values))
        return rows

    def lists(self, name):
        """Of the instructions of a function in one file: pairs of the list's name and its values."""
        found, function = [], None
        for line in self.out.read_text().splitlines():
            if line.startswith("fn="):
                function = line[3:]
            if line.startswith("fl=#! value ") and function == name:
                words = line.split()
                found.append((words[4], {int(value, 16): int(count) for value, count in
                                         (word.split(":") for word in words[6:])}))
        return found

    def test_which_bytes_are_used(self):
        for line in (32, 64, 128, 4096):
            self.run_case("structures", f"--cache=1048576,8,{line}")
            fetched, used = self.function("touch")[:2]
            part = max(line // 64, 1)
            offsets = sum(sum(values.values()) for name, values in self.lists("touch")
                          if name == "used_bytes.offsets")
            lines = sum(sum(values.values()) for name, values in self.lists("touch")
                        if name == "used_bytes.bytes")
            bytes_used = sum(value * count for name, values in self.lists("touch")
                             if name == "used_bytes.bytes" for value, count in values.items())
            self.assertEqual(lines, fetched // line)
            self.assertEqual(offsets * part, bytes_used)
            if line <= 64:
                self.assertEqual(bytes_used, used)
            else:  # parts are counted that were used in part
                self.assertGreaterEqual(bytes_used, used)
        self.run_case("structures", "--cache=1048576,8,64")
        counts = {}
        for name, values in self.lists("touch"):
            if name == "used_bytes.bytes":
                for value, count in values.items():
                    counts[value] = counts.get(value, 0) + count
        self.assertEqual(counts, {4: 1000, 8: 1000, 16: 1000, 64: 1000})

    def test_parts_of_structures(self):
        result = self.run_case("structures")
        self.assertEqual(self.function("touch"), usage(4000, 1000 * (4 + 8 + 16 + 64)))
        rows = self.rows("section")
        for used in (4, 8, 16, 64):
            self.assertEqual(rows[f"walk {used}"],
                             {"read": 64000, "unique": 64000, "used": 1000 * used,
                              "wasted": 64000 - 1000 * used})
            self.run_case("structures", f"--section=walk {used}")
            self.assertEqual(self.function("touch"), usage(1000, 1000 * used))
        self.assertIn("walk 64", result.stderr)

    def test_lines_of_another_size(self):
        """A structure of 64 bytes lies in two lines of 32, or half a line of 128."""
        self.run_case("structures", "--cache=1048576,8,32")
        self.assertEqual(self.function("touch")[:2], [32 * (3000 + 2000), 1000 * (4 + 8 + 16 + 64)])
        self.run_case("structures", "--cache=2097152,8,128")
        self.assertEqual(self.function("touch")[:2], [128 * 4 * 500, 1000 * (4 + 8 + 16 + 64)])

    def test_double_reads(self):
        self.run_case("double_reads", "--LL=4096,1,64", "--section=double#1")
        self.assertEqual(self.function("alternate"), usage(200, 100 * (4 + 8), again=198))
        report = self.report.read_text()
        self.assertIn("  2 lines read 100 to 999 times (100%)\n", report)
        self.assertIn(", read 100 times; the last 4:\n    97. read at\n         alternate (", report)
        # Each fetch and eviction with its stack, but the last of all.
        self.assertEqual(report.count(" double_reads ("), 2 * 4 * 2 - 1, report)
        self.assertEqual(report.count(" main ("), 2 * 4 * 2 - 1)

    def test_what_evicts_nothing_of_the_section(self):
        self.run_case("double_reads", "--section=double")
        self.assertEqual(self.function("alternate"), usage(2, 12))
        self.assertEqual(read_events(self.out).summary, usage(2, 12))

    def test_arenas(self):
        self.run_case("arenas")
        rows = self.rows("arena")
        for arena, (read, used, wasted, _) in (("shop: orders", usage(200, 100 * (8 + 16))),
                                               ("stock: items", usage(110, 100 * 64 + 10 * 4))):
            self.assertEqual(rows[arena],
                             {"read": read, "unique": read, "used": used, "wasted": wasted})
        self.assertIn("in stock: items\n  110 lines read 1 time (100%)\n", self.report.read_text())

    def test_sections(self):
        result = self.run_case("sections")
        self.assertEqual(self.function("touch"), usage(632, 602 * 4 + 30 * 8))
        rows = self.rows("step")
        self.assertEqual({name: row["read"] // LINE for name, row in rows.items()},
                         {"step#1": 110, "step#2": 210, "step#3": 310})
        self.assertIn("1 phases ended that had not begun", result.stderr)
        for section, expected in (("step", usage(630, 600 * 4 + 30 * 8)),
                                  ("inner", usage(30, 30 * 8)), ("open", usage(1, 4))):
            self.run_case("sections", f"--section={section}")
            self.assertEqual(self.function("touch"), expected)

    def test_a_section_in_itself(self):
        """The name's row has what its profile has: each line once, at whatever depth."""
        self.run_case("recursion", "--section=level")
        self.assertEqual(self.function("touch"), usage(400, 400 * 8))
        row = self.rows("section")["level (4 times)"]
        self.assertEqual([row["read"], row["used"]], read_events(self.out).summary[:2])
        self.assertLess(row["read"], 410 * LINE)

    def test_one_of_several_sections(self):
        self.run_case("sections", "--section=step#2")
        self.assertEqual(self.function("touch"), usage(210, 200 * 4 + 10 * 8))
        self.run_case("sections", "--section=inner")
        self.assertEqual(self.function("touch"), usage(30, 30 * 8))

    def test_threads(self):
        self.run_case("threads")
        self.assertEqual(self.function("touch"), usage(300, 100 * 16 + 200 * 32))
        self.assertEqual(self.rows("section")["two"]["used"], 200 * 32)

    def test_arenas_and_threads_add_up(self):
        for case, table in (("arenas", "arena"), ("threads", "thread")):
            self.run_case(case)
            rows = self.rows(table).values()
            sums = [sum(row[name] for row in rows) for name in ("read", "used", "wasted")]
            self.assertEqual(sums, read_events(self.out).summary[:3], case)

    def test_stacks(self):
        """What is fetched by touch() belongs to its context, also in a profile of a section."""
        for options, lines in ([], 4000), (["--section=walk 8"], 1000):
            self.run_case("structures", *options)
            stacks = [remark.split() for remark in read_events(self.out).remarks
                      if remark.startswith("#! stack")]
            touched = [words for words in stacks if words[5] == "touch"]
            self.assertEqual([int(words[6]) for words in touched], [lines * LINE])

    def test_nothing_is_lost_by_the_filter(self):
        """Beside a profiler that wants every reference, the numbers are the same."""
        for program in ("straddle", "repeat", "avx", "unusual", "scattered", "work"):
            for options in (["--cache=4096,1,64"], ["--cache=1024,16,64", "--stress=yes"],
                            ["--cache=64,1,64", "--instructions=yes"],
                            ["--cache=8192,2,64", "--instructions=yes", "--stress=yes"]):
                with self.subTest(program, options=options):
                    counts = []
                    for plugins in ("used_bytes", f"used_bytes,{support.PLUGINS / 'contexts.so'}"):
                        all_references = ["--references=yes"] if "," in plugins else []
                        result = profile([PROGRAMS / program], *options, *all_references, "-q",
                                         plugin=plugins, out=self.out)
                        self.assertEqual(result.stderr, "")
                        columns = 8 if "--instructions=yes" in options else 4
                        counts.append({name: row[:columns] for name, row in
                                       read_events(self.out).functions.items()
                                       if any(row[:columns])})
                    self.assertEqual(counts[0], counts[1])

    def test_the_example(self):
        """That of docs/reference/profilers/used_bytes.md: positions apart from styles are read faster."""
        building = {}
        for split in ([], ["--split"]):
            result = profile([support.BUILD / "examples" / "display_list", *split],
                             "--cache=1048576,8,64", f"--usage-report={self.report}",
                             plugin="used_bytes", out=self.out, env=self.quiet_malloc())
            self.assertEqual(len(set(result.stdout.split())), 1)
            building[bool(split)] = self.rows("section")["build (3 times)"]
            # All shapes are read, and fit into their lines.
            self.assertEqual(self.rows("arena")["document: shapes"]["unique"], 20000 * LINE)
            self.assertEqual(set(self.rows("build")), {"build#1", "build#2", "build#3"})
        self.assertLess(2 * building[True]["read"], building[False]["read"])
        self.assertGreater(building[False]["wasted"], 2 * building[False]["used"])

    @staticmethod
    def quiet_malloc():
        """Meson lets malloc fill memory (MALLOC_PERTURB_), which brings it into the cache."""
        return {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}

    def test_a_section_that_has_not_begun(self):
        for section, why in (("nope", "no such phase has begun, so nothing is counted; there were: "
                                      "step, inner, open"),
                             ("step#4", "it began only 3 times, so nothing is counted"),
                             ("open#2", "it began only 1 time, so nothing is counted")):
            with self.subTest(section):
                result = self.run_case("sections", f"--section={section}")
                self.assertIn(f"assay: used_bytes: --section={section}: {why}\n", result.stderr)
        result = self.run_case("sections", "--section=step#3")
        self.assertNotIn("--section", result.stderr)
        result = profile(["true"], "--section=nope", plugin="used_bytes")
        self.assertIn("--section=nope: no phase has begun, so nothing is counted\n", result.stderr)

    def test_unusable_options(self):
        for option in ("--cache=1,2", "--cache=4096,1,8", "--section=",
                       "--LL=5000,1,64"):
            with self.subTest(option):
                result = profile(["true"], option, plugin="used_bytes", out=self.out)
                self.assertEqual(result.returncode, 125)
                self.assertIn(option.partition("=")[0], result.stderr)

    def test_a_report_that_cannot_be_written(self):
        result = profile(["true"], "--usage-report=/dev/full", plugin="used_bytes",
                         out=self.out)
        self.assertEqual(result.returncode, 0)
        self.assertIn("cannot write /dev/full: No space", result.stderr)
        self.assertTrue(read_events(self.out).summary)


def lackeys_references(program, log):
    """Whether it is a fetch, the address and the size of each reference of the program."""
    support.run(["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log}", program])
    for line in log.read_text().splitlines():
        if line[:3] in ("I  ", " L ", " S ", " M "):
            address, size = line[3:].split(",")
            yield line[0] == "I", int(address, 16), int(size)


def modelled(references, size, ways, line):
    """A row of all eight columns, of a cache that is written for plainness."""
    sets = [OrderedDict() for _ in range(size // ways // line)]
    seen, rows = set(), {False: [0] * 4, True: [0] * 4}

    def leaves(code, touched):
        rows[code][1] += touched.bit_count()
        rows[code][2] += line - touched.bit_count()

    for code, address, left in references:
        while left:
            number, offset = divmod(address, line)
            part, present = min(left, line - offset), sets[number % len(sets)]
            if number not in present:
                if len(present) == ways:
                    leaves(*present.popitem(last=False)[1])
                rows[code][0] += line
                rows[code][3] += line if number in seen else 0
                seen.add(number)
            fetched_by, touched = present.pop(number, (code, 0))
            present[number] = (fetched_by, touched | ((1 << part) - 1) << offset)
            address, left = address + part, left - part
    for present in sets:
        for entry in present.values():
            leaves(*entry)
    return [data + code for data, code in zip(rows[False], rows[True])] + rows[True]


class Instructions(unittest.TestCase):
    def setUp(self):
        self.out = support.temporary_folder(self) / "events"

    def profiled(self, program, *options):
        result = profile([PROGRAMS / program], "--instructions=yes", *options, plugin="used_bytes",
                         out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.said = result.stderr
        return read_events(self.out)

    @support.needs("valgrind")
    def test_like_a_model_of_the_whole_trace(self):
        """Programs without libc, whose addresses are the same everywhere."""
        for program in ("switch", "straddle"):
            references = list(lackeys_references(PROGRAMS / program,
                                                 self.out.with_suffix(".trace")))
            for shape in ((64, 1, 64), (4096, 1, 64), (1024, 16, 64), (512, 2, 32), (2048, 2, 128)):
                with self.subTest(program, shape=shape):
                    found = self.profiled(program, "--cache=" + ",".join(map(str, shape)))
                    self.assertEqual(found.summary, modelled(references, *shape))

    def test_columns(self):
        found = self.profiled("code_lines", "--cache=65536,8,64")
        names = ["ReadB", "UsedB", "WastedB", "AgainB"]
        self.assertEqual(found.events, names + ["Code" + name for name in names])
        # 100 lines of code, 5 bytes of each, but for the last one's return of 1 byte, which reads
        # its address from the stack.
        code = usage(100, 99 * 5 + 1)
        self.assertEqual(found.functions["jump_along"][4:], code)
        self.assertIn("were read for instruction fetches: used", self.said)
        self.assertEqual(set(found.events) - set(names), {"Code" + name for name in names})
        profile([PROGRAMS / "code_lines"], plugin="used_bytes", out=self.out)
        self.assertEqual(read_events(self.out).events, names)

    def test_lists(self):
        """Which bytes of lines are executed."""
        self.profiled("code_lines", "--cache=65536,8,64", "--dump-instr=yes")
        lists = [remark for remark in read_events(self.out).remarks
                 if " used_bytes.code_bytes " in remark]
        self.assertGreaterEqual(sum(remark.split()[-1].startswith("0x5:") or
                                    remark.split()[-1].startswith("5:")
                                    for remark in lists), 90)

    def test_code_evicts_data_and_data_code(self):
        """In a cache of one line: two reads of a loop are each followed by a fetch."""
        found = self.profiled("code_lines", "--cache=64,1,64")
        read, *_, code, _, _, _ = found.functions["two_reads"]
        self.assertEqual((read - code) // LINE, 2 * 1000 + 1)  # and the return address
        self.assertEqual(code // LINE, 1 + 2 * 1000)


if __name__ == "__main__":
    unittest.main()
