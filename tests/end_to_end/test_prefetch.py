#!/usr/bin/env python3
"""Misses that a prefetch avoids: known answers, and the misses of programs that prefetch."""

import unittest

import support
from support import PROGRAMS, needs, profile, read_events, run

SOURCE = """
enum { LINES = 4096, ROWS = 256, COLUMNS = 1024, NUMBERS = 65536, NODES = 4096 };
struct node { struct node* next; char rest[120]; };
char lines[(LINES + 64) * 192] __attribute__((aligned(4096)));
int wide[ROWS + 64][COLUMNS] __attribute__((aligned(4096)));
int odd[ROWS + 64][COLUMNS + 16] __attribute__((aligned(4096)));
int numbers[NUMBERS + 64] __attribute__((aligned(4096)));
struct node nodes[NODES] __attribute__((aligned(4096)));
#if AHEAD
#define PREFETCH(what) __builtin_prefetch(&what)
#else
#define PREFETCH(what) (void)0
#endif
#define FUNCTION __attribute__((noinline)) long
FUNCTION by_lines(void) {
    long sum = 0;
    for (long i = 0; i < LINES; ++i) { PREFETCH(lines[(i + AHEAD) * 192]); sum += lines[i * 192]; }
    return sum;
}
FUNCTION by_numbers(void) {
    long sum = 0;
    for (long i = 0; i < NUMBERS; ++i) { PREFETCH(numbers[i + AHEAD]); sum += numbers[i]; }
    return sum;
}
FUNCTION by_columns(void) {
    long sum = 0;
    for (long j = 0; j < COLUMNS; j += 16)
        for (long i = 0; i < ROWS; ++i) { PREFETCH(wide[i + AHEAD][j]); sum += wide[i][j]; }
    return sum;
}
FUNCTION by_odd_columns(void) {
    long sum = 0;
    for (long j = 0; j < COLUMNS; j += 64)
        for (long i = 0; i < ROWS; ++i) { PREFETCH(odd[i + AHEAD][j]); sum += odd[i][j]; }
    return sum;
}
FUNCTION by_pointers(void) {
    long sum = 0;
    for (struct node* at = nodes; at; at = at->next) ++sum;
    return sum;
}
int main(void) {
    for (unsigned i = 0, at = 0; i + 1 < NODES; ++i, at = (at * 5 + 1) % NODES)
        nodes[at].next = &nodes[(at * 5 + 1) % NODES];
    return (by_lines() + by_numbers() + by_columns() + by_odd_columns() + by_pointers()) != NODES;
}
"""
MACHINE = """
machine: flat
cores: threads
line: 64
caches:
  D1: {level: 1, holds: data, of: core, size: 32K, ways: 8}
  LL: {level: 2, holds: both, of: machine, size: 8M, ways: 16, latency: 10}
memory: 100
"""
STRIDED = {"by_lines": 192, "by_numbers": 4, "by_columns": 4096, "by_odd_columns": 4160}
DISTANCES = (1, 2, 4, 8, 16, 32, 64)


class Prefetch(unittest.TestCase):
    def compiled(self, folder, ahead):
        source, program = folder / "walk.c", folder / f"walk{ahead}"
        source.write_text(SOURCE)
        built = run(["gcc", "-O1", "-g", "-fno-tree-vectorize", f"-DAHEAD={ahead}", source, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def by_function(self, program, *options, plugin):
        """The totals of each function, by event."""
        out = self.folder / "events"
        result = profile([program], *options, plugin=plugin, out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.text = result.stderr
        events = read_events(out)
        return {name: dict(zip(events.events, counts)) for name, counts in events.functions.items()}

    @needs("gcc")
    def test_predictions_come_true(self):
        self.folder = support.temporary_folder(self)
        program = self.compiled(self.folder, 0)
        predicted = self.by_function(program, plugin="prefetch")
        for name, stride in STRIDED.items():
            self.assertRegex(self.text, rf"100% +{stride} +\d+%.* \({name}\)")
        machine = self.folder / "flat.yaml"
        machine.write_text(MACHINE)
        before = self.by_function(program, f"--machine={machine}", plugin="cache")
        for name in STRIDED:
            self.assertEqual(predicted[name]["PMiss"], before[name]["D1mr"], name)
            self.assertGreater(predicted[name]["Pf1"], 0.98 * predicted[name]["PMiss"])
        for ahead in (1, 2, 4, 8, 32):
            after = self.by_function(self.compiled(self.folder, ahead), f"--machine={machine}",
                                     plugin="cache")
            for name in STRIDED:
                with self.subTest(name, ahead=ahead):
                    fewer = before[name]["D1mr"] - after[name]["D1mr"]
                    # The first prefetch of numbers loads the line of the first number.
                    at_once = 1 if name == "by_numbers" and ahead < 16 else 0
                    self.assertEqual(fewer, predicted[name][f"Pf{ahead}"] + at_once)

    @needs("gcc")
    def test_known_answers(self):
        self.folder = support.temporary_folder(self)
        found = self.by_function(self.compiled(self.folder, 0), plugin="prefetch")
        for ahead in DISTANCES:
            self.assertEqual(found["by_lines"][f"Pf{ahead}"], 4096 - ahead)
            self.assertEqual(found["by_numbers"][f"Pf{ahead}"], 4096 - -(-ahead // 16))
            self.assertEqual(found["by_pointers"][f"Pf{ahead}"], 0)
        # A column begins anew 64 times. Its lines are in one set of 8 ways.
        self.assertEqual([found["by_columns"][f"Pf{ahead}"] for ahead in DISTANCES],
                         [64 * 255, 64 * 254, 0, 0, 0, 0, 0])
        self.assertGreaterEqual(found["by_pointers"]["PMiss"], 4096)

    def test_options(self):
        self.folder = support.temporary_folder(self)
        for geometry, said in (("1000", "--D1"), ("32768,8,63", "--D1")):
            result = profile([PROGRAMS / "list"], f"--D1={geometry}", plugin="prefetch",
                             out=self.folder / "events")
            self.assertEqual(result.returncode, 125)
            self.assertIn(said, result.stderr)


if __name__ == "__main__":
    unittest.main()
