#!/usr/bin/env python3
"""System calls that would find the driver in the program's process: what they answer, and what is
refused. What is as natively, tests/compat compares."""

import os
import re
import signal
import subprocess
import unittest

import support
from support import ASSAY, BUILD, PLUGINS, PROGRAMS, needs, profile, run

REFUSED = 125
KERNEL = PROGRAMS / "kernel"
TRACING = PROGRAMS / "tracing"
FRAMES = PROGRAMS / "signal_frames"
OLDEST = BUILD / "tests" / "kernels" / "linux_4_18"
COUNTS = PLUGINS / "counts.so"


def run_case(name, *options, program=KERNEL):
    return profile([program, name], "--quiet", *options, plugin=COUNTS)


class Kernel(unittest.TestCase):
    def check_refused(self, name, *words, program=KERNEL):
        result = run_case(name, program=program)
        self.assertEqual(result.returncode, REFUSED, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], r"^assay: ")
        for word in words:
            self.assertIn(word, lines[0])

    def check_all_failed(self, output, calls):
        """Each call has failed, for the reason that the program expects."""
        self.assertEqual(output.splitlines(), ["-1 1"] * calls)

    def test_driver_needs_no_instruction_for_bases(self):
        """Not all kernels allow those that read and set the bases of fs and gs."""
        driver = PLUGINS.parent.parent / "framework/driver/native/assay-driver-native"
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", driver], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("xrstor64", code)
        self.assertEqual(re.findall(r"\b(?:rd|wr)[fg]sbase\b", code), [])

    def test_driver_memory_does_not_exist(self):
        result = run_case("in_the_way")
        self.assertEqual(result.returncode, 0, result.stderr)
        unmapped, *errors, mapped, replaced, unmapped_all = result.stdout.splitlines()
        self.assertEqual((unmapped, mapped, replaced, unmapped_all), ("0", "1", "-1 1", "0"))
        self.assertEqual(errors, ["-1 1"] * 5)

    def test_driver_memory_is_not_replaced(self):
        self.check_refused("mapped_over_driver", "MAP_FIXED", "0x7ebff0000000", "--aslr=yes")
        self.check_refused("moved_over_driver", "MREMAP_FIXED", "0x7ebff0000000")

    def test_the_remedy_helps(self):
        result = run_case("mapped_over_driver", "--aslr=yes")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_data_that_need_an_address_have_it(self):
        """Wherever the driver's memory is."""
        for _ in range(6):
            result = profile([PROGRAMS / "aligned_data"], "--quiet", "--aslr=yes", plugin=COUNTS)
            self.assertEqual((result.returncode, result.stdout), (0, "1\n"), result.stderr)

    def test_a_filter_that_kills(self):
        result = run_case("filter_kills")
        self.assertEqual(result.returncode, -signal.SIGSYS, result.stderr)

    def test_a_filter_on_a_terminal(self):
        """Whether the terminal is in use is not asked for by calls that a filter forbids."""
        leader, follower = os.openpty()
        result = profile([KERNEL, "filter_of_looks"], plugin=COUNTS, stdout=follower,
                         stderr=follower)
        os.close(follower)
        text = support.terminal_text(leader)
        self.assertEqual(result.returncode, 0, text)
        self.assertIn("written", text)

    def test_a_filter_of_advice(self):
        """The driver asks for no memory in advance where a filter forbids it."""
        result = run_case("filter_of_advice")
        alone = subprocess.run([KERNEL, "filter_of_advice"], stdout=subprocess.PIPE, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, alone.stdout), result.stderr)

    def test_code_of_32_bits_behind_a_handler(self):
        self.check_refused("other_segment", "handler", "code segment", program=FRAMES)

    def test_a_traced_program(self):
        self.check_refused("traced", "PTRACE_TRACEME", program=TRACING)

    def test_a_stepped_program(self):
        self.check_refused("stepped", "PTRACE_SINGLESTEP", program=TRACING)

    def test_a_traced_program_runs_natively(self):
        result = profile([TRACING, "traced_program"], plugin=COUNTS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "assay: /bin/echo: its parent traces it; it runs natively")

    def test_a_tracer(self):
        result = profile([TRACING, "tracer"], plugin=COUNTS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_all_failed(result.stdout, 3)
        for request in ("PTRACE_SEIZE", "PTRACE_ATTACH"):
            self.assertRegex(result.stderr, rf"assay: ptrace\({request}\): process \d+ runs under")

    def test_denied(self):
        result = run_case("denied")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_all_failed(result.stdout, 6)

    def check_on_oldest(self, *program):
        """Without the system calls that are newer than Linux 4.18."""
        alone = run([OLDEST, *program])
        under = run([OLDEST, ASSAY, "--plugin=cache", "--out=/dev/null", "--", *program])
        self.assertEqual((under.returncode, under.stdout), (alone.returncode, alone.stdout),
                         under.stderr)
        self.assertNotIn("natively", under.stderr)
        return under.stdout

    def test_oldest_kernel(self):
        self.assertIn("\n-1\n", self.check_on_oldest(KERNEL, "clone3_process"))
        self.check_on_oldest("/bin/sh", "-c", "for i in 1 2; do echo $i | cat; done; exit 9")
        self.check_on_oldest(PROGRAMS / "threads", "raw_clone")
        self.check_on_oldest(PROGRAMS / "relatives", "sharing_sibling")
        if support.allows_base_instructions():
            self.check_on_oldest(PROGRAMS / "thread_ends", "filtered")
        self.check_on_oldest("/usr/bin/python3", "-c", "import subprocess, os, sys\n"
                             "subprocess.run(['/bin/ls', '/'], check=True)\n"
                             "print(hasattr(os, 'pidfd_open') and os.pidfd_open(os.getpid()))")

    @needs("strace")
    def test_strace(self):
        result = profile(["strace", "-o", "/dev/null", "/bin/true"], plugin=COUNTS)
        self.assertEqual(result.returncode, REFUSED, result.stderr)
        self.assertIn("PTRACE_GET_SYSCALL_INFO", result.stderr)

    @needs("gdb")
    def test_gdb(self):
        """It tries what the kernel can, with children that ask to be traced, and then debugs."""
        result = profile(["gdb", "-nx", "-batch", "-ex", "run", "/bin/true"], "--quiet",
                         plugin=COUNTS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("exited normally", result.stdout)


if __name__ == "__main__":
    unittest.main()
