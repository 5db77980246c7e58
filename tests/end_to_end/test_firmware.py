#!/usr/bin/env python3
"""Firmware on machines that QEMU emulates as a whole."""

import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from collections import Counter

import recipes
import support
from support import ASSAY, ROOT, read_events

FOREIGN = ROOT / "tests" / "programs" / "foreign"
EXAMPLE = ROOT / "examples" / "firmware"
CORTEX_M = ["qemu-system-arm", "-M", "lm3s6965evb", "-nographic", "-semihosting"]
AARCH64 = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a53", "-nographic", "-semihosting",
           "-nic", "none"]
RISC_V = ["qemu-system-riscv64", "-M", "virt", "-bios", "none", "-nographic"]
ICOUNT = ["-icount", "shift=5"]
# Without this, time passes in QEMU before the processor begins.
SAME_TIME = ["-icount", "shift=5,sleep=off"]


class Firmware(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.image = self.folder / "firmware.elf"
        self.out = self.folder / "out"

    def build(self, target, *words):
        built = support.run(["clang", f"--target={target}", "-g", "-nostdlib", "-fuse-ld=lld",
                             *words, "-o", self.image])
        self.assertEqual((built.returncode, built.stderr), (0, ""))

    def build_cortex_m(self):
        self.build("arm-none-eabi", "-mcpu=cortex-m3", "-Wl,-Ttext=0,-Tbss=0x20000000,-e,reset",
                   FOREIGN / "cortex_m.S")

    def build_example(self):
        self.build("arm-none-eabi", "-mcpu=cortex-m3", "-mthumb", "-O1", "-ffreestanding",
                   f"-Wl,-T,{EXAMPLE / 'firmware.ld'}", EXAMPLE / "main.c", EXAMPLE / "start.c")

    def build_aarch64(self):
        self.build("aarch64-none-elf", "-Wl,-Ttext=0x40100000,-Tbss=0x40200000",
                   FOREIGN / "aarch64_machine.S")

    def build_riscv(self):
        self.build("riscv64-none-elf", "-march=rv64imac", "-mabi=lp64",
                   "-Wl,-Ttext=0x80000000,-Tbss=0x80001000", FOREIGN / "riscv_machine.S")

    def profile(self, machine, *options, more=(), status=0, **others):
        ran = support.profile([*machine, "-kernel", self.image, *more], f"--image={self.image}",
                              *options, out=self.out, **others)
        self.assertEqual(ran.returncode, status, ran.stderr)
        return ran

    def record(self, machine, *options, more=()):
        ran = support.run([ASSAY, "record", "-q", f"--image={self.image}", *options, "-o",
                           self.folder / "trace", "--", *machine, "-kernel", self.image, *more])
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def replay(self, *options):
        ran = support.run([ASSAY, "replay", "-q", "--plugin=cache", *options, f"--out={self.out}",
                           self.folder / "trace"])
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def counts(self, *names):
        events = read_events(self.out)
        rows = {function: dict(zip(events.events, row))
                for function, row in events.functions.items()}
        return {function: [row[name] for name in names] for function, row in rows.items()}

    def check(self, expected, names=("Ir", "Dr", "Dw")):
        found = self.counts(*names)
        self.assertEqual({name: found[name] for name in expected}, expected)


OF_CORTEX_M = {
    "reset": [6, 1, 0],
    "counted": [3 + 12 * 1000 + 1, 1 + 2 * 1000 + 500 + 1, 1 + 2 * 1000 + 500],
    "leaf": [3 * 1000, 1000, 1000],
    "tick": [3 * 7 + 6, 3 * 2 + 2, 3 + 2],
}
OF_RISC_V = {
    "count": [4 * 1000, 1000, 1000],
    "work": [2 + 3 * 1000 + 1, 0, 0],
    "trap": [2 * 10 + 7, 2 * 2 + 1, 2 * 2 + 1],
}


@support.needs("clang", "ld.lld", "qemu-system-arm")
class CortexM(Firmware):
    def test_known_counts(self):
        self.build_cortex_m()
        for options in ([], ["--level1=profiler"], ["--plugin=cache,effective_address"],
                        ["--plugin=cache,branch"], ["--contexts"], ["--threads"],
                        ["--plugin=cache,bbv", f"--bb-out-file={self.folder / 'bb'}"]):
            for more in ([], ICOUNT):
                with self.subTest(options=options, more=more):
                    self.profile(CORTEX_M, *options, more=more)
                    self.check(OF_CORTEX_M)

    def test_replay(self):
        self.build_cortex_m()
        self.record(CORTEX_M)
        for options in ([], ["--contexts"], ["--threads"]):
            self.replay(*options)
            self.check(OF_CORTEX_M)

    def test_counts_of_lines(self):
        """Of the timer's handler: each line is one instruction."""
        self.build_cortex_m()
        self.profile(CORTEX_M, "--cache-sim=no")
        shown = support.run([ASSAY, "annotate", "--show=Ir", "--full", "--threshold=0",
                             "--show-percs=no", self.out, "cortex_m.S"]).stdout
        handler = shown[shown.index("function tick"):shown.index(".size tick")]
        counts = re.findall(r"^ *(\d+)  ", handler, re.MULTILINE)
        self.assertEqual(counts, ["3"] * 6 + ["1"] * 6 + ["3"])

    def test_branches(self):
        self.build_cortex_m()
        self.profile(CORTEX_M, "--plugin=branch", more=ICOUNT)
        self.check({"counted": [1000], "tick": [3]}, ["Bc"])

    def test_contexts(self):
        """Each interrupt has its own context, below the code that it interrupts."""
        self.build_cortex_m()
        self.profile(CORTEX_M, "--contexts", more=ICOUNT)
        shown = support.run([ASSAY, "annotate", "--calls", "--full", "--threshold=0", "--show=Ir",
                             self.out]).stdout
        of_tick = re.search(r"((?:^.*< .*\n)+)^.*\* .*:tick$", shown, re.M).group(1)
        calls = [int(number) for number in re.findall(r"\((\d+)x\)$", of_tick, re.M)]
        self.assertEqual(sum(calls), 3)
        self.assertRegex(shown, r"\* .*:leaf\n")
        self.assertIn("[interrupted]", support.run(
            [ASSAY, "annotate", "--tree", "--full", "--threshold=0", self.out]).stdout)

    def test_parts(self):
        """An interrupt inside of a function belongs to it. Wherever the timer interrupts, the
        handler ends."""
        self.build_cortex_m()
        for options in ([], ["--plugin=cache,branch", "--contexts"]):
            for more in ([], SAME_TIME):
                for function in ("counted", "leaf", "tick"):
                    with self.subTest(function=function, options=options, more=more):
                        self.profile(CORTEX_M, f"--toggle={function}", *options, more=more)
                        self.check({function: OF_CORTEX_M[function]})
                        inside = {"counted": {"leaf", "tick"}, "leaf": {"tick"}, "tick": set()}
                        self.assertLessEqual(set(self.counts("Ir")), {function} | inside[function])
        # The only tick in the 15,000 instructions of `counted` and `leaf`, and the two others.
        self.profile(CORTEX_M, "--toggle=counted", more=SAME_TIME)
        self.check({"leaf": OF_CORTEX_M["leaf"], "tick": [7, 2, 1]})
        self.profile(CORTEX_M, "--toggle=wait", more=SAME_TIME)
        self.check({"tick": [2 * 7 + 6, 2 * 2 + 2, 2 + 2]})

    def test_range(self):
        """9 instructions of reset and begin_ticks come first."""
        self.build_cortex_m()
        self.profile(CORTEX_M, "--from-instruction=10", "--to-instruction=109", more=SAME_TIME)
        self.assertAlmostEqual(sum(row[0] for row in self.counts("Ir").values()), 100, delta=4)
        self.assertEqual(set(self.counts("Ir")), {"counted", "leaf"})

    def test_missing_function(self):
        self.build_cortex_m()
        ran = self.profile(CORTEX_M, "--toggle=no_function")
        self.assertIn(f"--toggle=no_function: {self.image} has no such function", ran.stderr)

    def test_machines(self):
        """The code has 8 lines of flash, and three lines of constants are read there. The rest of the
        data is in SRAM."""
        self.build_cortex_m()
        for more in ([], ["--contexts"], ["--plugin=cache,effective_address"]):
            self.profile(CORTEX_M, "--machine=cortex-m4", *more)
            events = read_events(self.out)
            self.assertEqual(dict(zip(events.events, events.totals()))["I1mr"], 8)
            self.check({"reset": [1, 0], "begin_ticks": [1, 0], "counted": [0, 0], "leaf": [0, 0],
                        "tick": [1, 0]}, ["D1mr", "D1mw"])
            self.check(OF_CORTEX_M)
        # Both memories are tightly coupled ones there.
        self.profile(CORTEX_M, "--machine=cortex-m7")
        self.check({name: [0, 0, 0] for name in OF_CORTEX_M}, ["I1mr", "D1mr", "D1mw"])

    @support.needs("readelf")
    def test_each_executed_instruction_is_counted(self):
        """By line and by instruction, as QEMU's own log and the compiler's table of lines tell.
        Code without a line, of line 0, belongs to the line before."""
        self.build_example()
        table = support.run(["readelf", "--debug-dump=decodedline", self.image]).stdout
        rows = sorted((int(address, 16), (name, int(line))) for name, line, address in re.findall(
            r"(\w+\.c) +([1-9]\d*) +(0x[0-9a-f]+)", table))
        log = self.folder / "log"
        help_text = support.run(["qemu-system-arm", "--help"]).stdout
        single = (["-accel", "tcg,one-insn-per-tb=on"] if "one-insn-per-tb" in help_text
                  else ["-singlestep"])
        for more in ([], ICOUNT):
            self.profile(CORTEX_M, "--dump-instr=yes", "--cache-sim=no",
                         more=[*more, *single, "-d", "exec,nochain", "-D", log])
            executed = Counter()
            for line in log.read_text().splitlines():
                if begun := re.match(r"Trace \d+: \S+ \[\w+/([0-9a-f]+)", line):
                    executed[int(begun[1], 16)] += 1
                # Logged before it is known that the processor is interrupted, or waits for a device.
                elif again := re.match(r"cpu_io_recompile: .* to ([0-9a-f]+)", line) or re.match(
                        r"Stopped execution of TB chain before \S+ \[([0-9a-f]+)\]", line):
                    executed[int(again[1], 16)] -= 1
            by_line, counted = Counter(), Counter()
            for address, times in executed.items():
                by_line[max(row for row in rows if row[0] <= address)[1]] += times
            text = self.out.read_text()
            for address, line, times in re.findall(
                    r"^fl=#! at \d+:0x([0-9a-f]+) (\d+) (\d+)", text, re.MULTILINE):
                counted[int(address, 16)] += int(times)
            self.assertEqual(counted, executed)
            name, lines = None, Counter()
            for line in text.splitlines():
                if line.startswith("fl=/"):
                    name = line.rpartition("/")[2]
                elif count := re.match(r"(\d+) (\d+)$", line):
                    lines[name, int(count[1])] += int(count[2])
            self.assertEqual(lines, by_line)

    def test_example(self):
        folder = self.folder / "firmware"
        shutil.copytree(EXAMPLE, folder)
        path = f"{ASSAY.parent}:{os.environ['PATH']}"
        recipes.follow(self, EXAMPLE / "README.md", folder, {**os.environ, "PATH": path})
        # 100 rounds of 254 turns. The handler has run five times.
        shown = support.run([ASSAY, "annotate", "--show=Ir", "--full", "--threshold=0",
                             "--show-percs=no", folder / "base.out", "main.c"]).stdout
        turns = int(re.search(r"^ *([\d,]+) .*i < kSamples - 1", shown, re.M)[1].replace(",", ""))
        self.assertEqual(turns % 100, 0)
        sums = int(re.search(r"^ *([\d,]+) .*sum \+=", shown, re.M)[1].replace(",", ""))
        self.assertEqual(sums % (100 * 254), 0)
        self.assertRegex(shown, r"(?m)^ +5  \}$")

    def test_machine_that_does_not_end(self):
        """Without semihosting, the firmware's last instruction is a fault."""
        self.build_cortex_m()
        machine = [word for word in CORTEX_M if word != "-semihosting"]
        ran = self.profile(machine, "--timeout=2s", status=124)
        self.assertIn("the program was ended after --timeout=2s", ran.stderr)
        self.check({name: OF_CORTEX_M[name] for name in ("counted", "leaf", "tick")})

    def test_interrupted_by_the_user(self):
        self.build_cortex_m()
        machine = [word for word in CORTEX_M if word != "-semihosting"]
        with subprocess.Popen(
                [ASSAY, "--plugin=cache", f"--image={self.image}", f"--out={self.out}", "--",
                 *machine, "-kernel", self.image],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
            time.sleep(2)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=60)
        self.check({name: OF_CORTEX_M[name] for name in ("counted", "leaf", "tick")})

    def test_next_commands(self):
        self.build_cortex_m()
        self.profile(CORTEX_M)
        shown = support.run([ASSAY, "summary", self.out]).stdout
        self.assertIn(f"--contexts --image={self.image} -- qemu-system-arm", shown)


@support.needs("clang", "ld.lld", "qemu-system-aarch64")
class AArch64(Firmware):
    def test_known_counts(self):
        self.build_aarch64()
        for more in ([], ICOUNT, ["-smp", "4"]):
            with self.subTest(more=more):
                self.profile(AARCH64, "--contexts", more=more)
                self.check({"_start": [11 + 4 * 1000, 0, 0], "work": [3 * 1000, 1000, 1000],
                            "vectors": [1000, 0, 0], "handle": [4 * 1000, 1000, 1000]})
        shown = support.run([ASSAY, "annotate", "--tree", "--full", "--threshold=0", "--show=Ir",
                             self.out]).stdout
        self.assertIn("vectors [interrupted] (1,000x)", shown)

    def test_replay(self):
        self.build_aarch64()
        self.record(AARCH64)
        for options in (["--contexts"], ["--plugin=branch", "--contexts"],
                        ["--plugin=cache,effective_address", "--contexts"]):
            self.profile(AARCH64, "-q", *options)
            run = self.out.read_text()
            self.replay(*options)
            replayed = self.out.read_text()
            self.assertTrue(re.sub(r"pid \d+", "", run) == re.sub(r"pid \d+", "", replayed), options)

    @support.needs("qemu-system-arm")
    def test_image_of_32_bits(self):
        """This emulator has the machines of qemu-system-arm as well."""
        self.build_cortex_m()
        self.profile(["qemu-system-aarch64", *CORTEX_M[1:]])
        self.check(OF_CORTEX_M)


@support.needs("clang", "ld.lld", "qemu-system-riscv64")
class RiscV(Firmware):
    def test_known_counts(self):
        self.build_riscv()
        for options in ([], ["--contexts"]):
            for more in ([], ICOUNT, ["-smp", "2"]):
                with self.subTest(options=options, more=more):
                    self.profile(RISC_V, *options, more=more)
                    self.check(OF_RISC_V)

    def test_same_counts_in_each_run(self):
        """Two runs and a replay, of all and of a part that waits for interrupts."""
        self.build_riscv()
        for part in ([], ["--toggle=wait"]):
            self.record(RISC_V, *part, more=SAME_TIME)
            for options in ([], ["--plugin=cache,branch", "--contexts"]):
                texts = set()
                for _ in range(2):
                    self.profile(RISC_V, "-q", *part, *options, more=SAME_TIME)
                    texts.add(re.sub(r"pid \d+", "", self.out.read_text()))
                self.check({"trap": OF_RISC_V["trap"]})
                self.replay(*options)
                texts.add(re.sub(r"pid \d+", "", self.out.read_text()))
                self.assertEqual(len(texts), 1, (part, options))

    def test_bursts(self):
        """The waiting loop takes nearly all of the time."""
        self.build_riscv()
        self.profile(RISC_V, "--cache-sim=no", more=SAME_TIME)
        whole = sum(row[0] for row in self.counts("Ir").values())
        self.profile(RISC_V, "--sample=500/1k", "--warm-up=0", more=SAME_TIME)
        estimate = self.counts("Ir", "Dr")
        self.assertEqual(sum(row[0] for row in estimate.values()), whole)
        instructions, reads = estimate["wait"]
        self.assertAlmostEqual(3 * reads / instructions, 1, delta=0.01)

    def test_interrupts_in_contexts(self):
        self.build_riscv()
        self.profile(RISC_V, "--contexts", more=ICOUNT)
        shown = support.run([ASSAY, "annotate", "--tree", "--full", "--threshold=0", "--show=Ir",
                             self.out]).stdout
        calls = re.findall(r"trap \[interrupted\] \((\d+)x\)", shown)
        self.assertEqual(sum(map(int, calls)), 3)
        self.check({"_start": [20, 0, 2]})
        self.assertRegex(shown, r"work \(1x\)\n.*count \(1,000x\)")


@support.needs("clang", "ld.lld", "qemu-system-arm")
class Refused(Firmware):
    def refusal(self, *options, machine=tuple(CORTEX_M)):
        ran = support.profile([*machine, "-kernel", self.image], *options)
        lines = [line for line in ran.stderr.splitlines() if line.startswith("assay:")]
        self.assertEqual((ran.returncode, len(lines)), (125, 1), ran.stderr)
        return lines[0]

    def test_images(self):
        self.assertIn("No such file", self.refusal("--image=/no/file"))
        text = self.folder / "firmware.bin"
        text.write_bytes(bytes(1000))
        self.assertIn("not an ELF file; give the file that the linker wrote",
                      self.refusal(f"--image={text}"))
        self.assertIn("is built for x86-64, but this QEMU emulates arm; start qemu-system-x86_64",
                      self.refusal(f"--image={shutil.which('true')}"))

    def test_image_for_another_emulator(self):
        self.build_riscv()
        line = self.refusal(f"--image={self.image}")
        self.assertIn("is built for RISC-V 64, but this QEMU emulates arm; start "
                      "qemu-system-riscv64", line)

    def test_no_emulator(self):
        self.build_cortex_m()
        line = self.refusal(f"--image={self.image}", machine=["true"])
        self.assertIn("is no QEMU that can load plugins", line)
        self.assertIn("qemu-system-arm ...", line)

    @support.needs("qemu-aarch64")
    def test_emulator_of_programs(self):
        self.build_cortex_m()
        ran = support.profile(["qemu-aarch64", self.image], f"--image={self.image}")
        self.assertEqual(ran.returncode, 125)
        self.assertIn("--image is for the emulator of a whole machine: qemu-system-arm", ran.stderr)

    def test_captures(self):
        self.build_cortex_m()
        for options, what in ((["--objects"], "objects"),
                              (["--collect-at-start=no"], "parts between markers"),
                              (["--plugin=classic"], "values of instructions")):
            self.assertEqual(self.refusal(f"--image={self.image}", *options),
                             f"assay: cannot capture {what} of Arm Cortex-M programs, which run "
                             "under QEMU")

    def test_without_image(self):
        ran = support.profile(["qemu-system-arm", "-M", "help"])
        self.assertEqual(ran.returncode, 0)
        self.assertIn("give the ELF file of its firmware: --image=FILE", ran.stderr)


if __name__ == "__main__":
    unittest.main()
