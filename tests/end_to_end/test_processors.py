#!/usr/bin/env python3
"""The driver on processors that this machine's is not: without XSAVE, without XSAVEOPT, and where
rdfsbase and its relatives are undefined. The driver, and the program in it, run under QEMU."""

import shutil
import sys
import unittest

from support import ASSAY, BUILD, PROGRAMS, SKIPPED, installed, run, temporary_folder

DRIVER = BUILD / "framework/driver/native/assay-driver-native"

# QEMU turns the order of the environment around, and the driver's own variable has to come first.
WRAPPER = f"""#!{sys.executable}
import os, sys
variables = dict(reversed(list(os.environ.items())))
words = ["qemu-x86_64", "-cpu", "{{processor}}", "{DRIVER}", *sys.argv[1:]]
os.execvpe(words[0], words, variables)
"""

# Without XSAVE; and with it, but with XSAVEOPT hidden.
PROCESSORS = ("qemu64", "max,-xsaveopt")


class Processors(unittest.TestCase):
    def assay_on(self, processor):
        """A build that differs from BUILD in its driver."""
        folder = temporary_folder(self)
        shutil.copy(ASSAY, folder / "assay")
        for name in ("plugins", "tools", "_assay"):
            (folder / name).symlink_to(BUILD / name)
        drivers = folder / "framework/driver/native"
        drivers.mkdir(parents=True)
        (drivers / DRIVER.name).write_text(WRAPPER.format(processor=processor))
        (drivers / DRIVER.name).chmod(0o755)
        return folder / "assay"

    def check(self, *program):
        for processor in PROCESSORS:
            with self.subTest(processor=processor):
                alone = run(["qemu-x86_64", "-cpu", processor, *program])
                under = run([self.assay_on(processor), "--quiet", "--plugin=cache",
                             "--out=/dev/null", "--", *program])
                self.assertEqual((under.returncode, under.stdout), (alone.returncode, alone.stdout),
                                 under.stderr)

    def test_operands_in_segments(self):
        self.check(PROGRAMS / "gs_segment", "operands")
        self.check(PROGRAMS / "gs_segment", "hidden_operands")

    def test_program_with_libraries(self):
        self.check("/usr/bin/sort", "-r", __file__)

    def test_more_references_than_a_buffer_holds(self):
        self.check("/usr/bin/sha256sum", ASSAY)

    def test_vector_registers_in_signal_frames(self):
        self.check(PROGRAMS / "signal_frames", "alternate_stack")
        self.check(PROGRAMS / "signal_frames", "vector_state")

    def test_handlers_begin_with_initial_registers(self):
        """As the kernel starts them; QEMU leaves what was interrupted."""
        program = [PROGRAMS / "signal_frames", "state_in_handlers"]
        for processor in PROCESSORS:
            under = run([self.assay_on(processor), "--quiet", "--plugin=cache", "--out=/dev/null",
                         "--", *program])
            self.assertEqual((under.returncode, under.stdout), (0, run(program).stdout),
                             under.stderr)


if __name__ == "__main__":
    if not installed("qemu-x86_64"):
        print("skipped: no qemu-x86_64")
        sys.exit(SKIPPED)
    unittest.main()
