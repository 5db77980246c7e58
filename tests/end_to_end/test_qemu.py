#!/usr/bin/env python3
"""Programs under QEMU: of other processors, and of this one beside the native driver."""

import re
import shutil
import signal
import subprocess
import unittest

import support
from support import PROGRAMS, read_events

FOREIGN = support.ROOT / "tests" / "programs" / "foreign"
# Programs that do the same on every processor, without repeated string instructions: QEMU counts
# their iterations, and versions differ in how.
SAME_EVERYWHERE = ("atomics", "bits", "branches", "code_lines", "footprint", "frames", "indirect",
                   "many", "mixed", "modify", "recursion", "select", "series", "sort", "sse",
                   "straddle", "switch", "x87")


def totals(path):
    events = read_events(path)
    return dict(zip(events.events, events.totals()))


def of_function(path, name):
    events = read_events(path)
    return dict(zip(events.events, events.functions[name]))


@support.needs("clang", "ld.lld", "qemu-aarch64")
class KnownCounts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = support.temporary_folder_of_class(cls)

    def setUp(self):
        self.folder = support.temporary_folder(self)

    def build(self, target, *words):
        """One program for each target, which is built once."""
        program = self.programs / target
        if not program.exists():
            built = support.run(["clang", f"--target={target}", "-nostdlib", "-static", "-fuse-ld=lld",
                                 "-g", *words, "-o", program])
            self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def profiled(self, program, *options, status=7):
        out = self.folder / "out"
        ran = support.profile([program], *options, out=out)
        self.assertEqual(ran.returncode, status, ran.stderr)
        return out

    def test_aarch64(self):
        program = self.build("aarch64-linux-gnu", "-march=armv8.1-a", FOREIGN / "aarch64.S")
        out = self.profiled(program)
        counts = totals(out)
        self.assertEqual([counts[name] for name in ("Ir", "Dr", "Dw")], [8008, 3000, 2000])
        # The cells are in two lines, and the code in a third one.
        self.assertEqual([counts[name] for name in ("I1mr", "D1mr", "D1mw")], [1, 1, 1])
        self.assertEqual(of_function(out, "counted")["Ir"], 8004)

    def test_riscv64(self):
        program = self.build("riscv64-linux-gnu", "-march=rv64gc", "-mabi=lp64d",
                             FOREIGN / "riscv64.S")
        counts = totals(self.profiled(program))
        # The linker can make the call one instruction.
        self.assertIn(counts["Ir"], (6999 + 7 + 1, 6999 + 7 + 2))
        self.assertEqual([counts[name] for name in ("Dr", "Dw")], [2000, 2000])

    def test_without_plugin(self):
        """Asks for no more than QEMU's driver can give."""
        program = self.build("aarch64-linux-gnu", "-march=armv8.1-a", FOREIGN / "aarch64.S")
        out = self.folder / "out"
        ran = support.run([support.ASSAY, f"--out={out}", "--", program])
        self.assertEqual(ran.returncode, 7, ran.stderr)
        self.assertEqual(totals(out)["Ir"], 8008)
        # What it leads on to runs, too.
        self.assertNotIn("--objects", support.run([support.ASSAY, "summary", out]).stdout)

    def test_branches(self):
        program = self.build("aarch64-linux-gnu", "-march=armv8.1-a", FOREIGN / "aarch64.S")
        counts = totals(self.profiled(program, "--plugin=branch"))
        self.assertEqual(counts["Bc"], 1000)
        self.assertLess(counts["Bcm"], 15)

    def test_all_ways_to_count_agree(self):
        program = self.build("aarch64-linux-gnu", "-march=armv8.1-a", FOREIGN / "aarch64.S")
        expected = totals(self.profiled(program))
        for options in (["--level1=profiler"], ["--plugin=cache,effective_address"],
                        ["--plugin=cache,branch"], ["--plugin=cache,bbv", "--bb-out-file=/dev/null"]):
            with self.subTest(options=options):
                counts = totals(self.profiled(program, *options))
                for name, count in expected.items():
                    self.assertEqual(counts[name], count, name)

    def test_instructions_are_listed(self):
        program = self.build("aarch64-linux-gnu", "-march=armv8.1-a", FOREIGN / "aarch64.S")
        out = self.profiled(program, "--dump-instr=yes")
        listed = support.run([support.ASSAY, "list", "--full", out])
        self.assertRegex(listed.stdout, r"1,000 \(12\.5%\).*stp +x3, x4, \[x1, #0x20\]")
        self.assertRegex(listed.stdout, r"b\.ne .*<counted\+0xc>")

    def test_each_instruction_that_qemu_traces_is_counted(self):
        for target, start in (("aarch64-linux-gnu", "aarch64.S"), ("riscv64-linux-gnu", "riscv64.S")):
            qemu = "qemu-" + target.split("-")[0]
            program = self.build(target, *(["-march=armv8.1-a"] if "aarch64" in target else
                                           ["-march=rv64gc", "-mabi=lp64d"]), FOREIGN / start)
            help_text = support.run([qemu, "--help"]).stdout
            single = "-one-insn-per-tb" if "one-insn-per-tb" in help_text else "-singlestep"
            log = self.folder / "log"
            support.run([qemu, single, "-d", "nochain,exec", "-D", log, program])
            traced = sum(1 for line in log.read_text().splitlines() if line.startswith("Trace"))
            self.assertEqual(totals(self.profiled(program))["Ir"], traced)


@support.needs("aarch64-linux-gnu-gcc", "qemu-aarch64")
class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = support.temporary_folder_of_class(cls) / "threads"
        built = support.run(["aarch64-linux-gnu-gcc", "-g", "-O1", "-pthread",
                             FOREIGN / "threads.c", "-o", cls.program])
        assert built.returncode == 0, built.stderr

    def setUp(self):
        self.folder = support.temporary_folder(self)

    def profile(self, *words, options=()):
        return support.profile([self.program, *words], "-q", *options,
                               out=self.folder / "out.%p")

    def outs(self):
        return sorted(path for path in self.folder.glob("out.*"))

    def test_threads_and_a_child(self):
        for options in ((), ("--level1=profiler",), ("--threads",)):
            with self.subTest(options=options):
                for old in self.outs():
                    old.unlink()
                ran = self.profile(options=options)
                self.assertEqual((ran.returncode, ran.stdout), (4, "400000\n"), ran.stderr)
                work = sorted(of_function(path, "work")["Dr"] for path in self.outs())
                self.assertEqual(work, [1000, 400000])

    def test_the_same_counts_in_each_run(self):
        for _ in range(2):
            self.assertEqual(self.profile("d").returncode, 5)
        first, second = (read_events(path) for path in self.outs())
        self.assertEqual(first.functions, second.functions)

    def test_contexts_of_calls_that_longjmp_leaves(self):
        ran = self.profile("l", options=("--contexts",))
        self.assertEqual(ran.returncode, 6, ran.stderr)
        shown = support.run([support.ASSAY, "annotate", "--calls", "--full", "--threshold=0", "--show=Dr",
                             *self.outs()]).stdout
        of_work = re.search(r"((?:^.*< .*\n)+)^.*\* .*:work$", shown, re.M).group(1)
        callers = re.findall(r"^ *(\d+) .*:(\w+) \(1x\)$", of_work, re.M)
        self.assertEqual(sorted(callers), [("20", "leave"), ("30", "main")])

    def test_executed_programs(self):
        ran = self.profile("e")
        self.assertEqual(ran.returncode, 5, ran.stderr)
        self.assertEqual(len(self.outs()), 2)
        self.assertEqual(self.profile("n").returncode, 0)
        ran = self.profile("m")
        self.assertEqual(ran.returncode, 9, ran.stderr)

    def test_signal(self):
        ran = self.profile("a")
        self.assertEqual(ran.returncode, -signal.SIGABRT)
        self.assertEqual(len(self.outs()), 1)


class WaysOfControl(unittest.TestCase):
    """Exceptions, longjmp and signals: all processors have the same contexts."""

    def setUp(self):
        self.folder = support.temporary_folder(self)

    def build(self, compiler, level):
        program = self.folder / "ways"
        built = support.run([compiler, "-g", level, FOREIGN / "ways.cpp", "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def contexts(self, program, *options):
        """The callers of each function, with the writes of `work` for each of its callers."""
        out = self.folder / "out"
        ran = support.profile([program], "--contexts", *options, out=out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        shown = support.run([support.ASSAY, "annotate", "--calls", "--full", "--threshold=0", "--show=Dw",
                             out]).stdout
        callers = {}
        for group in shown.split("\n\n"):
            function = re.search(r"^.*\* .*ways\.cpp:(.*)$", group, re.M)
            if not function or ".cold" in function[1]:
                continue
            rows = re.findall(r"^ *([\d,]+) .*  <   (.*):([^ ]+)(.*)$", group, re.M)
            callers[function[1]] = sorted(
                (caller if file.endswith("ways.cpp") else "library", calls,
                 writes if function[1] == "work" else "") for writes, file, caller, calls in rows)
        return callers

    def test_all_processors_agree(self):
        for level in ("-O1", "-O2"):
            program = self.build("g++", level)
            expected = self.contexts(program)
            self.assertIn(("help", " (4x)", "44"), expected["work"])
            with self.subTest(program="x86_64", level=level):
                support.require("qemu-x86_64")
                self.assertEqual(self.contexts(program, "--driver=qemu"), expected)
            for processor in ("aarch64", "riscv64"):
                with self.subTest(program=processor, level=level):
                    support.require(f"qemu-{processor}")
                    program = self.build(f"{processor}-linux-gnu-g++", level)
                    self.assertEqual(self.contexts(program), expected)


class Parts(unittest.TestCase):
    """Parts of a program are the same on all processors."""

    def setUp(self):
        self.folder = support.temporary_folder(self)

    def of_function(self, program, name, event, *options):
        out = self.folder / "out"
        ran = support.profile([program], "-q", *options, out=out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        events = read_events(out)
        rows = [row for function, row in events.functions.items() if function.startswith(name)]
        return sum(row[events.events.index(event)] for row in rows)

    def test_functions_left_in_all_ways(self):
        """How often `work` writes while each of these functions runs."""
        expected = {"throw_again": 30, "clean_up": 9, "jump_back": 19, "jump": 9, "on_signal": 92,
                    "on_signal_in_handler": 50, "get_signals": 255, "fault": 41,
                    "leave_handler": 88, "on_signal_to_leave": 36}
        some = {name: expected[name] for name in ("throw_again", "jump", "fault", "leave_handler")}
        programs = [("x86_64", "g++"), ("aarch64", "aarch64-linux-gnu-g++"),
                    ("riscv64", "riscv64-linux-gnu-g++")]
        for processor, compiler in programs:
            support.require(f"qemu-{processor}")
            support.require(compiler)
            program = self.folder / "ways"
            built = support.run([compiler, "-g", "-O1", FOREIGN / "ways.cpp", "-o", program])
            self.assertEqual(built.returncode, 0, built.stderr)
            for driver in ("native", "qemu") if processor == "x86_64" else ("auto",):
                wanted = expected if driver == "native" or processor == "aarch64" else some
                found = {name: self.of_function(program, "work", "Dw", f"--driver={driver}",
                                                f"--toggle={name}") for name in wanted}
                self.assertEqual(found, wanted, (processor, driver))

    @support.needs("aarch64-linux-gnu-gcc", "qemu-aarch64")
    def test_threads_and_a_child(self):
        program = self.folder / "threads"
        built = support.run(["aarch64-linux-gnu-gcc", "-g", "-O1", "-pthread", FOREIGN / "threads.c",
                             "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        # The child begins inside of main(), and the threads do not.
        for function, expected in (("work", [1000, 400000]), ("main", [1000])):
            ran = support.profile([program], "-q", f"--toggle={function}",
                                  out=self.folder / f"{function}.%p")
            self.assertEqual(ran.returncode, 4, ran.stderr)
            events = [read_events(path) for path in self.folder.glob(f"{function}.[0-9]*")]
            found = [each.functions["work"][each.events.index("Dr")] for each in events
                     if "work" in each.functions]
            self.assertEqual(sorted(found), expected)

    @support.needs("aarch64-linux-gnu-g++", "qemu-aarch64")
    def test_missing_function(self):
        program = self.folder / "ways"
        support.run(["aarch64-linux-gnu-g++", "-O1", FOREIGN / "ways.cpp", "-o", program])
        ran = support.profile([program], "--toggle=no_function", out=self.folder / "out")
        self.assertEqual(ran.returncode, 0)
        self.assertIn(f"--toggle=no_function: {program} and its libraries have no such function",
                      ran.stderr)


class Recorded(unittest.TestCase):
    """The events file of a replay is that of a run."""

    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.trace = self.folder / "trace"

    def record(self, program, *options):
        ran = support.run([support.ASSAY, "record", "-q", "-o", self.trace, *options, "--", program])
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def ways(self, processor):
        support.require(f"qemu-{processor}")
        program = self.folder / "ways"
        built = support.run([f"{processor}-linux-gnu-g++", "-g", "-O1", FOREIGN / "ways.cpp",
                             "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def replay(self, *options):
        return support.run([support.ASSAY, "replay", *options, self.trace])

    def events(self, out):
        return re.sub(r"pid \d+", "pid", out.read_text())

    def check(self, program, *options, both=()):
        run, replayed = self.folder / "run", self.folder / "replayed"
        ran = support.profile([program], "-q", *options, *both, out=run)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        ran = self.replay("-q", "--plugin=cache", *options, f"--out={replayed}")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(self.events(run) == self.events(replayed), options)

    def test_programs(self):
        """What profilers make of a trace depends on no processor: the second has some of them."""
        for processor, more in (("aarch64", [["--threads"], ["--machine=neoverse-n1"],
                                             ["--plugin=reuse"], ["--plugin=used_bytes"],
                                             ["--plugin=effective_address", "--contexts"]]),
                                ("riscv64", [])):
            program = self.ways(processor)
            self.record(program)
            for options in (["--contexts"], ["--plugin=branch", "--contexts"],
                            ["--plugin=cache,branch,bbv", "--bb-out-file=/dev/null"], *more):
                with self.subTest(processor=processor, options=options):
                    self.check(program, *options)

    def test_bursts(self):
        """Recorded bursts, and bursts of a recording."""
        program = self.ways("aarch64")
        for bursts in (["--sample=1k/10k", "--warm-up=2k"], ["--sample=1k/7k", "--warm-up=0"],
                       ["--sample=1k/10k", "--warm-up=0", "--toggle=main"]):
            for recorded in ([], bursts)["--toggle=main" in bursts:]:
                self.record(program, *recorded)
                for options in (["--plugin=cache,branch"],
                                ["--plugin=bbv", "--interval-size=50k", "--bb-out-file=/dev/null"]):
                    run, replayed = self.folder / "run", self.folder / "replayed"
                    ran = support.profile([program], "-q", *options, *bursts, out=run)
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    ran = self.replay("-q", *options, *(() if recorded else bursts),
                                      f"--out={replayed}")
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    self.assertTrue(self.events(run) == self.events(replayed), (bursts, options))

    def test_parts(self):
        """A recorded part, and a part of a recording."""
        program = self.ways("aarch64")
        between = ["--from-instruction=50000", "--to-instruction=120000"]
        for part in (["--toggle=catch_one"], ["--toggle=on_signal_in_handler"], between, []):
            self.record(program, *part)
            for options in (["--contexts"], ["--plugin=branch,effective_address", "--contexts"]):
                run, replayed = self.folder / "run", self.folder / "replayed"
                ran = support.profile([program], "-q", *options, *(part or between), out=run)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                ran = self.replay("-q", "--plugin=cache", *options, *(() if part else between),
                                  f"--out={replayed}")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertTrue(self.events(run) == self.events(replayed), (part, options))

    def test_x86(self):
        support.require("qemu-x86_64")
        driver = ["--driver=qemu"]
        for name in ("mixed", "recursion"):
            self.record(PROGRAMS / name, *driver)
            self.check(PROGRAMS / name, "--plugin=cache,branch", "--contexts", both=driver)

    def test_long_blocks(self):
        """A block of a trace has at most 255 instructions."""
        support.require("qemu-aarch64")
        source, program = self.folder / "long.S", self.folder / "long"
        source.write_text(".globl _start\n_start: .rept 400\nnop\n.endr\n"
                          "mov x0, #0\nmov x8, #93\nsvc #0\n")
        built = support.run(["aarch64-linux-gnu-gcc", "-nostdlib", "-static", source, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        self.record(program)
        self.check(program)
        self.assertEqual(totals(self.folder / "replayed")["Ir"], 403)

    def test_disassembly(self):
        self.record(self.ways("aarch64"))
        shown = support.run([support.ASSAY, "trace", "--instructions", "--function=^help",
                             self.trace])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"help.*  stp +x29, x30, \[sp, #-")
        refused = support.run([support.ASSAY, "trace", "--format=champsim", "-o",
                               self.folder / "champsim", self.trace])
        self.assertEqual(refused.returncode, 125)
        self.assertIn("is an AArch64 program, but ChampSim's traces", refused.stderr)

    def test_unknown_instruction_set(self):
        self.record(self.ways("aarch64"))
        refused = self.replay("--plugin=opcode_mix")
        self.assertEqual(refused.returncode, 125)
        self.assertIn("cannot capture facts about instructions of AArch64 programs, which ran under "
                      "QEMU", refused.stderr)

    def test_what_cannot_be_recorded(self):
        support.require("qemu-aarch64")
        program = self.ways("aarch64")
        points = self.folder / "points"
        points.write_text("1 0\n")
        for options, what in ((["--capture=system-calls"], "system calls"),
                              (["--capture=values"], "values of instructions"),
                              ([f"--simpoints={points},{points}"], "simulation points")):
            refused = support.run([support.ASSAY, "record", "-o", self.trace, *options, program])
            self.assertEqual(refused.returncode, 125)
            self.assertIn(f"cannot capture {what} of AArch64 programs", refused.stderr)


@support.needs("qemu-x86_64")
class BesideTheNativeDriver(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def counts(self, program, driver, *options):
        out = self.folder / driver
        ran = support.profile([PROGRAMS / program], f"--driver={driver}", *options, out=out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return read_events(out).functions

    def test_counts_are_equal(self):
        for name in SAME_EVERYWHERE:
            with self.subTest(program=name):
                self.assertEqual(self.counts(name, "native"), self.counts(name, "qemu"))

    def test_iterations_are_executions(self):
        if "one-insn-per-tb" in support.run(["qemu-x86_64", "--help"]).stdout:
            self.skipTest("this QEMU counts iterations in another way")
        self.assertEqual(self.counts("repeat", "native", "--rep=iterations"),
                         self.counts("repeat", "qemu"))

    def test_branches_and_intervals(self):
        for name in ("mixed", "sort"):
            self.assertEqual(self.counts(name, "native", "--plugin=branch"),
                             self.counts(name, "qemu", "--plugin=branch"))
            vectors = []
            for driver in ("native", "qemu"):
                vectors.append(self.folder / (driver + ".bb"))
                self.counts(name, driver, "--plugin=bbv", "--interval-size=1000",
                            f"--bb-out-file={vectors[-1]}")
            self.assertEqual(*(path.read_text() for path in vectors))


    def test_parts(self):
        """Caches and predictors keep their state between the parts."""
        for name, function in (("branches", "called"), ("indirect", "through_table"),
                               ("recursion", "ackermann")):
            whole = self.counts(name, "native", "--plugin=cache,branch", "--contexts")
            for part in ([f"--toggle={function}"],
                         ["--from-instruction=20000", "--to-instruction=60000"],
                         [f"--toggle={function}", "--from-instruction=20000"]):
                for options in ([], ["--plugin=cache,branch", "--contexts"],
                                ["--level1=profiler"]):
                    with self.subTest(program=name, part=part, options=options):
                        native = self.counts(name, "native", *part, *options)
                        self.assertEqual(native, self.counts(name, "qemu", *part, *options))
                        self.assertNotEqual(native, whole)

    def test_bursts(self):
        """The same estimates, with the same errors. The code of each program lies in one page."""
        for name in ("branches", "indirect", "recursion"):
            for options in (["--sample=1k/20k"], ["--plugin=cache,branch", "--sample=2k/10k"],
                            ["--plugin=cache,bbv", "--interval-size=20000", "--sample=1k/10k",
                             "--warm-up=1k", "--bb-out-file=/dev/null"],
                            ["--toggle=program", "--sample=1k/5k", "--warm-up=0"]):
                native = self.counts(name, "native", *options)
                self.assertEqual(native, self.counts(name, "qemu", *options), (name, options))
                stated = [[line for line in read_events(self.folder / driver).descriptions
                           if line.startswith(("Sampled", "Error"))]
                          for driver in ("native", "qemu")]
                self.assertEqual(*stated)
                self.assertNotIn(" in 0 bursts", stated[0][0])

    def test_contexts(self):
        for name in ("indirect", "mixed", "recursion", "sort"):
            texts = []
            for driver in ("native", "qemu"):
                self.counts(name, driver, "--contexts")
                shown = support.run([support.ASSAY, "annotate", "--calls", "--full", "--threshold=0",
                                     self.folder / driver]).stdout
                texts.append(shown[shown.index("-- Functions with their callers"):])
            with self.subTest(program=name):
                self.assertEqual(*texts)


@support.needs("clang", "ld.lld", "qemu-aarch64")
class Refused(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.program = self.folder / "program"
        support.run(["clang", "--target=aarch64-linux-gnu", "-march=armv8.1-a", "-nostdlib",
                     "-static", "-fuse-ld=lld", FOREIGN / "aarch64.S", "-o", self.program])

    def refusal(self, *options, **more):
        ran = support.profile([self.program], *options, **more)
        self.assertEqual(ran.returncode, 125, ran.stderr)
        lines = [line for line in ran.stderr.splitlines() if line.startswith("assay:")]
        return lines[0]

    def test_captures(self):
        for options, what in ((["--objects"], "objects"), (["--types"], "types of data"),
                              (["--collect-at-start=no"], "parts between markers"),
                              (["--plugin=classic"], "values of instructions")):
            self.assertEqual(self.refusal(*options),
                             f"assay: cannot capture {what} of AArch64 programs, which run under QEMU")

    def test_facts(self):
        self.assertEqual(self.refusal("--plugin=opcode_mix"),
                         "assay: cannot capture facts about instructions of AArch64 programs, "
                         "which run under QEMU")

    def test_without_qemu(self):
        line = self.refusal(env={"PATH": str(self.folder)})
        self.assertIn("built for AArch64, and qemu-aarch64 is not on PATH", line)
        self.assertIn("apt-get install qemu-user", line)

    def test_program_that_qemu_cannot_load(self):
        image = bytearray(self.program.read_bytes())
        image[32:40] = (1 << 40).to_bytes(8, "little")  # e_phoff
        self.program.write_bytes(image)
        ran = support.profile([self.program])
        self.assertEqual(ran.returncode, 126, ran.stderr)
        self.assertIn("assay: QEMU cannot load the program", ran.stderr)

    def test_native_driver(self):
        self.assertIn("the native driver runs x86-64 programs", self.refusal("--driver=native"))

    def test_qemu_without_plugins(self):
        self.assertIn("cannot load plugins", self.refusal(f"--qemu={shutil.which('true')}"))

    def test_missing_sysroot(self):
        self.assertIn("no such folder", self.refusal("--sysroot=/no/folder"))


if __name__ == "__main__":
    unittest.main()
