#!/usr/bin/env python3
"""Kernels on machines that QEMU emulates: code in the upper half of the addresses, which begins at
its physical address, and user space."""

import re
import unittest
from collections import Counter

import support
from support import ROOT
from test_firmware import AARCH64, Firmware, ICOUNT

FOREIGN = ROOT / "tests" / "programs" / "foreign"
X86 = ["qemu-system-x86_64", "-nographic", "-nic", "none",
       "-device", "isa-debug-exit,iobase=0xf4,iosize=1"]
OF_X86 = {
    "start": [28, 1, 6],
    "count": [1 + 4 * 1000 + 1, 1, 1000],
    "work": [3 * 1000, 2 * 1000, 1000],
    "interrupt": [2 * 1000, 1000, 0],
    "fault": [2 + 5 * 100 + 1, 1, 0],
    "divided": [2 * 100, 100, 0],
    "wait": [10 + 5 * 3 + 1, 3 + 1, 0],
    "tick": [6 * 3, 2 * 3, 3],
    "system_call": [4 * 100 + 4, 100, 0],
    "set_gate": [7 * 3, 3, 4 * 3],
    "user": [2 + 5 * 100 + 2, 100, 100],
}
OF_AARCH64 = {
    "boot": [19, 2, 0],
    "start": [9, 1, 0],
    "count": [2 + 3 * 1000 + 1, 0, 0],
    "work": [3 * 1000, 1000, 1000],
    "user": [2 + 5 * 100 + 2, 0, 0],
    "handle": [(9 + 8) * 100 + 8, 100, 100],
}


class Kernel(Firmware):
    def build_kernel(self, target, source, boot, upper):
        self.build(target, "-static", f"-Wl,-T,{FOREIGN / 'kernel.ld'},--defsym=BOOT={boot}",
                   f"-Wl,--defsym=UPPER={upper},-e,boot,-z,max-page-size=4096", FOREIGN / source)

    def executed(self, emulator, machine, start, size, status):
        """How often QEMU says that it executes each instruction of this range of addresses."""
        log = self.folder / "log"
        help_text = support.run([emulator, "--help"]).stdout
        single = (["-accel", "tcg,one-insn-per-tb=on"] if "one-insn-per-tb" in help_text
                  else ["-singlestep"])
        self.profile(machine, "--dump-instr=yes", "--cache-sim=no", status=status,
                     more=[*single, "-d", "exec,nochain", "-D", log, "-dfilter",
                           f"{start:#x}+{size:#x}"])
        executed = Counter()
        for line in log.read_text().splitlines():
            if begun := re.match(r"Trace \d+: \S+ \[\w+/([0-9a-f]+)", line):
                executed[int(begun[1], 16)] += 1
            elif again := re.match(r"Stopped execution of TB chain before \S+ \[([0-9a-f]+)\]", line):
                executed[int(again[1], 16)] -= 1
        return executed

    def counted(self, start, size):
        counted = Counter()
        for address, times in re.findall(r"#! at (?:\d+:)?0x([0-9a-f]+) (?:\d+ )*?(\d+)$",
                                         self.out.read_text(), re.MULTILINE):
            if start <= int(address, 16) < start + size:
                counted[int(address, 16)] += int(times)
        return counted


@support.needs("clang", "ld.lld", "qemu-system-x86_64")
class X86Kernel(Kernel):
    START = 0xffffffff80110000

    def setUp(self):
        super().setUp()
        self.build_kernel("x86_64-none-elf", "x86_kernel.S", 0x100000, self.START)

    def test_known_counts(self):
        for options in ([], ["--contexts"], ["--threads"], ["--plugin=cache,effective_address"]):
            for more in ([], ["-smp", "2"]):
                with self.subTest(options=options, more=more):
                    self.profile(X86, *options, more=more, status=1)
                    self.check(OF_X86)

    def test_each_executed_instruction_is_counted(self):
        executed = self.executed("qemu-system-x86_64", X86, self.START, 0x1000, status=1)
        self.assertEqual(self.counted(self.START, 0x1000), executed)

    def test_contexts(self):
        """Interrupts, faults and system calls are contexts below the code that they interrupt."""
        self.profile(X86, "--contexts", status=1)
        shown = support.run([support.ASSAY, "annotate", "--tree", "--full", "--threshold=0", "--show=Ir",
                             self.out]).stdout
        for handler, times in (("interrupt", "1,000"), ("divided", "100"), ("tick", "3")):
            self.assertRegex(shown, rf"{handler} \[interrupted\] \({times}x\)")
        self.assertRegex(shown, r"count \(1x\)\n.*work \(1,000x\)")

    def test_wrong_image(self):
        """The kernel runs at other addresses than those of its file."""
        other = self.folder / "other.elf"
        self.image.rename(other)
        self.build_kernel("x86_64-none-elf", "x86_kernel.S", 0x100000, 0xffffffff80120000)
        ran = support.profile([*X86, "-kernel", other], f"--image={self.image}")
        self.assertEqual(ran.returncode, 125, ran.stderr)
        self.assertIn("the kernel does not run at the addresses of", ran.stderr)
        self.assertIn("nokaslr", ran.stderr)

    def test_replay(self):
        ran = support.run([support.ASSAY, "record", "-q", f"--image={self.image}", "-o",
                           self.folder / "trace", "--", *X86, "-kernel", self.image])
        self.assertEqual(ran.returncode, 1, ran.stderr)
        for options in ([], ["--contexts"]):
            self.replay(*options)
            self.check(OF_X86)


@support.needs("clang", "ld.lld", "qemu-system-aarch64")
class AArch64Kernel(Kernel):
    START = 0xffffff8040110000

    def setUp(self):
        super().setUp()
        self.build_kernel("aarch64-none-elf", "aarch64_kernel.S", 0x40100000, self.START)

    def test_known_counts(self):
        for more in ([], ICOUNT, ["-smp", "2"]):
            with self.subTest(more=more):
                self.profile(AARCH64, "--contexts", more=more)
                self.check(OF_AARCH64)

    def test_each_executed_instruction_is_counted(self):
        executed = self.executed("qemu-system-aarch64", AARCH64, self.START, 0x1000, status=0)
        self.assertEqual(self.counted(self.START, 0x1000), executed)


if __name__ == "__main__":
    unittest.main()
