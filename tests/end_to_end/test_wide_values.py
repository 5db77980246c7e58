#!/usr/bin/env python3
"""Values of more than 8 bytes: stores of 16, 32 and 64, and what classic finds out about them."""

import subprocess
import unittest
from pathlib import Path

from support import PLUGINS, PROGRAMS, profile, read_events, temporary_folder

PROGRAM = PROGRAMS / "wide_stores"
VALUES = PLUGINS / "values.so"
ROUNDS = 64
FLAGS = set(Path("/proc/cpuinfo").read_text().split())
# By how wide the stores are: what the processor needs for them.
NEEDED = {16: set(), 32: {"avx"}, 64: {"avx", "avx512f", "avx512vl"}}
WIDTHS = [width for width, flags in NEEDED.items() if flags <= FLAGS]
ARGUMENTS = ["x"] * (len(WIDTHS) - 1)


def names() -> dict[int, str]:
    output = subprocess.run(["nm", str(PROGRAM)], stdout=subprocess.PIPE, text=True, check=True)
    return {int(value, 16): name for value, _, name in map(str.split, output.stdout.splitlines())}


def source(rounds: int, width: int) -> str:
    """The first bytes of what the program stores, in hexadecimal, after so many rounds."""
    return "".join("01" if i < rounds else "00" for i in range(width))


class WideValues(unittest.TestCase):
    def logged(self, capture: str, plugin=VALUES) -> dict[str, list[list[str]]]:
        """By label, the values of each execution."""
        folder = temporary_folder(self)
        result = profile([PROGRAM, *ARGUMENTS], f"--capture={capture}",
                         f"--values-log={folder / 'log'}", plugin=plugin, out=folder / "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        by_label = {}
        labels = names()
        for line in (folder / "log").read_text().splitlines():
            address, *values = line.split()
            by_label.setdefault(labels.get(int(address, 16)), []).append(values)
        return by_label

    def for_each_width(self, check):
        for width in NEEDED:
            with self.subTest(width=width):
                if width not in WIDTHS:
                    self.skipTest(f"the processor lacks {NEEDED[width] - FLAGS}")
                check(width)

    def test_all_bytes_of_memory(self):
        logged = self.logged("stored~,stored!~,loaded~")

        def check(width):
            self.assertEqual(logged[f"store_{width}"],
                             [[source(i + 1, width), source(i, width), "-"]
                              for i in range(ROUNDS)])
            self.assertEqual(logged[f"store_{width}_again"],
                             [[source(i + 1, width), source(i + 1, width), "-"]
                              for i in range(ROUNDS)])
        self.for_each_width(check)
        self.assertEqual(logged["load_16"], [["-", "-", source(i + 1, 16)] for i in range(ROUNDS)])
        ten = "0000000000000000ff3f"
        self.assertEqual(logged["store_10"],
                         [[ten, "00" * 10, "-"]] + [[ten, ten, "-"]] * (ROUNDS - 1))
        zero, one = "00" * 16, "01" + "00" * 15
        self.assertEqual(logged["exchange_16"],
                         [[zero] * 3, [one, zero, zero]] + [[one] * 3] * (ROUNDS - 2))

    def test_no_memory_under_a_mask(self):
        logged = self.logged("stored~,stored!~,source0~")
        for width in WIDTHS[1:]:
            rows = logged[f"store_under_mask_{width}"]
            self.assertEqual([row[:2] for row in rows], [["-", "-"]] * ROUNDS)

    def test_all_bytes_of_registers(self):
        logged = self.logged("source0~,destination~,destination!~,vector2~,vector17~")
        whole = 64 if "avx512f" in FLAGS else 32 if "avx" in FLAGS else 16

        def check(width):
            self.assertEqual([row[:3] for row in logged[f"store_{width}"]],
                             [[source(i + 1, width), "-", "-"] for i in range(ROUNDS)])
        self.for_each_width(check)
        one_more = ["".join(f"{1 + (i <= j):02x}" for i in range(16)) for j in range(ROUNDS)]
        self.assertEqual([row[:4] for row in logged["add_16"]],
                         [[one_more[i], one_more[i], source(i + 1, 16),
                           one_more[i] + "00" * (whole - 16)] for i in range(ROUNDS)])
        if 64 in WIDTHS:
            self.assertEqual([row[0] for row in logged["store_upper_32"]],
                             [source(i + 1, 32) for i in range(ROUNDS)])
            self.assertEqual([row[4] for row in logged["store_upper_32"]],
                             [source(i + 1, 64) for i in range(ROUNDS)])

    def test_with_others_that_ask_for_the_low_bytes(self):
        """What a profiler gets does not depend on who else runs."""
        narrow = "stored,stored!,source0,destination"
        self.assertEqual(self.logged(narrow, plugin=f"classic,{VALUES}"), self.logged(narrow))
        for row in self.logged(narrow)["store_16"]:
            self.assertTrue(all(len(value) <= 16 for value in row), row)

    def test_as_many_as_a_list_has(self):
        logged = self.logged(",".join(f"vector{i}{time}~" for i in (0, 1, 3) for time in ("", "!")))
        for row in logged["store_16"]:
            self.assertEqual(row[::2], row[1::2])
        self.assertEqual([row[0][:32] for row in logged["store_16"]],
                         [source(i + 1, 16) for i in range(ROUNDS)])


class SilentStores(unittest.TestCase):
    def test_silent_stores(self):
        folder = temporary_folder(self)
        out = folder / "out"
        result = profile([PROGRAM, *ARGUMENTS], "--dump-instr=yes", "--values=stores",
                         plugin="classic", out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        events = read_events(out)
        labels = names()
        found = {}
        for remark in events.remarks:
            words = remark.split()
            if words[1] != "at" or ":" not in words[2]:
                continue
            counts = dict(zip(events.events, [int(word) for word in words[4:]] + [0] * 9))
            label = labels.get(int(words[2].partition(":")[2], 16))
            found[label] = (counts["Stores"], counts["Silent"])

        def check(width):
            # Each round changes another one of 64 bytes.
            self.assertEqual(found[f"store_{width}"], (ROUNDS, ROUNDS - width))
            self.assertEqual(found[f"store_{width}_again"], (ROUNDS, ROUNDS))
        for width in NEEDED:
            with self.subTest(width=width):
                if width not in WIDTHS:
                    self.skipTest(f"the processor lacks {NEEDED[width] - FLAGS}")
                check(width)
        self.assertEqual(found["store_10"], (ROUNDS, ROUNDS - 1))
        self.assertEqual(found["exchange_16"], (ROUNDS, ROUNDS - 1))
        if 64 in WIDTHS:
            self.assertEqual(found["store_upper_32"], (ROUNDS, ROUNDS))
        for width in WIDTHS[1:]:  # not known under a mask
            self.assertEqual(found.get(f"store_under_mask_{width}", (0, 0)), (0, 0))


if __name__ == "__main__":
    unittest.main()
