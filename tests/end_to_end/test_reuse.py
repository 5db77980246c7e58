#!/usr/bin/env python3
"""Reuse distances: known answers, and the misses of the cache profiler's fully associative caches."""

import re
import unittest

import support
from support import PROGRAMS, profile, read_events

NODES = 8192  # of `list`, a line each
STEPS = 4 * NODES


class Reuse(unittest.TestCase):
    def profile(self, program, *options, plugin="reuse"):
        out = support.temporary_folder(self) / "events"
        result = profile([PROGRAMS / word for word in program.split()], *options, plugin=plugin,
                         out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.text = re.sub(r"^==\d+== ?", "", result.stderr, flags=re.MULTILINE)
        return read_events(out)

    def check_against_caches(self, program, sizes, line=64):
        """By function, at each size."""
        names = [f"M{size // 1024}K" for size in sizes]
        found = self.profile(program, "--sizes=" + ",".join(map(str, sizes)), f"--line-size={line}")
        self.assertEqual(found.events, ["Refs", *names, "New"])
        self.assertEqual(found.totals(), found.summary)
        for name, size in zip(names, sizes):
            shape = f"{size},{size // line},{line}"
            cache = self.profile(program, f"--I1=32768,8,{line}", f"--D1={shape}", f"--LL={shape}",
                                 plugin="cache")
            at = {event: cache.events.index(event) for event in ("D1mr", "D1mw")}
            column = found.events.index(name)
            self.assertEqual(
                {function: row[column] for function, row in found.functions.items() if row[column]},
                {function: row[at["D1mr"]] + row[at["D1mw"]]
                 for function, row in cache.functions.items()
                 if row[at["D1mr"]] + row[at["D1mw"]]}, f"{program}, {name}")

    def test_caches_of_the_same_size(self):
        self.check_against_caches("matrix", (1024, 4096, 32768))
        self.check_against_caches("list", (2048, 262144))
        self.check_against_caches("straddle", (1024,))
        self.check_against_caches("repeat", (1024, 2048), line=32)
        self.check_against_caches("scattered", (4096,))

    def test_a_hosted_program(self):
        self.check_against_caches("inlining", (1024, 16384))

    def test_threads(self):
        """Each has a stack of its own, as each has a cache."""
        self.check_against_caches("threads", (1024, 8192))

    def test_pointer_chase(self):
        """Every node again after all others."""
        events = self.profile("list", "--sizes=256K,1M")
        row = dict(zip(events.events, events.functions["chase"]))
        # Nearly all are back after the other nodes, and the lines of the stack that is used.
        self.assertEqual(row["New"], 0)
        self.assertGreaterEqual(row["M256K"], STEPS - NODES)
        self.assertEqual(row["M1M"], 0)
        self.assertRegex(self.text, r" 512KB +[\d,]+ +[\d.]+%\n +1MB ")

    def test_contexts_objects_and_threads_add_up(self):
        for option in ("--contexts", "--objects", "--threads"):
            events = self.profile("matrix", option, "--sizes=4K,64K")
            self.assertEqual(events.events, ["Refs", "M4K", "M64K", "New"])
            kind = "stack" if option == "--contexts" else "of"
            rows = [line.split() for line in events.remarks if line.startswith(f"#! {kind} ")]
            start = {"stack": None, "of": 4}[kind]
            sums = [0] * 4
            for words in rows:
                counts = words[start:] if start else \
                    re.split(r"(?:call|jumped|inlined|interrupted)=\S+ \S+", " ".join(words))[1].split()
                for i, count in enumerate(counts):
                    sums[i] += int(count)
            # The first instructions are in no context.
            for counted, total in zip(sums, events.summary):
                self.assertIn(total - counted, range(9), option)

    def test_sampled(self):
        events = self.profile("matrix", "--sample=1k/9k")
        self.assertEqual(events.events, ["Refs"])
        self.assertIn("no reuse distances with --sample", self.text)

    def test_options(self):
        for option, why in (("--sizes=3K", "--sizes=3K: use powers of two from 1K to 1G"),
                            ("--line-size=100", "--line-size=100: use a power of two"),
                            ("--line-size=8", "--line-size=8: use 16 to 4096")):
            result = profile([PROGRAMS / "matrix"], option, plugin="reuse")
            self.assertEqual(result.returncode, 125)
            self.assertIn(why, result.stderr)


if __name__ == "__main__":
    unittest.main()
