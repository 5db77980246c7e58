#!/usr/bin/env python3
"""Counts of C programs for other processors, against what their disassembly says."""

import re
import unittest
from dataclasses import dataclass

import support
from support import read_events

SOURCE = support.ROOT / "tests" / "programs" / "foreign" / "counted.c"
TURNS = 1000  # of each loop


@dataclass
class Instruction:
    address: int
    name: str
    operands: str
    target: int | None  # of a direct jump


@dataclass
class Processor:
    """`jumps`: names of instructions that go elsewhere always. `references`: the reads and the
    writes of one instruction, as assay's documentation says. `knows_calls`: assay does."""

    tools: str
    qemu: str
    jumps: tuple
    references: object
    knows_calls: bool = True


def of_a_load_store_processor(one):
    """Loads and stores are instructions of their own."""
    if re.match(r"ld|l[bhwd]u?$|lr\.", one.name):
        return 1, 0
    return (0, 1) if re.match(r"st|s[bhwd]$", one.name) else (0, 0)


def of_arm(one):
    """QEMU refers to each register of a list."""
    count = len(re.search(r"{(.*)}", one.operands).group(1).split(",")) if "{" in one.operands else 1
    if re.match(r"ldr|ldm|pop", one.name):
        return count, 0
    return (0, count) if re.match(r"str|stm|push", one.name) else (0, 0)


def of_powerpc(one):
    if re.match(r"l[bhwd]z|l[wh]a|ld", one.name):
        return 1, 0
    return (0, 1) if re.match(r"st[bhwd]", one.name) else (0, 0)


def of_s390x(one):
    """A list of registers is a reference for each one. asi and the like read and write."""
    if "(" not in one.operands or re.match(r"la|b|j|s[lr]", one.name):
        return 0, 0
    if one.name in ("stmg", "lmg"):
        first, last = (int(number) for number in re.findall(r"%r(\d+)", one.operands)[:2])
        return (0, last - first + 1) if one.name == "stmg" else (last - first + 1, 0)
    if re.match(r"st|mv[hg]", one.name):
        return 0, 1
    return (1, 1) if re.match(r"a[gl]*si", one.name) else (1, 0)


def of_i386(one):
    """An operand that is modified is a read."""
    if one.name.startswith(("push", "call")):
        return 0, 1
    if one.name.startswith(("pop", "ret", "leave")):
        return 1, 0
    if "(" not in one.operands and "0x" not in re.sub(r"\$0x", "", one.operands):
        return 0, 0
    if one.name.startswith(("lea", "nop", "j")):
        return 0, 0
    to_memory = not one.operands.rsplit(",", 1)[-1].startswith("%")
    return (0, 1) if to_memory and one.name.startswith("mov") else (1, 0)


PROCESSORS = [
    Processor("aarch64-linux-gnu", "aarch64", ("b",), of_a_load_store_processor),
    Processor("riscv64-linux-gnu", "riscv64", ("j",), of_a_load_store_processor),
    Processor("arm-linux-gnueabihf", "arm", ("b", "b.n", "b.w"), of_arm, False),
    Processor("i686-linux-gnu", "i386", ("jmp",), of_i386),
    Processor("powerpc64le-linux-gnu", "ppc64le", ("b",), of_powerpc, False),
    Processor("s390x-linux-gnu", "s390x", ("j", "jg"), of_s390x, False),
]


def disassembled(processor, program):
    """The instructions of each function, without what follows it: padding and tables."""
    symbols = support.run([f"{processor.tools}-nm", "-S", program]).stdout
    sizes = {name: int(size, 16) for size, name in re.findall(r"^\w+ (\w+) [tT] (\w+)$", symbols, re.M)}
    listed = support.run([f"{processor.tools}-objdump", "-d", "--no-show-raw-insn", program]).stdout
    functions = {}
    for line in listed.splitlines():
        if head := re.match(r"([0-9a-f]+) <(\w+)>:", line):
            functions[head.group(2)] = found = []
            end = int(head.group(1), 16) + sizes.get(head.group(2), 0)
            begin = int(head.group(1), 16)
        elif row := re.match(r" *([0-9a-f]+):\s+(\S+)\s*(.*)", line):
            operands = re.sub(r"\s*[;@#].*", "", row.group(3))
            target = re.search(r"([0-9a-f]+) <\w+\+0x", operands)
            one = Instruction(int(row.group(1), 16), row.group(2), operands,
                              int(target.group(1), 16) if target else None)
            # Calls within a program enter a function of PowerPC after it has set r2.
            sets_toc = processor.qemu == "ppc64le" and re.match("r2,", operands) and \
                one.address < begin + 8
            if one.address < end and not one.name.startswith(".") and not sets_toc:
                found.append(one)
    return functions


def worked_out(processor, code):
    """Instructions, reads and writes of a function with one loop: the last jump back ends it. A
    loop that begins in its middle has its condition there, which is evaluated once more."""
    back = [one for one in code if one.target is not None and one.target <= one.address]
    begin, end = back[-1].target, back[-1].address
    entry = begin
    turns = TURNS
    if back[-1].name == "bdnz":  # the compiler can do several turns in one: li r9,500; mtctr r9
        turns = int(next(one for one in code if one.name == "li").operands.split(",")[1])
    for one in code:
        if one.name in processor.jumps and one.address < begin and one.target and one.target > begin:
            entry = one.target
    totals = [0, 0, 0]
    for one in code:
        if entry > begin and one.address >= entry and one.address <= end:
            times = turns + 1
        else:
            times = turns if begin <= one.address <= end else 1
        reads, writes = processor.references(one)
        totals = [a + times * b for a, b in zip(totals, (1, reads, writes))]
    return totals


class KnownCounts(unittest.TestCase):
    def check(self, processor, level):
        program, out = self.folder / "program", self.folder / "out"
        built = support.run([f"{processor.tools}-gcc", level, "-g", "-nostdlib", "-static",
                             "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie",
                             "-fno-asynchronous-unwind-tables", SOURCE, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        ran = support.profile([program], out=out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        events = read_events(out)
        code = disassembled(processor, program)
        for name in ("follow", "send", "weigh"):
            counts = dict(zip(events.events, events.functions[name]))
            self.assertEqual([counts[event] for event in ("Ir", "Dr", "Dw")],
                             worked_out(processor, code[name]), f"{name} {level}")
        self.check_parts(processor, program, events)

    def check_parts(self, processor, program, whole):
        out = self.folder / "part"
        parts = []
        for options in (["--to-instruction=5000"], ["--from-instruction=5001"]):
            self.assertEqual(support.profile([program], *options, out=out).returncode, 0)
            parts.append(read_events(out).totals()[0])
        self.assertEqual(sum(parts), whole.totals()[0])
        self.assertAlmostEqual(parts[0], 5000, delta=64)
        ran = support.profile([program], "--toggle=send", out=out)
        if not processor.knows_calls:
            self.assertEqual(ran.returncode, 125)
            self.assertIn("cannot capture parts by functions of", ran.stderr)
            return
        self.assertEqual(ran.returncode, 0, ran.stderr)
        part = read_events(out)
        column = whole.events.index("Ir")
        self.assertEqual({name: row[column] for name, row in part.functions.items()},
                         {"send": whole.functions["send"][column]})

    def test_loops(self):
        self.folder = support.temporary_folder(self)
        for processor in PROCESSORS:
            needed = f"{processor.tools}-gcc", f"qemu-{processor.qemu}"
            for level in ("-O0", "-O2"):
                with self.subTest(processor=processor.qemu, level=level):
                    if not support.installed(*needed):
                        self.skipTest(support.packages_of(*needed))
                    self.check(processor, level)


if __name__ == "__main__":
    unittest.main()
