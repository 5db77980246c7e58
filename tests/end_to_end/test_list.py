#!/usr/bin/env python3
"""assay list: instructions with counts and values, from the objects that are there now."""

import os
import re
import shutil
import unittest

import support
from support import ASSAY, BUILD, PLUGINS, PROGRAMS, profile, run

COUNTS = PLUGINS / "counts.so"
VERSION_1 = BUILD / "tests" / "abi" / "version_1.so"
# counts, address, text
LINE = re.compile(r"^ *([\d,.]+) +([\d,.]+) +([0-9a-f]+)  (.+)$")


def listed(path, *options):
    return run([ASSAY, "list", "--show-percs=no", *options, path])


def lines(result):
    """Of all instructions: address, counts as far as there are any, text."""
    found = [LINE.match(line) for line in result.stdout.splitlines()]
    return [(int(m[3], 16), [int(count.replace(",", "")) for count in (m[1], m[2]) if count != "."],
             m[4]) for m in found if m]


class List(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = support.temporary_folder_of_class(cls)
        cls.program = cls.shared / "work"
        shutil.copy(PROGRAMS / "work", cls.program)
        cls.out = cls.shared / "events"
        result = profile([cls.program], "-q", "--dump-instr=yes", "--references=yes",
                         plugin=COUNTS, out=cls.out)
        assert result.returncode == 0, result.stderr

    def good(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, result, *words):
        self.assertEqual(result.returncode, 125, result.stdout)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(str(word), result.stderr)

    def changed(self, name, change):
        path = self.shared / name
        path.write_text(change(self.out.read_text()))
        return path

    def test_counts_are_those_of_the_file(self):
        """Every `at` line of the program's object is there, with its counts."""
        text = self.out.read_text()
        number = re.search(rf"object (\d+) {self.program} ", text)[1]
        expected = {}
        for address, counts in re.findall(rf"^fl=#! at {number}:0x([0-9a-f]+) \d+ ([\d ]+)$", text,
                                          re.MULTILINE):
            expected[int(address, 16)] = ([int(word) for word in counts.split()] + [0])[:2]
        result = self.good(listed(self.out, "--threshold=0", "--show=Ir,Refs", "--function=.*"))
        part = result.stdout.split(f"({self.program})")[1:]
        found = {}
        for section in part:
            for address, counts, _ in lines(support.subprocess.CompletedProcess([], 0, section)):
                if counts and address in expected:
                    found[address] = counts
        self.assertEqual(found, expected)

    def test_inlined_functions_are_found(self):
        out = self.shared / "inlining.events"
        self.good(profile([PROGRAMS / "inlining"], "-q", "--dump-instr=yes", plugin=COUNTS, out=out))
        result = self.good(listed(out, "--function=^sum_cells$", "--show=Ir"))
        self.assertRegex(result.stdout, r"-- sum_cells, inlined into \w+  \(")
        counted = sum(int(row.split()[0].replace(",", "")) for row in
                      re.findall(r"^ *[\d,]+ +[0-9a-f]+  .*$", result.stdout, re.MULTILINE))
        self.assertEqual(counted, sum(counts[0] for name, counts in
                                      support.read_events(out).functions.items()
                                      if name.split(":")[-1] == "sum_cells"))

    def test_whole_function_in_order(self):
        result = self.good(listed(self.out, "--function=^count_bits$", "--show=Ir,Refs"))
        found = lines(result)
        self.assertEqual([a for a, _, _ in found], sorted(a for a, _, _ in found))
        self.assertTrue(any(not counts for _, counts, _ in found), "one branch is never taken")
        self.assertIn("retq", found[-1][2] + found[-2][2] + found[-3][2] + found[-4][2])
        self.assertTrue(any("<count_bits+0x" in text for _, _, text in found), result.stdout)
        size = int(run(["nm", "-S", self.program]).stdout.split(" count_bits")[0]
                   .rsplit("\n", 1)[-1].split()[1], 16)
        self.assertLess(found[-1][0] - found[0][0], size)
        self.assertGreaterEqual(found[-1][0] - found[0][0] + 15, size)

    def test_choice_and_order(self):
        by_default = self.good(listed(self.out)).stdout
        self.assertLess(by_default.index("-- count_bits "), by_default.index("-- sum_cells "))
        by_references = self.good(listed(self.out, "--sort=Refs")).stdout
        self.assertLess(by_references.index("-- sum_cells "), by_references.index("-- count_bits "))
        self.assertNotIn("-- count_bits ", self.good(listed(self.out, "--threshold=99.5",
                                                            "--function=sum")).stdout)
        self.refused(listed(self.out, "--sort=Irr"), "Irr", "did you mean Ir")
        self.refused(listed(self.out, "--function=no_such_function"), "no function")
        self.refused(listed(self.out, "--function=("), "(")
        self.refused(listed(self.out, "--threshold=100"), "threshold")

    def synthetic(self, name, rows):
        """Each row: the function, the address, Ir, Dr, and lines that follow."""
        path = self.shared / name
        path.write_text("desc: a: b\ncmd: a\nevents: Ir Dr\nfl=#! version 1\nfl=#! object 0 /none\n" +
                        "".join(f"fl=a.c\nfn={function}\n1 {ir} {dr}\nfl=#! at 0:{at:#x} 1 {ir} {dr}\n{more}"
                                for function, at, ir, dr, more in rows) +
                        f"summary: {sum(row[2] for row in rows)} {sum(row[3] for row in rows)}\n")
        return path

    def test_first_answer_fits_a_screen(self):
        """The instructions that count most, those of a function in the order of addresses."""
        path = self.synthetic("long", [(f"f{i // 50}", 0x1000 + 64 * i, 1000 + i, 1000 - i, "")
                                       for i in range(500)])
        shown = self.good(listed(path)).stdout
        self.assertLessEqual(len(shown.splitlines()), 24)
        rows = [int(address, 16) for address in
                re.findall(r"^ *1,\d+ +\d+ +(\w+)  \?$", shown, re.MULTILINE)]
        self.assertGreaterEqual(len(rows), 5)
        self.assertEqual(rows, [0x1000 + 64 * i for i in range(500 - len(rows), 500)])
        self.assertIn(f"and {500 - len(rows)} more above the threshold", shown)
        by_dr = self.good(listed(path, "--show=Dr")).stdout
        self.assertRegex(by_dr, r"-- f0  .*\n1,000        1000  \?\n  999        1040  \?\n")
        self.assertEqual(len(re.findall(r"^ *\d.*  \?$", self.good(listed(path, "--full")).stdout,
                                        re.MULTILINE)), 500)

    def test_neighbours_need_no_gap(self):
        path = self.synthetic("near", [("f", 0x10, 5, 0, ""), ("f", 0x11, 900, 0, ""),
                                       ("f", 0x12, 0, 0, ""), ("f", 0x13, 0, 0, ""),
                                       ("f", 0x14, 90, 0, ""), ("f", 0x15, 0, 0, ""),
                                       ("f", 0x16, 0, 0, ""), ("f", 0x17, 0, 0, ""),
                                       ("f", 0x18, 5, 0, "")])
        shown = self.good(listed(path, "--threshold=1", "--show=Ir")).stdout
        self.assertIn("-- f  (/none)\n"
                      "900          11  ?\n"
                      "  0          12  ?\n"
                      "  0          13  ?\n"
                      " 90          14  ?\n"
                      "Warning", shown)
        shown = self.good(listed(path, "--show=Ir")).stdout
        self.assertIn("  5          10  ?\n900          11  ?\n", shown)
        self.assertIn(" 90          14  ?\n...\n  5          18  ?\n", shown)

    def test_threshold(self):
        """At least so much of the first sort event; with a name, whatever it counts."""
        path = self.shared / "three"
        path.write_text("desc: a: b\ncmd: a\nevents: Ir Dr\nfl=#! version 1\nfl=#! object 0 /none\n" +
                        "".join(f"fl=a.c\nfn={name}\n1 {ir} {dr}\nfl=#! at 0:{at:#x} 1 {ir} {dr}\n"
                                for at, (name, ir, dr) in enumerate((("many", 900, 0), ("some", 95, 4),
                                                                     ("few", 5, 6)))) +
                        "summary: 1000 10\n")
        for options, names in (((), ["many", "some", "few"]), (("--threshold=1",), ["many", "some"]),
                               (("--threshold=9.5",), ["many", "some"]),
                               (("--threshold=9.6",), ["many"]),
                               (("--threshold=0",), ["many", "some", "few"]),
                               (("--threshold=60", "--sort=Dr"), ["few"]),
                               (("--threshold=60", "--function=some"), ["some"])):
            with self.subTest(options):
                shown = self.good(listed(path, *options)).stdout
                self.assertEqual(re.findall(r"^-- (\w+)  \(/none\)$", shown, re.MULTILINE), names)

    def test_source_and_syntax(self):
        result = self.good(listed(self.out, "--function=^count_bits$", "--source=yes",
                                  "--syntax=intel"))
        self.assertIn("for (; value != 0; value &= value - 1) ++bits;", result.stdout)
        self.assertIn("work.c:", result.stdout)
        self.assertIn("add     edx, 1", result.stdout)
        self.assertNotIn("is newer than", result.stdout)

    def test_sources_fit_a_screen_too(self):
        for syntax in ("att", "intel"):
            shown = self.good(listed(self.out, "--source=yes", f"--syntax={syntax}")).stdout
            self.assertLessEqual(len(shown.splitlines()), 24)
            self.assertIn("work.c:", shown)

    def test_source_with_carriage_returns(self):
        folder = support.temporary_folder(self)
        (folder / "text.c").write_bytes(b"int main(void) {\r\n    return 0;\r\n}\r\n")
        self.good(run(["cc", "-g", "-o", folder / "text", folder / "text.c"]))
        self.good(profile([folder / "text"], "--dump-instr=yes", plugin=COUNTS, out=folder / "out"))
        result = self.good(listed(folder / "out", "--function=^main$", "--source=yes"))
        self.assertIn("text.c:2:     return 0;\n", result.stdout)

    def test_sources_that_are_newer(self):
        old = self.changed("old", lambda text: text)
        os.utime(old, (1000, 1000))
        result = self.good(listed(old, "--source=yes", "--function=^(count_bits|main)$"))
        self.assertEqual(result.stdout.count(f"work.c is newer than {old}; its lines"), 1)
        self.assertNotIn("is newer than", self.good(listed(old, "--function=^main$")).stdout)

    def test_no_counts_of_instructions(self):
        out = self.shared / "without"
        profile([self.program], "-q", plugin=COUNTS, out=out)
        self.refused(listed(out), "--dump-instr=yes", out)

    def test_values_without_counts_of_instructions(self):
        out = support.temporary_folder(self) / "events"
        profile([self.program], "-q", plugin="classic", out=out)
        result = listed(out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("loaded:", result.stdout)
        self.assertLessEqual(len(result.stdout.splitlines()), 24)
        # The loop of count_bits reads no memory: the most frequent loads are those of sum_cells.
        self.assertIn("-- sum_cells  ", result.stdout)
        self.assertIn("no counts of instructions: profile with --dump-instr=yes", result.stdout)

    def test_program_that_has_moved(self):
        moved = self.shared / "elsewhere" / "renamed"
        moved.parent.mkdir()
        shutil.copy(self.program, moved)
        gone = self.changed("gone", lambda text: text.replace(str(self.program), "/nonexistent/x"))
        result = self.good(listed(gone, "--function=^count_bits$", "--show=Ir,Refs"))
        self.assertIn("/nonexistent/x cannot be read", result.stdout)
        self.assertIn("assay list FILE PROGRAM", result.stdout)
        self.assertEqual({text for _, _, text in lines(result)}, {"?"})
        found = self.good(run([ASSAY, "list", "--function=^count_bits$", gone, moved]))
        self.assertIn("retq", found.stdout)
        self.assertNotIn("Warning", found.stdout)
        self.refused(run([ASSAY, "list", gone, "/bin/true"]), "/bin/true", "/nonexistent/x")
        self.refused(run([ASSAY, "list", gone, self.out]), self.out)

    def test_program_that_has_changed(self):
        other = self.changed("other", lambda text: re.sub(
            rf"(object \d+ {self.program} build-id=)\w+", r"\g<1>0123456789abcdef", text))
        result = self.good(listed(other, "--function=^count_bits$"))
        self.assertIn("has changed since the profile: its build id is", result.stdout)
        self.assertIn("0123456789abcdef", result.stdout)
        self.assertNotIn("retq", result.stdout)

    def values(self, name):
        """The profile with values at the first instruction of count_bits."""
        def add(text):
            line = re.search(r"^fn=count_bits\n(?:\d.*\n)*(fl=#! at (\S+ \d+) .*\n)", text,
                             re.MULTILINE)
            text = text.replace(line[1], line[1] + f"fl=#! value {line[2]} {name} 1000 "
                                "error=3 0xabc:900 0x10:20\n")
            load = re.search(r"^fn=sum_cells\n(?:.*\n)*?(fl=#! at (\S+ \d+) \d+ [1-9]\d*\n)", text,
                             re.MULTILINE)
            return text.replace(load[1], load[1] + f"fl=#! value {load[2]} {name} 4 0x7:4\n")
        return self.changed("values", add)

    def test_values_as_their_profiler_prints_them(self):
        path = self.values("version_1")
        result = self.good(listed(path, "--function=^sum_cells$", f"--plugin={VERSION_1}"))
        self.assertRegex(result.stdout, r"\n +value: 0x7 of \d bytes \(100\.0%\) of 4\n")
        # The profiler leaves the lists of instructions without memory operands out.
        result = self.good(listed(path, "--function=^count_bits$", f"--plugin={VERSION_1}"))
        self.assertNotIn("0xabc", result.stdout)
        found = run([ASSAY, "list", "--function=^sum_cells$", path],
                    env={**os.environ, "ASSAY_PLUGIN_PATH": str(VERSION_1.parent)})
        self.assertIn("value: 0x7 of", self.good(found).stdout)

    def test_values_without_their_profiler(self):
        path = self.values("not_at_hand.list")
        result = self.good(listed(path, "--function=^count_bits$"))
        self.assertRegex(result.stdout, r"\n +not_at_hand\.list: 0xabc \(90\.0%\) 0x10 \(2\.0%\) "
                                        r"of 1,000, each up to 3 more\n")
        self.assertRegex(result.stdout, r"Note: +values are shown as numbers: .*not_at_hand")
        one = self.good(listed(path, "--function=^count_bits$", "--values=1")).stdout
        self.assertNotIn("0x10 ", one)

    def test_values_of_a_path(self):
        """Whoever has made the file does not say what code runs."""
        library = self.shared / "anything"
        shutil.copy(VERSION_1, library)
        result = self.good(listed(self.values(library), "--function=^sum_cells$"))
        self.assertIn(f"{library}: 0x7 (100.0%) of 4", result.stdout)
        self.assertRegex(result.stdout, rf"Note: +.*{library} is a path; .* --plugin")
        trusted = self.good(listed(self.values(library), "--function=^sum_cells$",
                                   f"--plugin={library}"))
        self.assertIn(f"{library} is a path", trusted.stdout)

    def test_names_of_any_length(self):
        path = self.changed("long", lambda text: text.replace("\nfn=???\n",
                                                              "\nfn=" + "a" * 500_000 + "\n"))
        self.refused(listed(path, "--function=a.*b.*c.*Z$"), "--function")
        self.assertIn("a" * 500_000, self.good(listed(path, "--function=^(a|b)*$")).stdout)
        self.refused(listed(path, "--function=("), "--function (: not a regular expression")

    def test_hostile_files(self):
        """Addresses anywhere, overlapping and unordered: every count is shown, nothing hangs."""
        def change(text):
            object_number = re.search(rf"object (\d+) {self.program} ", text)[1]
            return re.sub(rf"^fl=#! at {object_number}:0x(\w+)",
                          lambda m: f"fl=#! at {object_number}:0x{int(m[1], 16) * 2 ** 40:x}"
                          if int(m[1], 16) % 3 == 0 else m[0] + "0" * 3,
                          text, flags=re.MULTILINE)
        result = self.good(listed(self.changed("hostile", change), "--threshold=0", "--full",
                                  "--source=yes"))
        self.assertIn("  ?", result.stdout)
        same = self.changed("same", lambda text: re.sub(r"(?m)^fl=#! at (\d+):0x\w+",
                                                        r"fl=#! at \1:0xffffffffffffffff", text))
        for more in ([], ["--full"]):
            self.good(listed(same, "--threshold=0", "--source=yes", *more))
        cut = self.shared / "cut"
        cut.write_text(self.out.read_text()[:5000])
        self.refused(listed(cut), cut)
        self.refused(listed("/nonexistent"), "/nonexistent")
        self.refused(listed(self.program), self.program)


if __name__ == "__main__":
    unittest.main()
