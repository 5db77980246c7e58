#!/usr/bin/env python3
"""Several programs on one machine: assay replay A.trace B.trace."""

import unittest

import support
from support import ASSAY, read_events, run

# Cores with a first level each, and one last level of 128 lines.
MACHINE = """machine: small
cores: 3
caches:
  D1: {level: 1, holds: data, of: core, size: 1K, ways: 2}
  LL: {level: 2, holds: data, of: machine, size: 8K, ways: 16}
"""
# Reads so many lines in turn, so many times. The lines of all programs have the same addresses.
READER = """
static char lines[64 * 64] __attribute__((aligned(4096)));
void _start(void) {
    for (int round = 0; round < ROUNDS; ++round)
        for (int i = 0; i < LINES; ++i) (void)*(volatile char*)&lines[64 * i];
    __asm__ volatile("syscall" : : "a"(231), "D"(0));
}
"""


class SharedMachine(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.machine = self.folder / "machine.yaml"
        self.machine.write_text(MACHINE)

    def traced(self, name, lines, rounds):
        (self.folder / f"{name}.c").write_text(READER)
        program = self.folder / name
        built = run(["gcc", "-O1", "-g", "-static", "-nostdlib", f"-DLINES={lines}",
                     f"-DROUNDS={rounds}", "-o", program, self.folder / f"{name}.c"])
        self.assertEqual(built.returncode, 0, built.stderr)
        trace = self.folder / f"{name}.trace"
        recorded = run([ASSAY, "record", "-q", "-o", trace, "--", program])
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        return trace

    def replayed(self, *traces, options=()):
        """The counts of each program, as dictionaries."""
        for old in self.folder.glob("out.*"):
            old.unlink()
        result = run([ASSAY, "replay", "-q", "--plugin=cache", f"--machine={self.machine}", *options,
                      "-o", self.folder / "out.%n", *traces])
        self.assertEqual(result.returncode, 0, result.stderr)
        found = []
        for trace in traces:
            [file] = [path for path in self.folder.glob("out.*") if trace.stem in path.name]
            events = read_events(file)
            self.assertEqual(list(events.functions), ["_start"])
            found.append(dict(zip(events.events, events.totals())))
        return found

    def test_working_sets_that_fit_alone_only(self):
        """Each program uses 64 lines, half of the last level: 128 lines. Three do not fit."""
        rounds = 20
        traces = [self.traced(name, 64, rounds) for name in ("first", "second", "third")]
        alone = [self.replayed(trace)[0] for trace in traces]
        two = self.replayed(*traces[:2], options=["--schedule=fair:1"])
        three = self.replayed(*traces, options=["--schedule=fair:1"])
        for counts in alone + two:
            self.assertEqual(counts["DLmr"], 64)
        # Least recently used lines: all are evicted before they are used again.
        for counts in three:
            self.assertEqual(counts["DLmr"], 64 * rounds)
        # Turns that are longer than the programs run them one after the other.
        for counts in self.replayed(*traces, options=["--schedule=fair:1M"]):
            self.assertEqual(counts["DLmr"], 64)
        for event in ("Ir", "Dr", "D1mr"):
            self.assertEqual([counts[event] for counts in alone], [counts[event] for counts in three])

    def test_lines_of_other_programs_do_not_match(self):
        """Not even if all addresses are equal."""
        traces = [self.traced(name, 16, 1) for name in ("first", "second")]
        for counts in self.replayed(*traces):
            self.assertEqual(counts["DLmr"], 16)

    def test_a_trace_twice(self):
        trace = self.traced("first", 16, 2)
        result = run([ASSAY, "replay", "-q", "--plugin=cache", f"--machine={self.machine}",
                      "-o", self.folder / "twice", trace, trace])
        self.assertEqual(result.returncode, 0, result.stderr)
        files = sorted(self.folder.glob("twice*"))
        self.assertEqual(len(files), 2)
        self.assertEqual(*[read_events(file).functions for file in files])

    def test_refusals(self):
        trace = self.traced("first", 16, 1)
        both = self.folder / "both"
        run([ASSAY, "record", "-q", "-o", both, "--", "sh", "-c", "/bin/true; exec /bin/true"])
        sampled = self.folder / "sampled"
        run([ASSAY, "record", "-q", "--sample=10/100", "--warm-up=0", "-o", sampled, "--",
             self.folder / "first"])
        mapped = self.folder / "mapped.yaml"
        mapped.write_text(MACHINE + "page: mapped\ntlbs:\n  DTLB: {level: 1, entries: 16, ways: 4}\n")
        for words, said in ((["--contexts", trace, trace], "--contexts cannot be combined"),
                            ([f"--machine={mapped}", trace, trace], "leave page: mapped out"),
                            (["--sample=1/100", trace, trace], "--sample cannot be combined"),
                            ([trace, both], "assay trace --format=trace --pid="),
                            ([trace, sampled], "cannot share a machine"),
                            ([trace] * 17, "at most 16")):
            result = run([ASSAY, "replay", "--plugin=cache", "-o", "/dev/null", *words])
            self.assertEqual(result.returncode, 125)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(said, result.stderr)


if __name__ == "__main__":
    unittest.main()
