#!/usr/bin/env python3
"""The driver on processors that this machine's is not. With --hide, the driver pretends that the
processor lacks state components or features. Under QEMU, it runs on a processor without XSAVE or
without XSAVEOPT, and where rdfsbase and its relatives are undefined."""

import shutil
import sys
import unittest

from support import ASSAY, BUILD, PROGRAMS, needs, profile, run, temporary_folder

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


@needs("qemu-x86_64")
class Emulated(unittest.TestCase):
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

    def test_state_is_what_the_program_is_told(self):
        """QEMU's "max" has MPX, with its components in XCR0, and protection keys."""
        for processor, cases in zip((*PROCESSORS, "max"), (
                ("told", "signalled"), ("saved", "switched"),
                ("told", "saved", "signalled", "switched"))):
            for case in cases:
                with self.subTest(processor=processor, case=case):
                    under = run([self.assay_on(processor), "--quiet", "--plugin=cache",
                                 "--out=/dev/null", "--", PROGRAMS / "shown_state", case])
                    self.assertEqual((under.returncode, under.stdout), (0, "fits\n"),
                                     under.stderr)

    def test_handlers_begin_with_initial_registers(self):
        """As the kernel starts them; QEMU leaves what was interrupted."""
        program = [PROGRAMS / "signal_frames", "state_in_handlers"]
        for processor in PROCESSORS:
            under = run([self.assay_on(processor), "--quiet", "--plugin=cache", "--out=/dev/null",
                         "--", *program])
            self.assertEqual((under.returncode, under.stdout), (0, run(program).stdout),
                             under.stderr)


# In the middle of the components, as those of MPX are, at their end, and all; instructions that
# save them; and what the driver uses for itself.
HIDDEN = ("zmm_hi256", "opmask", "hi16_zmm", "avx512,bmi2", "pkru", "avx", "xsavec", "xsaveopt",
          "xsavec,xsaveopt,xgetbv1", "xsave", "fsgsbase", "sse3")
# These change how all programs save their state. With the others, some programs run.
ALL_PROGRAMS = ("zmm_hi256", "avx512,bmi2", "xsavec,xsaveopt,xgetbv1", "xsave")
SOME_PROGRAMS = (("work",), ("signal_frames", "vector_state"), ("processor", "saved_state"))
# Their output does not depend on the processor.
PROGRAM_CASES = (("work",), ("work_static",), ("signal_frames", "context"),
                 ("signal_frames", "vector_state"), ("signal_frames", "state_in_handlers"),
                 ("processor", "saved_state"), ("processor", "state_fault"),
                 ("processor", "interrupt_return"), ("threads",))


class Pretended(unittest.TestCase):
    def check(self, hidden, words, expected, *options):
        result = profile(words, "--quiet", *options, f"--hide={hidden}")
        with self.subTest(hidden=hidden, program=words[1:], options=options):
            self.assertEqual((result.returncode, result.stdout), (0, expected), result.stderr)

    def check_state(self, hidden, *options):
        for case in run([PROGRAMS / "shown_state"]).stdout.split():
            self.check(hidden, [PROGRAMS / "shown_state", case], "fits\n", *options)

    def test_state_is_what_the_program_is_told(self):
        for hidden in ("", *HIDDEN):
            self.check_state(hidden)

    def test_state_of_a_level_is_what_the_program_is_told(self):
        """With what no level has hidden, too: a processor of a higher level than is asked for."""
        for level, hidden in (("x86-64-v2", ""), ("x86-64-v2", "avx"), ("x86-64-v2", "xsave"),
                              ("x86-64-v3", ""), ("x86-64-v3", "zmm_hi256"), ("x86-64-v4", "")):
            option = f"--cpu={level}"
            probe = profile(["/bin/true"], "--quiet", option, f"--hide={hidden}")
            if "this processor lacks" not in probe.stderr:
                self.check_state(hidden, option)

    def test_programs_run(self):
        for words in PROGRAM_CASES:
            alone = run([PROGRAMS / words[0], *words[1:]]).stdout
            for hidden in HIDDEN if words in SOME_PROGRAMS else ALL_PROGRAMS:
                self.check(hidden, [PROGRAMS / words[0], *words[1:]], alone)

    def test_registers_of_lazily_bound_calls(self):
        """ld.so saves the registers with arguments while it looks a function up."""
        command = ["/usr/bin/env", "-u", "LD_BIND_NOW", sys.executable, "-S", "-c",
                   "import math, zlib; print(math.hypot(3.0, 4.0), zlib.compress(b'x' * 9).hex())"]
        alone = run(command).stdout
        for hidden in ALL_PROGRAMS + ("avx", "xsavec", "xsaveopt"):
            self.check(hidden, command, alone)

    def test_hidden_is_also_not_saved(self):
        """The frames of signals become smaller, and AT_MINSIGSTKSZ with them."""
        def frame(hidden):
            result = profile([PROGRAMS / "processor", "vector"], "--quiet", f"--hide={hidden}")
            return int(result.stdout.split()[2])

        self.assertLessEqual(frame("avx"), frame("avx512"))
        self.assertLessEqual(frame("avx512"), frame(""))
        self.assertEqual(frame("xsave") % 16, 0)

    def test_xsave_is_undefined_without_it(self):
        result = profile([PROGRAMS / "processor", "state_at_rax"], "--quiet", "--hide=xsave")
        self.assertEqual(result.returncode, -4, result.stderr)  # SIGILL

    def test_level_that_the_pretended_processor_lacks(self):
        for level, hidden, lacks in (("x86-64-v3", "avx", "avx"), ("x86-64-v3", "bmi2", "bmi2"),
                                     ("x86-64-v2", "sse4_2", "sse4_2")):
            result = profile(["/bin/true"], "--quiet", f"--cpu={level}", f"--hide={hidden}")
            self.assertEqual(result.returncode, 125)
            self.assertEqual(result.stderr, f"assay: --cpu={level}: this processor lacks {lacks}; "
                             "use a lower level\n")

    def test_unknown_name(self):
        result = profile(["/bin/true"], "--quiet", "--hide=avx,neon")
        self.assertEqual(result.returncode, 125)
        self.assertRegex(result.stderr,
                         r"^assay: --hide=neon: no such feature; known are avx, [^\n]*pkru[^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
