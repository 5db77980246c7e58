#!/usr/bin/env python3
"""Profilers against recorded traces that are kept: assay check-plugin --trace, and what they count.

The traces, and the counts, are made by tests/golden/make.
"""

import importlib.machinery
import importlib.util
import json
import os
import unittest

from support import ASSAY, BUILD, PLUGINS, ROOT, run, temporary_folder

GOLDEN = ROOT / "tests" / "golden"
TRACE = GOLDEN / "callers.trace"
# What careless.so does wrong that a recorded trace shows: the function that is named, and words.
CARELESS = {
    "two-lines": ("vp_description", "one line only"),
    "early-file": ("vp_prof_init", "creates a file"),
    "old-state": ("vp_init", "does not start from scratch"),
    "keeps-records": ("vp_prof_process", "a pointer of an earlier call"),
    "beyond-end": ("vp_prof_process", "beyond the end of an array"),
    "writes": ("vp_prof_process", "changes the trace"),
    "other-pc": ("vp_prof_process", "at pc 0x1, which is not the address of an instruction"),
    "other-event": ("vp_prof_process", "a sample of event 1, but vp_events declares 1"),
    "endless": ("vp_finish", "goes on: return 0"),
    "half-line": ("vp_summary", "add a newline"),
    "trusting": ("vp_options", 'with --depth="18446744073709551615", it crashes with signal 11'),
}


def made_by():
    """tests/golden/make as a module."""
    loader = importlib.machinery.SourceFileLoader("make", str(GOLDEN / "make"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make", loader))
    loader.exec_module(module)
    return module


def check(trace, *plugins, **environment):
    return run([ASSAY, "check-plugin", f"--trace={trace}", *plugins],
               env={**os.environ, **environment})


class Golden(unittest.TestCase):
    def test_counts_are_as_ever(self):
        make = made_by()
        for program, counts in json.loads((GOLDEN / "counts.json").read_text()).items():
            self.assertEqual(set(counts), set(make.PROFILERS))
            for profiler, wanted in counts.items():
                with self.subTest(program=program, profiler=profiler):
                    trace = GOLDEN / f"{program}.trace"
                    self.assertLess(trace.stat().st_size, 10_000)
                    self.assertEqual(make.counts_of(BUILD, profiler, trace), wanted)

    def test_good_profilers_pass(self):
        plugins = [PLUGINS / "null.so", BUILD / "examples" / "allocation_misses.so",
                   BUILD / "sdk" / "my_profiler.so", *sorted((BUILD / "plugins").glob("*/*.so"))]
        plugins = [plugin for plugin in plugins if plugin.stem not in ("classic", "python")]
        *others, smallest = made_by().PROGRAMS
        checked = [(smallest, plugins), *((program, plugins[:2]) for program in others)]
        for program, chosen in checked:
            result = check(GOLDEN / f"{program}.trace", *chosen)
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
            self.assertEqual(result.stdout.count("keeps to the rules"), len(chosen))

    def test_each_broken_rule_is_named(self):
        plugin = PLUGINS / "careless.so"
        for rule, (function, words) in CARELESS.items():
            # It takes several buffers.
            trace = GOLDEN / "matrix.trace" if rule == "keeps-records" else TRACE
            with self.subTest(rule):
                result = check(trace, plugin, ASSAY_CARELESS=rule)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertTrue([line for line in result.stdout.splitlines()
                                 if line.startswith(f"{plugin}: {function}: ") and words in line],
                                result.stdout)

    def test_what_was_not_asked_for(self):
        """It counts all records, and so those of others, and of what its filter drops."""
        result = check(TRACE, PLUGINS / "careless.so")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("vp_prof_process: counts records that it has not requested: beside another "
                      "profiler, the same trace has different totals", result.stdout)

    def test_a_crash_names_the_function(self):
        for function in ("vp_init", "vp_prof_init", "vp_prof_process", "vp_finish", "vp_release"):
            with self.subTest(function):
                result = check(TRACE, PLUGINS / "crash.so", ASSAY_CRASH_IN=function)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn(f"crash.so: {function}: ", result.stdout)
                self.assertIn("crashes with signal 11", result.stdout)

    def test_several_processes(self):
        trace = temporary_folder(self) / "trace"
        recorded = run([ASSAY, "record", "-q", "-o", trace, "--", "sh", "-c", "true | cat; exec true"])
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        result = check(trace, BUILD / "sdk" / "my_profiler.so", "opcode_mix")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def refused(self, trace, plugin, *words):
        result = check(trace, plugin)
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_what_a_trace_does_not_have(self):
        self.refused(TRACE, BUILD / "examples" / "silent_stores.so", str(TRACE),
                     "silent_stores.so cannot be checked", "does not have values that are stored",
                     "--capture=default,values=stores")

    def test_damage_is_one_line(self):
        folder = temporary_folder(self)
        plugin = BUILD / "sdk" / "my_profiler.so"
        self.refused(folder / "none", plugin, "none", "No such file")
        whole = TRACE.read_bytes()
        damaged = folder / "damaged"
        for cut in (0, 10, 16, 100, len(whole) // 2, len(whole) - 1):
            with self.subTest(cut=cut):
                damaged.write_bytes(whole[:cut])
                self.refused(damaged, plugin, str(damaged))
        for at in range(20, len(whole), len(whole) // 10):
            with self.subTest(at=at):
                damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
                self.refused(damaged, plugin, str(damaged))

    def test_other_versions_are_refused(self):
        other = temporary_folder(self) / "other"
        whole = TRACE.read_bytes()
        for given, words in ((0, "is no trace"), (3, "is a trace of version 3, and this assay "
                                                     "reads up to 2")):
            other.write_bytes(whole[:8] + given.to_bytes(4, "little") + whole[12:])
            self.refused(other, "cache", words)

    def test_version_1_has_the_counts_of_version_2(self):
        """The kept traces are of version 1. Written again, they are of the present version."""
        make = made_by()
        folder = temporary_folder(self)
        for program, counts in json.loads((GOLDEN / "counts.json").read_text()).items():
            old, new = GOLDEN / f"{program}.trace", folder / f"{program}.trace"
            result = run([ASSAY, "trace", "--format=trace", "-o", new, old])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([path.read_bytes()[8] for path in (old, new)], [1, 2])
            for profiler, wanted in counts.items():
                with self.subTest(program=program, profiler=profiler):
                    self.assertEqual(make.counts_of(BUILD, profiler, new), wanted)


if __name__ == "__main__":
    unittest.main()
