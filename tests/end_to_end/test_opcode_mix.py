#!/usr/bin/env python3
"""The instruction mix: what is known of programs of a few instructions, and what must be so of any."""

import re
import shutil
import unittest
from pathlib import Path

import support
from support import PROGRAMS, profile, read_events

ROUNDS = 1000
# Columns of each instruction but those of its kind; the groups, and their parts.
GROUPS = ["Mov", "Int", "Ctl", "Stk", "Fp", "Vec", "Oth"]
PARTS = {"Mov": ["Dmov", "Cmov"], "Int": ["Arith", "Lea", "Logic", "Shift", "Bits"],
         "Ctl": ["Jcc", "Jmp", "Ijmp", "Call", "Icall", "Ret"],
         "Fp": ["Fmov", "Fop", "Fcvt", "X87"],
         "Vec": ["Vmov", "Vfp", "Vint", "Vlog", "Vsh", "Vcmp", "Vcvt", "Vshuf", "Vmem"],
         "Oth": ["Str", "Atom", "Cryp", "Mask", "Cach", "Sys", "Nop", "Misc"]}
FLOPS = ["FlD1", "FlD2", "FlD4", "FlD8", "FlS1", "FlS4", "FlS8", "FlS16", "FlH", "FlX"]
SETS = ["Sse", "Avx", "Avx2", "Fma", "Avx512"]
WIDTHS = ["Ws", "W64", "W128", "W256", "W512"]


def has(*flags) -> bool:
    return set(flags) <= set(re.search(r"^flags\s*:(.*)", Path("/proc/cpuinfo").read_text(),
                                       re.MULTILINE)[1].split())


class OpcodeMix(unittest.TestCase):
    def profile(self, program, *options):
        out = support.temporary_folder(self) / "events"
        result = profile(program, *options, plugin="opcode_mix", out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return read_events(out), result.stderr

    def check_sums(self, events, counts):
        of = dict(zip(events.events, counts))
        self.assertEqual(sum(of[group] for group in GROUPS), of["Ir"])
        if "Dmov" in of:
            for group, parts in PARTS.items():
                self.assertEqual(sum(of[part] for part in parts), of[group], group)
            self.assertEqual(sum(of[part] for part in FLOPS), of["Flops"])
            self.assertLessEqual(of["FlM"], of["Flops"])

    def check(self, events, function, once=None, **in_loop):
        """Each function has a mov before its loop and a ret behind it; dec and jnz are in it."""
        expected = {name: count * ROUNDS for name, count in in_loop.items()}
        for name, count in (once or {"Dmov": 1, "Ret": 1, "LdB": 8, "Ld": 1}).items():
            expected[name] = expected.get(name, 0) + count
        for name in ("Arith", "Jcc"):
            expected[name] = expected.get(name, 0) + ROUNDS
        for group, parts in PARTS.items():
            expected[group] = sum(expected.get(part, 0) for part in parts)
        expected["Ir"] = sum(expected.get(group, 0) for group in GROUPS)
        expected["Flops"] = sum(expected.get(part, 0) for part in FLOPS)
        found = dict(zip(events.events, events.functions[function]))
        self.assertEqual({name: count for name, count in found.items() if count},
                         {name: count for name, count in expected.items() if count}, function)

    @unittest.skipUnless(has("fma", "avx2"), "needs FMA and AVX2")
    def test_known_answers(self):
        events, _ = self.profile([PROGRAMS / "kinds"], "--details=yes")
        self.check_sums(events, events.summary)
        self.check(events, "scalar", Fmov=2, Fop=5, Fcvt=1, Ws=8, Sse=8, Ld=2, St=1, LdB=12, StB=8,
                   FlD1=3, FlS1=1)
        self.check(events, "fused", Fop=1, Vfp=2, Ws=1, W256=2, Fma=3, Ld=1, LdB=32, FlD1=2,
                   FlS8=16, FlD4=8)
        self.check(events, "packed", Vfp=5, Vlog=1, Vcmp=1, Vcvt=1, Vshuf=1, Vmov=1, Misc=1,
                   W128=7, W256=3, Sse=7, Avx=4, St=1, StB=32, FlD2=2 + 2, FlS4=4 + 8, FlS8=8)
        self.check(events, "integers", Vint=2, Vlog=2, Vsh=1, Vcmp=2, Vshuf=2, Vcvt=1, Vmem=1,
                   Lea=1, W128=7, W256=4, Sse=6, Avx=1, Avx2=4, Ld=1, LdB=32)
        self.check(events, "stack87", X87=7, Ld=1, LdB=4, St=1, StB=10, FlX=4)
        self.check(events, "copies", Dmov=4, Lea=5, Str=3, Ld=2, St=3, LdB=4096 + 1,
                   StB=4096 + 800 + 1)
        self.check(events, "branches", Call=1, Icall=1, Jmp=1, Ijmp=1, Lea=2, St=2, StB=16)
        self.check(events, "leaf", once={"Ret": 2 * ROUNDS, "LdB": 16 * ROUNDS, "Ld": 2 * ROUNDS,
                                         "Arith": -ROUNDS, "Jcc": -ROUNDS})
        self.check(events, "atomics", Atom=3, Ld=2, LdB=8, St=2, StB=8)
        self.check(events, "general", Dmov=2, Cmov=2, Arith=2, Lea=1, Logic=2, Shift=2, Bits=2,
                   Stk=2, Nop=1, Cach=1, Misc=1, Sys=1, Cryp=1, Ld=1, LdB=8, St=1, StB=8)

    @unittest.skipUnless(has("avx512f", "avx512dq", "avx512bw", "avx512vl"), "needs AVX-512")
    def test_avx512(self):
        events, _ = self.profile([PROGRAMS / "kinds_512"], "--details=yes")
        self.check_sums(events, events.summary)
        self.check(events, "wide", Vfp=3, Fop=1, Vint=2, Vlog=1, Vmov=1, Ws=1, W256=1, W512=6,
                   Avx512=8, Ld=2, LdB=72, St=1, StB=64, FlD8=32, FlS16=16, FlD1=1)
        self.check(events, "masked", once={"Dmov": 2, "Mask": 1, "Avx512": 1, "Ret": 1, "LdB": 8,
                                           "Ld": 1},
                   Vfp=1, Vcmp=1, Mask=1, Vshuf=1, W512=3, Avx512=4, FlD8=8, FlM=8)

    def test_usual_columns(self):
        events, text = self.profile([PROGRAMS / "kinds"], "--top=3") if has("fma", "avx2") else \
            self.profile([PROGRAMS / "work"], "--top=3")
        self.assertEqual(events.events, ["Ir", *GROUPS, "LdB", "StB", "Flops"])
        self.check_sums(events, events.summary)
        rows = re.findall(r"^==\d+==   (\w+) +[\d,]+ +[\d.]+%$", text, re.MULTILINE)
        self.assertEqual(len(rows), 6 + 3, text)  # a group's label has several words
        opcodes = next(line for line in events.descriptions if line.startswith("Opcodes:"))
        self.assertEqual(opcodes.count("%"), 3)
        self.assertTrue(any("arithmetic intensity" in remark for remark in events.remarks))

    def test_sums_on_real_programs(self):
        """Each executed instruction is in one group and one part, and Ir is that of all profilers."""
        programs = [["bzip2", "-c", "/proc/self/exe"], ["python3", "-c", "print(sum(range(9)))"],
                    ["sort", __file__]]
        for program in programs:
            if not shutil.which(program[0]):
                continue
            with self.subTest(program[0]):
                out = support.temporary_folder(self) / "events"
                result = profile(program, "--details=yes", "--cache-sim=no",
                                 plugin="opcode_mix,cache", out=out)
                self.assertEqual(result.returncode, 0, result.stderr)
                events = read_events(out)
                self.check_sums(events, events.summary)
                for counts in events.functions.values():
                    self.check_sums(events, counts)
                of = dict(zip(events.events, events.summary))
                again = next(name for name in events.events if name.endswith("Ir") and name != "Ir")
                self.assertEqual(of["Ir"], of[again])

    def test_contexts(self):
        """The shares of contexts add up, of repeated strings too."""
        events, _ = self.profile([PROGRAMS / "work"], "--contexts")
        self.check_sums(events, events.summary)


if __name__ == "__main__":
    unittest.main()
