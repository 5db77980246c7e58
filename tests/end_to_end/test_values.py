#!/usr/bin/env python3
"""Values of registers and memory, of a program whose instructions have known ones."""

import subprocess
import unittest
from pathlib import Path

from support import ASSAY, PLUGINS, PROGRAMS, profile, read_events, run, temporary_folder

VALUES = PLUGINS / "values.so"

# By label: a line for each execution. Numbers are hexadecimal, names those of the program; - is a
# value that the execution does not have, * one that nothing depends on.
#                     address     loaded             stored             stored before
MEMORY = """
load                  word        1122334455667788   -                  -
load_low              word        55667788           -                  -
load_short            word        7788               -                  -
load_byte             word        88                 -                  -
load_signed           negative    fffffffe           -                  -
load_itself           pointer     pointer            -                  -
load_indexed          pointer     pointer            -                  -
load_fs               thread+8    7777               -                  -
load_vector           one         3ff0000000000000   -                  -
load_wide             word        1122334455667788   -                  -
compare               word        55667788           -                  -
store                 to          -                  123456789abcdef0   0
store_again           to          -                  123456789abcdef0   123456789abcdef0
store_short           to          -                  def0               def0
store_high            to          -                  de                 f0
store_constant        to          -                  ffffffff           9abcdede
store_vector          to          -                  3ff0000000000000   12345678ffffffff
push                  *           -                  123456789abcdef0   *
pop                   *           123456789abcdef0   -                  -
push_memory           word        1122334455667788   1122334455667788   123456789abcdef0
pop_memory            *           1122334455667788   1122334455667788   3ff0000000000000
store_string          to          -                  7                  1122334455667788
move_string           word        88                 88                 7
modify                to          28                 2a                 28
modify_byte           to          2a                 d6                 2a
modify_lost           to          d6                 to+d6              d6
exchange              to          to+d6              5                  to+d6
add_short             -           -                  -                  -
repeat_move           word        88                 88                 5
repeat_store          to+3        -                  41                 0
repeat_never          -           -                  -                  -
repeat_scan           word        88                 -                  -
translate             word+3      55                 -                  -
bit_test              word+2      66                 64                 66
conditional           -           -                  -                  -
conditional           -           -                  -                  -
conditional           -           -                  -                  -
call_register         *           -                  call_memory        -
call_memory           function_pointer function      behind_call_memory -
jump_register         -           -                  -                  -
exit                  -           -                  -                  -
"""

#                     destination        before             first source       second source
REGISTERS = """
load                  1122334455667788   ffffffffffffffff   -                  -
load_low              55667788           401013             -                  -
load_short            7788               ffff               -                  -
load_byte             88                 ffff7788           -                  -
load_signed           fffffffffffffffe   88                 -                  -
load_itself           pointer            pointer            -                  -
load_fs               7777               pointer            -                  -
load_vector           3ff0000000000000   0                  -                  -
store                 -                  -                  123456789abcdef0   -
store_short           -                  -                  def0               -
store_high            -                  -                  de                 -
store_constant        -                  -                  -                  -
push                  -                  -                  123456789abcdef0   -
pop                   123456789abcdef0   fffffffffffffffe   -                  -
modify_lost           d6                 to                 d6                 -
exchange              to+d6              5                  to+d6              -
add_short             1224               fff0               1224               1234
add_carry             2459               1224               2459               1234
high                  1                  34                 1                  -
zero                  0                  9abcdef0           0                  0
multiply              28e6659            1201               2459               28e6659
vector_add            4000000000000000   3ff0000000000000   4000000000000000   4000000000000000
dead                  63                 word+1             -                  -
dead_next             62                 63                 -                  -
translate             55                 3                  -                  -
counted               1                  2                  1                  -
counted               0                  1                  0                  -
exit                  behind             behind             *                  *
"""

#                     rbx      rsi      taken  target       xmm3
OTHERS = """
load_low              0        thread   -      -            0
load_vector           2        7777     -      -            3ff0000000000000
vector_add            2459     word+1   -      -            4000000000000000
dead                  2459     63       -      -            4000000000000000
dead_next             2459     62       -      -            4000000000000000
conditional           word     word+3   1      again        4000000000000000
conditional           word     word+3   1      again        4000000000000000
conditional           word     word+3   0      conditional+2 4000000000000000
counted               word     word+3   1      counted_top  4000000000000000
counted               word     word+3   0      counted+2    4000000000000000
call_register         word     word+3   1      function     4000000000000000
call_memory           word     word+3   1      function     4000000000000000
return                word     word+3   1      behind_call  4000000000000000
return                word     word+3   1      call_memory  4000000000000000
return                word     word+3   1      behind_call_memory 4000000000000000
jump_register         word     word+3   1      behind       4000000000000000
behind                word     word+3   1      end          4000000000000000
exit                  word     word+3   -      -            4000000000000000
"""

# Of register_values. x87 registers are doubles; an empty one is the processor's default NaN.
#                     destination        before             first source       second source
X87_AND_MMX = """
push_one              3ff0000000000000   fff8000000000000   -                  -
push_half             3fe0000000000000   fff8000000000000   -                  -
push_copy             3ff0000000000000   fff8000000000000   3ff0000000000000   -
add_and_pop           3ff8000000000000   3fe0000000000000   3fe0000000000000   3ff0000000000000
change_sign           bff8000000000000   3ff8000000000000   3ff8000000000000   -
exchange              bff8000000000000   3ff0000000000000   3ff0000000000000   bff8000000000000
store                 -                  -                  3ff0000000000000   -
sine_cosine           0                  0                  0                  -
pop_two               -                  -                  3ff0000000000000   0
compare               -                  -                  bff8000000000000   bff8000000000000
integer               4340000000000000   fff8000000000000   -                  -
third                 3fd5555555555555   3ff0000000000000   3ff0000000000000   -
huge                  7ff0000000000000   fff8000000000000   -                  -
tiny                  1                  fff8000000000000   -                  -
test                  -                  -                  1                  -
empty                 -                  -                  1                  -
divide                3ff0000000000000   3ff0000000000000   3ff0000000000000   -
status                9884               *                  -                  -
mmx_load              1122334455667788   *                  -                  -
mmx_copy              1122334455667788   *                  1122334455667788   -
mmx_add               22446688aaccee10   1122334455667788   1122334455667788   1122334455667788
mmx_store             -                  -                  22446688aaccee10   -
mmx_move              aaccee10           *                  22446688aaccee10   -
mmx_to_vector         22446688aaccee10   *                  22446688aaccee10   -
mmx_end               -                  -                  -                  -
tags                  ffff               *                  -                  -
"""

#                     st(0)              st(1) before       mm1
AT_ANY_INSTRUCTION = """
push_one              3ff0000000000000   fff8000000000000   0
push_copy             3ff0000000000000   3ff0000000000000   *
add_and_pop           3ff8000000000000   3fe0000000000000   *
store                 bff8000000000000   bff8000000000000   *
sine_cosine           3ff0000000000000   bff8000000000000   *
empty                 fff8000000000000   7ff0000000000000   *
divide                3ff0000000000000   7ff0000000000000   *
mmx_load              *                  *                  1122334455667788
mmx_add               *                  *                  22446688aaccee10
mmx_end               fff8000000000000   *                  22446688aaccee10
tags                  fff8000000000000   fff8000000000000   22446688aaccee10
exit                  fff8000000000000   fff8000000000000   22446688aaccee10
"""

#                     destination        k1       k2 before  first source
MASKS = """
mask_set              5a5a               5a5a     0          5a5a
mask_not              a5a5               5a5a     0          5a5a
mask_get              a5a5               5a5a     a5a5       a5a5
mask_compare          5a5a               5a5a     a5a5       22446688aaccee10
under_mask            2244668800000000   5a5a     a5a5       22446688aaccee10
exit                  *                  5a5a     a5a5       -
"""


def symbols(program) -> dict[str, int]:
    output = subprocess.run(["nm", str(program)], stdout=subprocess.PIPE, text=True, check=True)
    return {name: int(value, 16)
            for value, _, name in filter(lambda words: len(words) == 3,
                                         map(str.split, output.stdout.splitlines()))}


def number(text: str, labels: dict[str, int]) -> str:
    """A cell of a table as the log has it."""
    if text in "-*":
        return text
    name, _, offset = text.partition("+")
    base = labels[name] if name in labels else int(name, 16)
    return f"{base + int(offset or '0', 16):x}"


def expected(table: str, labels: dict[str, int]) -> dict[str, list[list[str]]]:
    rows: dict[str, list[list[str]]] = {}
    for label, *cells in map(str.split, table.strip().splitlines()):
        rows.setdefault(label, []).append([number(cell, labels) for cell in cells])
    return rows


class Values(unittest.TestCase):
    def captured(self, program, capture, *options):
        """The values of each execution, by address, and the events file."""
        folder = temporary_folder(self)
        result = profile([program], f"--capture={capture}", f"--values-log={folder}/log", *options,
                         plugin=VALUES, out=folder / "out")
        executions: dict[int, list[list[str]]] = {}
        for address, *values in map(str.split, (folder / "log").read_text().splitlines()):
            executions.setdefault(int(address, 16), []).append(values)
        return result, executions, read_events(folder / "out")

    def check(self, table: str, capture: str, *options, program=PROGRAMS / "values"):
        labels = symbols(program)
        result, executions, events = self.captured(program, capture, *options)
        self.assertEqual(result.returncode, 17, result.stderr)
        self.assertEqual(events.summary[events.events.index("Missing")], 0)
        for label, rows in expected(table, labels).items():
            with self.subTest(label):
                found = executions[labels[label]]
                self.assertEqual(len(found), len(rows))
                for row, values in zip(rows, found):
                    shown = ["*" if cell == "*" else value for cell, value in zip(row, values)]
                    self.assertEqual(shown, row)

    def test_memory(self):
        self.check(MEMORY, "address,loaded,stored,stored!")

    def test_registers(self):
        self.check(REGISTERS, "destination,destination!,source0,source1")

    def test_destination_of_system_calls(self):
        """As it was before, also where nothing else needs that: the call changes it."""
        self.check("exit behind", "destination")

    def test_others(self):
        self.check(OTHERS, "gpr3,gpr6,taken,target,vector3")

    def test_x87_and_mmx(self):
        program = PROGRAMS / "register_values"
        for options in ((), ("--stress=yes",)):
            self.check(X87_AND_MMX, "destination,destination!,source0!,source1!", *options,
                       program=program)
            self.check(AT_ANY_INSTRUCTION, "st0,st1!,mmx1", *options, program=program)

    def test_masks(self):
        if "avx512bw" not in Path("/proc/cpuinfo").read_text():
            self.skipTest("this processor lacks AVX-512")
        self.check(MASKS, "destination,mask1,mask2!,source0!",
                   program=PROGRAMS / "register_values")

    def test_names_of_registers(self):
        shown = run([ASSAY, "plugins", PLUGINS / "registers.so"])
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        captures = shown.stdout.partition("Captures by default:\n")[2].splitlines()
        self.assertEqual(captures[:2], ["  data references",
                                        "  instruction fetches among the data references"])
        values = captures[2].removeprefix("  values of instructions: ").split(", ")
        self.assertEqual(values, ["latency", "x87 register 0", "register 3", "mask register 1",
                                  "MMX register 2", "vector 31", "x87 register 7 before"])

    def test_under_stress(self):
        self.check(MEMORY, "address,loaded,stored,stored!", "--stress=yes")
        self.check(OTHERS, "gpr3,gpr6,taken,target,vector3", "--stress=yes")

    def test_latency(self):
        _, executions, _ = self.captured(PROGRAMS / "values", "latency")
        labels = symbols(PROGRAMS / "values")
        for label in ("load", "multiply", "zero"):
            ticks = int(executions[labels[label]][0][0], 16)
            self.assertTrue(0 < ticks < 10**9, (label, ticks))
        self.assertEqual(executions[labels["conditional"]][0], ["-"])

    def test_no_value_at_all(self):
        """Then it is said which instruction was executed."""
        _, executions, events = self.captured(PROGRAMS / "values", "vector31")
        self.assertEqual(len(executions[symbols(PROGRAMS / "values")["conditional"]]), 3)
        self.assertEqual(events.summary[events.events.index("Missing")], 0)

    def test_faults_and_single_elements(self):
        """What faults has values when it is executed once more, and only then."""
        program = PROGRAMS / "unusual_values"
        result, executions, events = self.captured(program, "address,loaded,stored,stored!")
        self.assertEqual(result.stdout, run([program]).stdout)
        self.assertEqual(events.summary[events.events.index("Missing")], 2)
        labels = {name: value % 4096 for name, value in symbols(program).items()}
        wanted = {"faulting_store": ["-", "4d", "0"], "faulting_modify": ["4d", "52", "4d"]}
        if "gathered" in result.stdout:  # with AVX2
            wanted |= {"gather_here": ["b", "-", "-"], "masked_load": ["-", "-", "-"]}
        if "by mask" in result.stdout:  # with AVX-512
            wanted |= {"gather_upper": ["f", "-", "-"], "gather_high": ["10", "-", "-"]}
        if "cleared" in result.stdout:  # AMD's
            wanted |= {"cleared_line": ["-", "0", "2"]}
        for label, values in wanted.items():
            with self.subTest(label):
                found = [row[1:] for address, rows in executions.items() for row in rows
                         if address % 4096 == labels[label] and row[0] != "-"]
                self.assertEqual(found, [values])

    def test_every_execution_is_seen(self):
        """Also through libc, the dynamic linker and threads."""
        for name, arguments in (("work", ()), ("calling", ()), ("threads", ("mutex",))):
            with self.subTest(name):
                folder = temporary_folder(self)
                profile([PROGRAMS / name, *arguments], plugin=VALUES, out=folder / "out",
                        timeout=120)
                events = read_events(folder / "out")
                self.assertGreater(events.summary[0], 1000)
                self.assertEqual(events.summary[1], 0)


if __name__ == "__main__":
    unittest.main()
