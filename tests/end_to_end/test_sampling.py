#!/usr/bin/env python3
"""Estimates from bursts (--sample), against the counts of the whole run."""

import re
import unittest

import support
from support import ASSAY, GEOMETRY, PROGRAMS, profile, read_events

PHASES = PROGRAMS / "phases"
OFTEN = "--sample=5k/50k"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.out = self.folder / "events"

    def profiled(self, *options, program, plugin="cache"):
        options = ["-q", *(GEOMETRY if plugin == "cache" else []), *options]
        result = profile(program, *options, plugin=plugin, out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return read_events(self.out)

    def totals(self, *options, program):
        events = self.profiled(*options, program=program)
        return dict(zip(events.events, events.summary))

    def assert_near(self, estimate, whole, part, what=""):
        self.assertLess(abs(estimate - whole), part * whole, f"{what}: {estimate} for {whole}")


class Estimates(Case):
    def test_cache(self):
        whole = self.totals(program=[PHASES])
        estimate = self.totals(OFTEN, program=[PHASES])
        self.assertEqual(set(whole) - set(estimate), {"ILmr", "DLmr", "DLmw"})
        self.assertEqual(estimate["Ir"], whole["Ir"])
        for event in ("Dr", "D1mr", "Dw"):
            self.assert_near(estimate[event], whole[event], 0.05, event)

    def test_short_bursts(self):
        """What is executed once in a run is not rounded up or down each time."""
        whole = self.totals("--cache-sim=no", program=["true"])
        estimate = self.totals("--cache-sim=no", "--sample=1k/1500", program=["true"])
        self.assertEqual(estimate, whole)

    def test_branches_beside_warm_ups(self):
        whole = self.totals("--branch-sim=yes", program=[PHASES])
        estimate = self.totals("--branch-sim=yes", OFTEN, program=[PHASES])
        for event in ("Bc", "Bcm"):
            self.assert_near(estimate[event], whole[event], 0.05, event)

    def test_the_program_ends_in_a_warm_up(self):
        """What is mispredicted after the last burst counts as little as it is executed."""
        events = self.profiled("--sample=1k/100k", program=["true"], plugin="branch,used_bytes")
        for counts in events.functions.values():
            row = dict(zip(events.events, counts))
            self.assertLessEqual(row["Bcm"], row["Bc"])
            self.assertLessEqual(row["Bim"], row["Bi"])

    def test_a_run_is_like_another(self):
        def text():
            self.profiled(OFTEN, "--dump-instr=yes", program=[PHASES])
            return re.sub(r"#! pid \d+", "", self.out.read_text())
        self.assertEqual(text(), text())

    def test_instructions_are_exact(self):
        """However translated code is left: signals, faults, code that changes, flushes."""
        whole = self.totals("--cache-sim=no", program=[PHASES])["Ir"]
        for options in (["--stress=yes"], ["--sample=1k/3k"], ["--sample=1k/1M"]):
            with self.subTest(options):
                found = self.totals("--cache-sim=no", OFTEN, *options, program=[PHASES])["Ir"]
                self.assert_near(found, whole, 0.0005)

    def test_programs_behave(self):
        for name in ("signals", "generated_code", "thread_signals", "exceptions", "jumps"):
            with self.subTest(name):
                program = [PROGRAMS / name]
                native = support.run(program)
                for stress in ("no", "yes"):
                    result = profile(program, "-q", "--sample=1k/5k", f"--stress={stress}",
                                     "--trace-children=no", plugin="bbv,cache",
                                     out=self.folder / "%p")
                    self.assertEqual((result.returncode, result.stdout),
                                     (native.returncode, native.stdout), result.stderr)

    def test_threads(self):
        whole = self.totals("--cache-sim=no", program=[PHASES, "threads"])
        estimate = self.totals("--cache-sim=no", OFTEN, program=[PHASES, "threads"])
        self.assert_near(estimate["Ir"], whole["Ir"], 0.001)

    def test_threads_are_made_while_others_warm_up(self):
        """Who does not warm up has no records then, and still is told of threads."""
        result = profile([PHASES, "threads"], *GEOMETRY, "--sample=2k/8k",
                         plugin="cache,effective_address", out=self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("lost", result.stderr)
        self.assertIn("Refs", read_events(self.out).events)

    def test_children(self):
        def files(*options):
            for old in self.folder.glob("child*"):
                old.unlink()
            result = profile([PHASES, "children"], "-q", "--cache-sim=no", *options,
                             out=self.folder / "child.%p")
            self.assertEqual(result.returncode, 0, result.stderr)
            return sorted(read_events(path).summary[0] for path in self.folder.glob("child*"))
        whole, estimate = files(), files(OFTEN)
        self.assertEqual((len(whole), len(estimate)), (2, 2))
        for one, other in zip(estimate, whole):
            self.assert_near(one, other, 0.001)

    def test_a_part_of_the_program(self):
        for part in ("--toggle=walk", "--toggle=compute"):
            with self.subTest(part):
                whole = self.totals("--cache-sim=no", part, program=[PHASES])
                estimate = self.totals("--cache-sim=no", part, OFTEN, program=[PHASES])
                self.assert_near(estimate["Ir"], whole["Ir"], 0.001)

    def test_intervals(self):
        def vectors(*options):
            vectors = self.folder / "bb"
            events = self.profiled("--interval-size=200000", f"--bb-out-file={vectors}", *options,
                                   plugin="bbv", program=[PHASES])
            lines = [line for line in vectors.read_text().splitlines() if line.startswith("T")]
            sums = [sum(int(pair.split(":")[2]) for pair in line[1:].split()) for line in lines]
            return sums, events.summary[0], vectors.read_text()
        whole, instructions, text = vectors()
        estimate, estimated, sampled_text = vectors(OFTEN)
        self.assertEqual(len(estimate), len(whole))
        self.assertEqual(set(estimate), {200000})
        self.assert_near(estimated, instructions, 0.0005)
        said = re.findall(r"Total instructions: (\d+)", text + sampled_text)
        self.assertEqual(len(said), 2)
        self.assert_near(int(said[1]), int(said[0]), 0.00001)


class Statements(Case):
    def test_of_what_is_estimated(self):
        result = profile([PHASES], *GEOMETRY, OFTEN, out=self.out)
        self.assertIn("Sampled: 5,000 of every 50,000 instructions", result.stderr)
        self.assertRegex(result.stderr, r"Error, 95 % confidence: Ir 0.0 %, I1mr .*, Dr \d+\.\d %")
        sampled, error = [line for line in read_events(self.out).descriptions
                          if line.startswith(("Sampled", "Error"))]
        self.assertIn("counts are estimates, multiplied by", sampled)
        self.assertIn("D1mr", error)
        shown = support.run([ASSAY, "annotate", self.out]).stdout
        self.assertIn("counts are estimates, multiplied by", shown)
        self.assertIn("95 % confidence", shown)

    def test_sums_say_so(self):
        self.profiled("--cache-sim=no", program=["true"])
        whole = self.out.rename(self.folder / "whole")
        self.profiled("--cache-sim=no", "--sample=2k/20k", program=["true"])
        result = support.run([ASSAY, "merge", "-o", self.folder / "sum", whole, self.out])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(any(line.startswith("Sampled: some")
                            for line in read_events(self.folder / "sum").descriptions))

    def test_error_is_as_large_as_it_is_said_to_be(self):
        for plugin, options, told in (
                ("cache", [], ("Dr", "Dw")),
                ("used_bytes", ["--cache=16384,4,64", "--instructions=yes"], ("ReadB",)),
                ("effective_address", [], ("Refs", "StrC")),
                ("classic", [], ("Vals", "Stores"))):
            whole = self.profiled(*options, program=[PHASES], plugin=plugin)
            events = self.profiled("--sample=2k/100k", *options, program=[PHASES], plugin=plugin)
            said = {name: float(part) for name, part in
                    re.findall(r"(\w+) ([\d.]+) %", self.errors(events))}
            exact = dict(zip(whole.events, whole.summary))
            for event in told:
                with self.subTest(plugin, event=event):
                    off = abs(dict(zip(events.events, events.summary))[event] / exact[event] - 1)
                    self.assertLess(100 * off, 2 * said[event] + 0.1)
                    self.assertLess(said[event], 60)

    def test_summaries_and_reports_are_estimates_too(self):
        report = self.folder / "report"
        for plugin, option, pattern, event in (
                ("used_bytes", "--usage-report", r"read: +([\d,]+) B", "ReadB"),
                ("effective_address", "--address-report", r"references: +([\d,]+)", "Refs")):
            with self.subTest(plugin):
                result = profile([PHASES], OFTEN, f"{option}={report}", plugin=plugin,
                                 out=self.out)
                events = read_events(self.out)
                counted = dict(zip(events.events, events.summary))[event]
                for text in (result.stderr, report.read_text()):
                    told = int(re.search(pattern, text)[1].replace(",", ""))
                    self.assert_near(told, counted, 0.01)

    def test_files_can_be_read(self):
        """Also where counts by calling context are rounded apart from those by line."""
        for sample in ("1k/3k", "1k/7k", "2k/9k", "5k/50k"):
            for plugin in ("used_bytes", "cache,used_bytes,classic"):
                with self.subTest(sample=sample, plugin=plugin):
                    self.profiled(f"--sample={sample}", "--dump-instr=yes", program=["ls", "/usr"],
                                  plugin=plugin)
                    read = support.run([ASSAY, "annotate", self.out])
                    self.assertEqual((read.returncode, read.stderr), (0, ""))

    def errors(self, events):
        return next(line for line in events.descriptions if line.startswith("Error"))

    def test_why_an_error_is_not_known(self):
        for plugin, *reasons in (
                ("used_bytes", "UsedB unknown (uses after a burst are not seen)",
                 "AgainB unknown (fetches between bursts are not seen)"),
                ("effective_address", "Lines not scaled", "Pages not scaled",
                 "FShr unknown (bursts show part of what threads share)"),
                ("classic",)):
            with self.subTest(plugin):
                error = self.errors(self.profiled(OFTEN, program=[PHASES], plugin=plugin))
                for reason in reasons:
                    self.assertIn(reason, error)
                self.assertNotRegex(error, r"unknown(?! \()")

    def test_no_burst(self):
        result = profile(["true"], "--sample=1M/100G", out=self.out)
        self.assertEqual(result.returncode, 0)
        self.assertIn("no burst of --sample was reached", result.stderr)
        result = profile(["sh", "-c", "true; /bin/true; /bin/true; :"], "--sample=1M/100G",
                         out=self.folder / "%p")
        self.assertEqual(result.stderr.count("no burst"), 1, result.stderr)
        self.assertTrue(any("incomplete no burst" in line
                            for line in read_events(self.out).remarks))

    def test_unusable_values(self):
        for option in ("--sample=1", "--sample=0/100", "--sample=100/1", "--sample=1x/100",
                       "--sample=10/10M", "--sample=", "--sample=5/5"):
            with self.subTest(option):
                result = profile(["true"], option, out=self.out)
                self.assertEqual(result.returncode, 125)
                self.assertIn("--sample", result.stderr)

    def test_what_cannot_be_combined(self):
        for options, word in ((["--from-instruction=5"], "--from-instruction"),
                              (["--plugin=bbv", "--interval-size=1000000"], "intervals of")):
            with self.subTest(options):
                result = profile(["true"], "--sample=1/100", *options, out=self.out)
                self.assertEqual(result.returncode, 125)
                self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main()
