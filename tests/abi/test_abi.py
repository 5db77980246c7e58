#!/usr/bin/env python3
"""The binary interface: what version-1.abi has written down is still so, the fixture that uses all
of it works, and each header compiles alone.

    test_abi.py ABI_DUMP FIXTURE.so COMPILER_C COMPILER_CXX
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
import support  # noqa: E402
from support import ROOT, profile, read_events, run  # noqa: E402

RECORD = Path(__file__).with_name("version-1.abi")
HEADERS = sorted((ROOT / "include" / "assay").glob("*.h"))
DUMP, FIXTURE, CC, CXX = sys.argv[1:5]

SIZE = re.compile(r"struct (\w+): (\d+) bytes")


def dumped() -> list[str]:
    result = run([DUMP, FIXTURE])
    assert result.returncode == 0, result.stderr
    return sorted(set(result.stdout.splitlines()))


def broken(recorded: list[str], now: list[str]) -> list[str]:
    """What was recorded and is not so any more. A struct that begins with its size may have grown."""
    may_grow = {line.split()[1] for line in recorded if line.endswith(" +0: uint32_t size")}
    sizes = {match[1]: int(match[2]) for match in map(SIZE.fullmatch, now) if match}
    def holds(line):
        match = SIZE.fullmatch(line)
        if match and match[1] in may_grow:
            return sizes.get(match[1], 0) >= int(match[2])
        return line in now
    return [line for line in recorded if not holds(line)]


class Interface(unittest.TestCase):
    def test_nothing_that_was_recorded_has_changed(self):
        recorded, now = RECORD.read_text().splitlines(), dumped()
        self.assertGreater(len(recorded), 100)
        self.assertEqual(broken(recorded, now), [], "the interface of version 1 is final")
        new = [line for line in now if line not in recorded and not SIZE.fullmatch(line)]
        if new:
            print(f"not in {RECORD.name} yet, see README.md there:", *new, sep="\n  ")

    def test_a_change_is_noticed(self):
        recorded = RECORD.read_text().splitlines()
        self.assertEqual(broken(recorded, recorded), [])
        for line in recorded:
            if not SIZE.fullmatch(line):
                changed = [other.replace(line, line + "x") for other in recorded]
                self.assertEqual(broken(recorded, changed), [line])
        fixed = "struct trace_instr: 32 bytes"
        grown = [line.replace("struct vp_host: ", "struct vp_host: 1") for line in recorded]
        self.assertEqual(broken(recorded, grown), [])
        self.assertEqual(broken([fixed], [fixed.replace("32", "40")]), [fixed])

    def test_the_fixture_uses_all_functions(self):
        declared = set()
        for header in HEADERS:
            if header.name != "client.h":
                code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
                declared |= set(re.findall(r"^[\w ]+[ *]+(trace_\w+)\(", code, re.MULTILINE))
        used = {line.split()[1].rstrip(":") for line in dumped() if line.startswith("function ")}
        self.assertGreater(len(declared), 20)
        recorded = RECORD.read_text()
        missing = {name for name in declared if f"function {name}:" in recorded} - used
        self.assertEqual(missing, set())

    def test_the_fixture_runs(self):
        out = support.temporary_folder(self) / "events"
        result = profile([support.PROGRAMS / "work"], "-q", "--label=x", "--log=%n.log",
                         "--most=1000000", plugin=FIXTURE, out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        events = read_events(out)
        self.assertEqual(events.events, ["Ir", "Refs", "Lines", "Calls"])
        self.assertEqual(events.descriptions[:2], ["label: x", "log: work.log"])
        self.assertTrue(all(events.functions["sum_cells"][:2]), events.functions["sum_cells"])
        self.assertIn('#! series "a series" profiler=version_1 thread=1 phase="a phase" scale=log '
                      'merge=add "of two points"', events.remarks)
        self.assertIn("#! points 1:10:1 4:20:2", events.remarks)
        refused = profile([support.PROGRAMS / "work"], "--most=0", plugin=FIXTURE, out=out)
        self.assertIn("0 samples tell nothing", refused.stderr)


class Headers(unittest.TestCase):
    def compiles(self, words, header):
        warnings = ["-pedantic-errors", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
        result = run([*words, *warnings, "-I", ROOT / "include", "-fsyntax-only", header])
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_each_compiles_alone(self):
        self.assertGreaterEqual(len(HEADERS), 5)
        for header in HEADERS:
            for standard in ("c99", "c17"):
                with self.subTest(header=header.name, standard=standard):
                    self.compiles([CC, f"-std={standard}", "-Wstrict-prototypes", "-x", "c"], header)
            for standard in ("c++11", "c++20"):
                with self.subTest(header=header.name, standard=standard):
                    self.compiles([CXX, f"-std={standard}", "-x", "c++"], header)

    def test_the_headers_for_cpp_compile_alone(self):
        for header in (ROOT / "sdk" / "include" / "assay").glob("*.hpp"):
            with self.subTest(header=header.name):
                self.compiles([CXX, "-std=c++20", f"-I{ROOT / 'sdk' / 'include'}", "-x", "c++"], header)

    def test_none_needs_more_than_the_c_library(self):
        """But for the one that reads traces, which are compressed."""
        others = {"trace_file.h": ["<stdlib.h>", "<string.h>", "<zstd.h>"]}
        for header in HEADERS:
            for included in re.findall(r"#include ([<\"].*[>\"])", header.read_text()):
                if included not in others.get(header.name, []):
                    self.assertRegex(included, r'^(<std(def|int)\.h>|"trace_\w+\.h")$', header.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
