#!/usr/bin/env python3
"""assay check-plugin: good profilers pass, and each broken rule is named once, with a remedy."""

import os
import unittest

from support import ASSAY, BUILD, PLUGINS, ROOT, needs, run, temporary_folder

# What careless.so does wrong: the function that is named, and words of the line.
CARELESS = {
    "changing-name": ("vp_events", "the same at every call"),
    "two-lines": ("vp_description", "one line only"),
    "old-state": ("vp_init", "does not start from scratch"),
    "early-file": ("vp_prof_init", "creates a file"),
    "exit": ("vp_release", "ends the process with status 3"),
    "no-count": ("vp_events", "does not set *count"),
    "null-table": ("vp_events", "returns NULL for a table of 1 rows"),
    "bad-default": ("vp_option_table", 'has "deep" as the default of depth'),
    "long-part": ("host->part", "is given a name of 299 bytes: with more than 256"),
    "bad-profiler": ("vp_option_table", 'has "maybe" as the default of beside'),
    "bad-file": ("vp_option_table", "has a default for log that is not the name of a file: "),
    "twice": ("vp_option_table", "has the option depth twice"),
    "many-events": ("vp_events", "declares 257 events: a file holds at most 256"),
    "nameless-figure": ("vp_derived", "has a figure without a name"),
    "two-figures": ("vp_derived", "has the figure rate twice"),
    "broken-figure": ("vp_derived", "one line only"),
    "broken-unit": ("vp_derived", "one line only"),
    "two-lists": ("vp_value_lists", "has the list old twice"),
    "latin-1": ("vp_description", 'has "br\\xfccken", which is not UTF-8'),
    "latin-1-unit": ("vp_events", "which is not UTF-8"),
    "latin-1-summary": ("vp_summary", "which is not UTF-8"),
    "dashes": ("vp_option_table", "has the option --depth: leave its dashes out"),
    "reserved-option": ("vp_option_table", "`reserved` of depth is 1"),
    "reserved-sample": ("vp_prof_process", "a sample whose `reserved` is 1"),
    "silent": ("vp_options", "fails without a reason: call host->error"),
    "trusting": ("vp_options", 'with --depth="18446744073709551615", it crashes with signal 11'),
    "null-spec": ("vp_prof_init", "returns NULL without a reason"),
    "filter": ("vp_prof_init", "lines of 48 bytes: not a power of two"),
    "keeps-records": ("vp_prof_process", "a pointer of an earlier call"),
    "keeps-table": ("vp_prof_process", "a pointer of an earlier call"),
    "beyond-end": ("vp_prof_process", "beyond the end of an array"),
    "writes": ("vp_prof_process", "changes the trace"),
    "thread-index": ("vp_prof_process", "extreme addresses, counts, kinds and thread numbers"),
    "other-pc": ("vp_prof_process", "at pc 0x1, which is not the address of an instruction"),
    "other-event": ("vp_prof_process", "a sample of event 1, but vp_events declares 1"),
    "context": ("vp_prof_process", "a context without having asked for calls"),
    "weightless": ("vp_prof_process", "a value with a weight of 0"),
    "null-samples": ("vp_prof_process", "returns 1 and stores NULL in *samples"),
    "empty-run": ("vp_finish", "in a run in which nothing happens, it crashes"),
    "endless": ("vp_finish", "goes on: return 0"),
    "half-line": ("vp_summary", "add a newline"),
    "failing-totals": ("vp_totals", "fails: a run then loses the profiler"),
    "totals-before": ("vp_totals", "writes before the beginning of `totals`"),
    "totals-beyond": ("vp_totals", "in a run with --sample, it crashes with signal 11"),
    "no-such-event": ("host->no_error", "is called for event 1, but vp_events declares 1"),
    "half-series": ("host->series", "is given the series hills with an axis without a name"),
    "null-text": ("vp_format", "returns NULL for a value"),
}
# Faults that do not hide each other, which one profiler has at once. The others are alone.
TOGETHER = (
    "changing-name two-lines old-state early-file bad-default long-part bad-profiler "
    "bad-file twice many-events nameless-figure broken-unit two-lists latin-1-unit "
    "latin-1-summary reserved-option reserved-sample trusting filter thread-index "
    "other-pc context empty-run failing-totals half-series null-text",
    "exit no-count two-figures latin-1 dashes silent keeps-records keeps-table "
    "beyond-end writes totals-beyond",
    "null-table broken-figure null-spec",
    "other-event endless half-line totals-before no-such-event",
)


def check(*plugins, **environment):
    return run([ASSAY, "check-plugin", *plugins], env={**os.environ, **environment})


class CheckPlugin(unittest.TestCase):
    def test_good_profilers_pass(self):
        plugins = [PLUGINS / f"{name}.so" for name in ("careless", "counts", "contexts", "crash",
                                                       "null")]
        result = check("opcode_mix", *plugins, BUILD / "tests" / "abi" / "version_1.so")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertEqual(result.stdout.count("keeps to the rules"), 2 + len(plugins))

    def test_there_is_no_more_room_for_parts_than_in_a_run(self):
        result = check(PLUGINS / "careless.so", ASSAY_CARELESS="parts")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_the_shipped_ones_pass(self):
        plugins = sorted((BUILD / "plugins").glob("*/*.so"))
        self.assertGreaterEqual(len(plugins), 12)
        result = check(*(plugin for plugin in plugins if plugin.stem != "python"))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        # A class of a Python program takes part in the checks.
        self.assertIn("this profiler needs a class", check("python").stdout)

    def test_policies(self):
        good = [PLUGINS / f"{name}.so" for name in ("own_policy", "own_policy_2", "policy_version_1")]
        result = check(*good)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertEqual(result.stdout.count("keeps to the rules"), 3)
        for told, words in (("kill hit", "hit: with random references, it crashes with signal 9"),
                            ("end victim", "victim: with random references, it ends the process"),
                            ("loop fill", "fill: with random references, it does not return within 2 s"),
                            ("kill reference", "reference: with random references, it crashes"),
                            ("kill destroy", "destroy: with random references, it crashes"),
                            ("way victim", "victim: returns way 4294967290 of 1"),
                            ("differ victim", "victim: two objects decide differently"),
                            ("room reference", "reference: returns 9 lines where there is room for 8")):
            with self.subTest(told):
                result = check("--timeout=2", PLUGINS / "own_policy.so", ASSAY_POLICY=told)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn(words, result.stdout)

    def test_each_broken_rule_is_named(self):
        plugin = PLUGINS / "careless.so"
        groups = [group.split() for group in TOGETHER]
        together = " ".join(TOGETHER).split()
        groups += [[rule] for rule in CARELESS if rule not in together]
        for rules in groups:
            result = check(plugin, ASSAY_CARELESS=",".join(rules))
            self.assertEqual(result.returncode, 1, result.stdout)
            lines = [line for line in result.stdout.splitlines() if "advice:" not in line]
            self.assertEqual(len(set(lines)), len(lines), f"said twice: {result.stdout}")
            for rule in rules:
                function, words = CARELESS[rule]
                with self.subTest(rule):
                    self.assertTrue([line for line in lines if words in line and
                                     line.startswith(f"{plugin}: {function}: ")], result.stdout)

    def test_a_crash_names_the_function(self):
        for function in ("vp_init", "vp_name", "vp_description", "vp_events", "vp_derived",
                         "vp_option_table", "vp_options", "vp_prof_init", "vp_prof_process",
                         "vp_finish", "vp_summary", "vp_prof_release", "vp_release", "vp_totals"):
            with self.subTest(function):
                result = check(PLUGINS / "crash.so", ASSAY_CRASH_IN=function)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn("crashes with signal 11", result.stdout)
                self.assertIn(f"crash.so: {function}: ", result.stdout)

    def test_what_refuses_to_start_is_not_said_to_be_good(self):
        for function in ("vp_init", "vp_options", "vp_prof_init"):
            with self.subTest(function):
                plugin = PLUGINS / "crash.so"
                result = check(plugin, ASSAY_CRASH_IN=function, ASSAY_CRASH_BY="fail")
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertEqual(result.stdout, f"{plugin}: {function}: refuses to start: told to "
                                                "fail; nothing more could be checked\n")

    def test_what_fails_in_a_run(self):
        for function in ("vp_prof_process", "vp_finish"):
            with self.subTest(function):
                plugin = PLUGINS / "crash.so"
                result = check(plugin, ASSAY_CRASH_IN=function, ASSAY_CRASH_BY="fail")
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertEqual(result.stdout, f"{plugin}: {function}: fails in an ordinary run "
                                                "without options: told to fail; a run then loses the "
                                                "profiler and its columns\n")

    def test_what_does_not_return_is_given_up_at_once(self):
        for how, function in (("hang", "vp_options"), ("unstoppable", "vp_prof_process"),
                              ("hang", "vp_totals")):
            with self.subTest(how=how, function=function):
                plugin = PLUGINS / "crash.so"
                result = check("--timeout=4", plugin, ASSAY_CRASH_IN=function, ASSAY_CRASH_BY=how)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertEqual(len(result.stdout.splitlines()), 1, result.stdout)
                self.assertIn(f"{plugin}: {function}: ", result.stdout)
                self.assertIn("does not return within 4 s", result.stdout)
                self.assertIn("nothing more was checked", result.stdout)

    @needs("gcc")
    def test_with_address_sanitizer(self):
        runtime = run(["gcc", "-print-file-name=libasan.so"]).stdout.strip()
        if not os.path.isabs(runtime):
            self.skipTest("needs gcc's AddressSanitizer")
        plugin = temporary_folder(self) / "careless.so"
        built = run(["gcc", "-std=c99", "-D_GNU_SOURCE", "-g", "-fsanitize=address", "-shared", "-fPIC",
                     f"-I{ROOT / 'include'}", ROOT / "tests" / "plugins" / "careless.c", "-o", plugin])
        self.assertEqual(built.returncode, 0, built.stderr)
        environment = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
        good = check(plugin, ASSAY_CARELESS="", **environment)
        self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
        bad = check(plugin, ASSAY_CARELESS="two-far", **environment)
        self.assertIn("global-buffer-overflow", bad.stderr)
        self.assertIn("vp_options", bad.stdout)
        self.assertEqual(check(PLUGINS / "careless.so", ASSAY_CARELESS="two-far").returncode, 0)

    def test_exceptions(self):
        result = check(PLUGINS / "garbage.so", ASSAY_GARBAGE="throw")
        self.assertIn("vp_prof_process: throws a C++ exception", result.stdout)
        result = check(PLUGINS / "garbage.so", ASSAY_GARBAGE="totals-throw")
        self.assertIn("vp_totals: throws a C++ exception", result.stdout)

    def test_what_is_no_profiler(self):
        for name, words in {"no_table": "does not export", "no_prof_init": "has no vp_prof_init",
                            "wrong_abi": "version 1001", "wrong_size": "size is 16"}.items():
            with self.subTest(name):
                result = check(PLUGINS / f"{name}.so")
                self.assertEqual(result.returncode, 1)
                self.assertEqual(len(result.stdout.splitlines()), 1, result.stdout)
                self.assertIn(words, result.stdout)
        missing = check("/nonexistent/mine.so")
        self.assertEqual(missing.returncode, 1, missing.stdout)
        self.assertIn("No such file", missing.stdout)
        self.assertEqual(check().returncode, 125)


if __name__ == "__main__":
    unittest.main()
