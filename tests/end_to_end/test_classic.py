#!/usr/bin/env python3
"""The classic profiler, on a program whose most frequent values are known."""

import subprocess
import unittest

from support import (ASSAY, PLUGINS, PROGRAMS, profile, read_events, run,
                     temporary_folder_of_class)

PROGRAM = PROGRAMS / "frequent_values"
ROUNDS = 1000


def symbols() -> dict[int, str]:
    output = subprocess.run(["nm", str(PROGRAM)], stdout=subprocess.PIPE, text=True, check=True)
    return {int(value, 16): name for value, _, name in map(str.split, output.stdout.splitlines())}


class Classic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = temporary_folder_of_class(cls)
        cls.file = cls.folder / "out"
        result = profile([PROGRAM], "--dump-instr=yes", "--quiet",
                         "--values=loads,stores,results,operands", plugin="classic", out=cls.file)
        assert result.returncode == 0, result.stderr
        cls.events = read_events(cls.file)
        cls.names = symbols()
        cls.lists = {}
        cls.counts = {}
        for remark in cls.events.remarks:
            words = remark.split()
            place = words[2] if len(words) > 2 else ""
            label = cls.names.get(int(place.partition(":")[2] or "0", 16)) if ":" in place else None
            if words[1] == "value":
                cls.lists[label, words[4]] = words[5:]
            if words[1] == "at":
                counts = [int(word) for word in words[4:]]
                counts += [0] * (len(cls.events.events) - len(counts))
                cls.counts[label] = dict(zip(cls.events.events, counts))

    def hottest(self, label, name):
        """Total, and the most frequent value with its count."""
        total, *rest = self.lists[label, "classic." + name]
        value, count = [word for word in rest if ":" in word][0].split(":")
        return int(total), int(value, 16), int(count)

    def test_most_frequent_values(self):
        pi = 0x400A000000000000
        for label, name, value, count in (
                ("store_mostly_7", "stored", 7, 900), ("load_mostly_7", "loaded", 7, 900),
                ("load_mostly_7", "result", 7, 900), ("store_mostly_7", "first-operand", 7, 900),
                ("load_zero", "loaded", 0, 1000), ("load_double", "loaded", pi, 1000),
                ("load_double", "result", pi, 1000), ("store_constant", "stored", 5, 1000),
                ("double_x87", "result", 0x401A000000000000, 1000),
                ("double_x87", "first-operand", pi, 1000)):
            with self.subTest(label=label, name=name):
                self.assertEqual(self.hottest(label, name), (ROUNDS, value, count))
        self.assertEqual(self.lists["parity", "classic.result"], ["1000", "0x0:500", "0x1:500"])

    def test_shares(self):
        for label, expected in {
                "load_zero": {"Vals": 2000, "Zeros": 2000, "Top": 2000},
                "store_constant": {"Vals": 1000, "Top": 1000, "Stores": 1000, "Silent": 999},
                "store_number": {"Stores": 1000, "Silent": 1},
                "add_number": {"Stores": 1000, "Silent": 1000},
                # Only the high 8 bytes change, but in the first round.
                "store_wide": {"Vals": 2000, "Stores": 1000, "Silent": 1},
                "store_string": {"Stores": 0, "Silent": 0},
                "store_low": {"Stores": 1000, "Silent": 1000},
                # 7 again but in rounds with a 3 and behind them; the first of all changes 0 to 7.
                "store_mostly_7": {"Stores": 1000, "Silent": 799},
                # The first round, which is of another basic block, is the one before of the second.
                "load_mostly_7": {"Vals": 2000, "Same": 2 * 799}}.items():
            with self.subTest(label):
                counts = self.counts[label]
                self.assertEqual({name: counts[name] for name in expected}, expected)

    def test_list_prints_values_as_what_they_are(self):
        listed = run([ASSAY, "list", "--function=_start", "--threshold=0", self.file])
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("loaded: 3.25 (100.0%) of 1,000", listed.stdout)
        self.assertIn("stored: 5 (100.0%) of 1,000", listed.stdout)
        self.assertIn("result: 6.5 (100.0%) of 1,000", listed.stdout)
        self.assertIn("loaded: 7 (90.0%)", listed.stdout)

    def test_merging_adds_lists_up(self):
        merged = self.folder / "merged"
        result = run([ASSAY, "merge", "-o", merged, self.file, self.file])
        self.assertEqual(result.returncode, 0, result.stderr)
        lists = [remark.split()[5:] for remark in read_events(merged).remarks
                 if remark.startswith("#! value") and "classic.result" in remark]
        self.assertIn(["2000", "0x0:1000", "0x1:1000"], lists)

    def test_default_and_unknown_kinds(self):
        out = self.folder / "default"
        self.assertEqual(profile([PROGRAM], plugin="classic", out=out).returncode, 0)
        names = {remark.split()[4] for remark in read_events(out).remarks
                 if remark.startswith("#! value")}
        self.assertEqual(names, {"classic.loaded", "classic.stored"})
        result = profile([PROGRAM], "--values=loads,thoughts", plugin="classic", out=out)
        self.assertEqual(result.returncode, 125)
        self.assertIn("--values=thoughts: unknown kind of values", result.stderr)

    def test_no_columns_of_stores_without_stores(self):
        out = self.folder / "loads"
        result = profile([PROGRAM], "--values=loads", plugin="classic", out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(read_events(out).events, ["Vals", "Zeros", "Same", "Top"])

    def test_captures_are_told(self):
        told = run([ASSAY, "plugins", "classic"]).stdout
        self.assertIn("  values of instructions: loaded value, stored value, stored value before\n",
                      told)

    def test_two_profilers_get_what_each_asked_for(self):
        out = self.folder / "two"
        log = self.folder / "log"
        result = profile([PROGRAM], "--values=stores", "--capture=gpr3,loaded",
                         f"--values-log={log}", plugin=f"classic,{PLUGINS / 'values.so'}", out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        names = {remark.split()[4] for remark in read_events(out).remarks
                 if remark.startswith("#! value")}
        self.assertEqual(names, {"classic.stored"})
        address = {name: value for value, name in self.names.items()}["load_zero"]
        rows = [line.split()[1:] for line in log.read_text().splitlines()
                if line.startswith(f"{address:x} ")]
        self.assertEqual(rows, [[f"{i:x}", "0"] for i in range(ROUNDS)])


if __name__ == "__main__":
    unittest.main()
