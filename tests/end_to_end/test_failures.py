#!/usr/bin/env python3
"""Wrong input, full disks, crashing profilers: one line that says it, and the right status."""

import base64
import gzip
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import unittest
from pathlib import Path

import support
from support import ASSAY, GEOMETRY, PLUGINS, PROGRAMS, profile, read_events, run

FAILURE, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
WORK = [PROGRAMS / "work"]

# Offsets in an ELF header (elf.h, Elf64_Ehdr) and in a program header (Elf64_Phdr).
E_CLASS, E_MACHINE, E_PHOFF, E_PHNUM = 4, 18, 32, 56
EM_MIPS = 8
P_OFFSET, P_FILESZ, P_SIZE = 8, 32, 56
PT_INTERP, PT_NOTE = 3, 4


def segments(image):
    """Of each program header, where it is in the file and its type."""
    begin, = struct.unpack_from("<Q", image, E_PHOFF)
    count, = struct.unpack_from("<H", image, E_PHNUM)
    places = range(begin, begin + count * P_SIZE, P_SIZE)
    return [(at, struct.unpack_from("<I", image, at)[0]) for at in places]



class Failures(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.out = self.folder / "events"

    def refused(self, result, status, *words):
        """The run failed with this status and one line that contains the words."""
        self.assertEqual(result.returncode, status, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], r"^assay: ")
        for word in words:
            self.assertIn(str(word), lines[0])
        self.assertEqual(list(self.folder.glob("events*")), [], "a file was left behind")

    def elf(self, name, change):
        """A copy of an executable, changed."""
        path = self.folder / name
        path.write_bytes(change(bytearray(WORK[0].read_bytes())))
        path.chmod(0o755)
        return [path]

    # --- The command line

    def test_no_program(self):
        result = run([ASSAY, "--plugin=cache"])
        self.assertEqual(result.returncode, FAILURE)
        self.assertNotEqual(result.stderr, "")

    def test_missing_plugin(self):
        self.refused(profile(WORK, plugin="no-such-profiler", out=self.out), FAILURE,
                     "no-such-profiler")
        self.refused(profile(WORK, plugin="/nonexistent/mine.so", out=self.out), FAILURE,
                     "/nonexistent/mine.so")

    def test_library_that_is_no_profiler(self):
        library = next(path for path in (
            "/usr/lib/x86_64-linux-gnu/libz.so.1", "/lib/x86_64-linux-gnu/libc.so.6")
            if os.path.exists(path))
        self.refused(profile(WORK, plugin=library, out=self.out), FAILURE, library)

    def test_file_that_is_no_library(self):
        path = self.folder / "text.so"
        path.write_text("not a library\n")
        self.refused(profile(WORK, plugin=path, out=self.out), FAILURE, path)

    def test_profiler_of_another_abi(self):
        self.refused(profile(WORK, plugin=PLUGINS / "wrong_abi.so", out=self.out), FAILURE,
                     "wrong_abi.so", "version")

    def test_unusable_option_values(self):
        for option in ("--D1=nonsense", "--D1=1000,3,64", "--I1=32768,8", "--LL=32768,8,63",
                       "--D1="):
            with self.subTest(option):
                self.refused(profile(WORK, option, out=self.out), FAILURE, "D1"
                             if "D1" in option else option[2:4])

    def test_caches_of_more_sets_than_a_filter_has(self):
        """Their tags are as much address space as there may not be: then that is said."""
        for option in ("--I1=68719476736,1,16", "--D1=68719476736,1,16"):
            with self.subTest(option):
                result = profile(WORK, option, out=self.out)
                if result.returncode != 0:
                    self.refused(result, FAILURE, "no memory for the tables")

    def test_unknown_option(self):
        result = profile(WORK, "--no-such-option=1", out=self.out)
        self.assertEqual(result.returncode, FAILURE)
        self.assertIn("no-such-option", result.stderr)

    def test_unreadable_configuration(self):
        for path in ("/nonexistent.yaml", self.folder):
            with self.subTest(path):
                self.refused(profile(WORK, f"--config={path}", out=self.out), FAILURE,
                             "cannot read the configuration file", path)

    def test_fifos(self):
        """Nobody writes to them: to open one must not wait for that."""
        fifo = self.folder / "fifo.so"
        os.mkfifo(fifo)
        machine = self.folder / "machine.yaml"
        machine.write_text("caches:\n  D1: {size: 32K, ways: 8, replacement: ./fifo.so}\n")
        for options, words in ((f"--config={fifo}", "configuration file"),
                               (f"--machine=./{fifo.name}", "machine file"),
                               ("--config=/dev/null", "configuration file"),
                               ("--machine=/dev/null", "machine file"),
                               (f"--machine={machine}", fifo.name),
                               (f"--plugin={fifo}", fifo.name)):
            with self.subTest(options):
                result = run([ASSAY, "--plugin=cache", options, "-o", self.out, "--", *WORK],
                             cwd=self.folder, timeout=20)
                self.refused(result, FAILURE, words, "not a regular file")
        for command in (["replay", "--plugin=cache"], ["trace"]):
            with self.subTest(command):
                self.refused(run([ASSAY, *command, fifo], timeout=20), FAILURE,
                             "is no regular file", fifo)

    # --- The program

    def test_program_that_is_not_there(self):
        self.refused(profile(["/nonexistent/program"], out=self.out), NOT_FOUND,
                     "/nonexistent/program")
        self.refused(profile(["no-such-program-on-the-path"], out=self.out), NOT_FOUND,
                     "no-such-program-on-the-path")

    def test_folder(self):
        self.refused(profile([self.folder], out=self.out), NOT_EXECUTABLE, self.folder)

    def test_file_without_permission(self):
        path = self.folder / "data"
        path.write_bytes(WORK[0].read_bytes())
        path.chmod(0o644)
        self.refused(profile([path], out=self.out), NOT_EXECUTABLE, path)

    def test_script_without_interpreter(self):
        path = self.folder / "script"
        path.write_text("#!/nonexistent/interpreter\n")
        path.chmod(0o755)
        result = profile([path], out=self.out)
        self.assertIn(result.returncode, (NOT_EXECUTABLE, NOT_FOUND))
        self.refused(result, result.returncode, "/nonexistent/interpreter")

    def test_scripts_that_lead_nowhere(self):
        for name, interpreter in (("circle", self.folder / "circle"), ("folder", self.folder)):
            with self.subTest(name):
                path = self.folder / name
                path.write_text(f"#!{interpreter}\n")
                path.chmod(0o755)
                self.refused(profile([path], out=self.out), NOT_EXECUTABLE, path)

    def test_text_file(self):
        path = self.folder / "text"
        path.write_text("just text\n")
        path.chmod(0o755)
        self.refused(profile([path], out=self.out), NOT_EXECUTABLE, path)

    def test_empty_file(self):
        path = self.folder / "empty"
        path.touch(0o755)
        self.refused(profile([path], out=self.out), NOT_EXECUTABLE, path)

    def test_32_bit_program(self):
        def change(image):
            image[E_CLASS] = 1
            image[E_MACHINE:E_MACHINE + 2] = struct.pack("<H", EM_MIPS)
            return image
        self.refused(profile(self.elf("small", change), out=self.out), NOT_EXECUTABLE, "small",
                     "32-bit")

    def test_program_of_another_processor(self):
        def change(image):
            image[E_MACHINE:E_MACHINE + 2] = struct.pack("<H", EM_MIPS)
            return image
        self.refused(profile(self.elf("foreign", change), out=self.out), NOT_EXECUTABLE, "foreign")

    def test_truncated_programs(self):
        for size in (1, 4, 16, 63, 64, 100, 500):
            with self.subTest(size):
                self.refused(profile(self.elf("cut", lambda image: image[:size]), out=self.out),
                             NOT_EXECUTABLE, "cut")

    def test_program_cut_within_a_segment(self):
        whole = len(WORK[0].read_bytes())
        for size in (1000, 4096, whole // 2):
            with self.subTest(size):
                self.refused(profile(self.elf("cut", lambda image: image[:size]), out=self.out),
                             NOT_EXECUTABLE, "cut", "segment")

    def test_program_without_its_loader(self):
        name = b"/lib64/ld-linux"

        def change(image):
            return image.replace(name, b"/no" + name[3:], 1)
        self.refused(profile(self.elf("homeless", change), "--LL=33554432,16,64", out=self.out),
                     NOT_FOUND, "homeless", "/nob64/ld-linux")

    def test_program_whose_loader_has_no_proper_name(self):
        """Empty, not terminated, too short or too long: the kernel does not execute these either."""
        name = WORK[0].read_bytes().index(b"/lib64/ld-linux")

        def change(offset, size):
            def changed(image):
                at = next(at for at, kind in segments(image) if kind == PT_INTERP)
                image[at + P_OFFSET:at + P_OFFSET + 8] = struct.pack("<Q", offset)
                image[at + P_FILESZ:at + P_FILESZ + 8] = struct.pack("<Q", size)
                return image
            return changed
        for offset, size in ((8, 8), (name, 10), (name, 1), (name, 0), (0, 5000), (name, 1 << 63),
                             (1 << 40, 28)):
            with self.subTest(offset=offset, size=size):
                self.refused(profile(self.elf("nameless", change(offset, size)), out=self.out),
                             NOT_EXECUTABLE, "nameless", "dynamic linker")

    def test_program_with_two_loaders(self):
        """The first counts."""
        def change(image):
            at = next(at for at, kind in reversed(segments(image)) if kind == PT_NOTE)
            image[at:at + 4] = struct.pack("<I", PT_INTERP)
            return image
        result = profile(self.elf("twice", change), "--quiet", *GEOMETRY, out=self.out)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_program_at_the_address_of_the_driver(self):
        code = b"\xb8\x3c\0\0\0\x31\xff\x0f\x05"  # exit(0)
        base, headers = 0x7ebff0000000, 64 + P_SIZE
        header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack(
            "<HHIQQQIHHHHHH", 2, 62, 1, base + headers, 64, 0, 0, 64, P_SIZE, 1, 0, 0, 0)
        size = headers + len(code)
        segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
        program = self.elf("fixed", lambda image: header + segment + code)
        self.assertEqual(run(program).returncode, 0)
        self.refused(profile(program, "-q", out=self.out), FAILURE, "fixed: cannot be loaded at its "
                     "address: File exists")
        self.assertEqual(profile(program, "-q", "--aslr=yes", out=self.out).returncode, 0)

    def test_program_whose_headers_lie(self):
        def change(image):
            image[E_PHOFF:E_PHOFF + 8] = struct.pack("<Q", 1 << 60)
            return image
        self.refused(profile(self.elf("lying", change), out=self.out), NOT_EXECUTABLE, "lying")

    # --- The output

    def test_output_in_a_folder_that_is_not_there(self):
        # With a geometry of its own, so that no remark on the processor's is due.
        self.refused(profile(WORK, "--LL=33554432,16,64", out="/nonexistent/folder/events"),
                     FAILURE, "/nonexistent/folder/events")

    def test_output_that_is_a_folder(self):
        self.refused(profile(WORK, "--LL=33554432,16,64", out=self.folder), FAILURE, self.folder)

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_output_without_permission(self):
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        self.refused(profile(WORK, "--LL=33554432,16,64", out=self.out), FAILURE, self.out)

    def test_profilers_files_that_cannot_be_written(self):
        """The program is not started, and nothing is made or changed."""
        (self.folder / "circle").symlink_to("circle")
        (self.folder / "dangling").symlink_to(self.folder / "none" / "file")
        program = ["touch", self.folder / "started"]
        for name, reason in (("none/file", "No such file"), ("", "Is a directory"),
                             ("circle", "Too many levels"), ("dangling", "No such file"),
                             ("x" * 300, "name too long")):
            for plugin, option in (("bbv", "bb-out-file"), ("bbv", "pc-out-file"),
                                   ("used_bytes", "usage-report")):
                with self.subTest(f"{option}={name}"):
                    self.refused(profile(program, f"--{option}={self.folder}/{name}", plugin=plugin,
                                         out=self.out), FAILURE, reason)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         ["circle", "dangling"])

    def test_profilers_file_that_is_there_stays_until_it_is_written(self):
        (self.folder / "vectors").write_text("kept")
        program = ["cat", self.folder / "vectors"]
        result = profile(program, f"--bb-out-file={self.folder}/vectors",
                         f"--pc-out-file={self.folder}/pcs", plugin="bbv", out=self.out)
        self.assertEqual((result.returncode, result.stdout), (0, "kept"))
        self.assertNotIn("kept", (self.folder / "vectors").read_text())

    def test_two_outputs_in_one_file(self):
        (self.folder / "there").touch()
        (self.folder / "link").symlink_to("there")
        (self.folder / "to_be").symlink_to("new")
        for plugin, first, second, options in (
                ("bbv", "--bb-out-file", "--pc-out-file", ["there", "there"]),
                ("bbv", "--out", "--pc-out-file", ["there", "./there"]),
                ("bbv", "--out", "--bb-out-file", ["there", "link"]),
                ("bbv", "--out", "--bb-out-file", ["to_be", "new"]),
                ("bbv", "--out", "--bb-out-file", ["a.%p.cat", "a.%p.%n"]),
                ("bbv,used_bytes", "--pc-out-file", "--usage-report", ["new", "new"]),
                ("counts,values", "--log", "--values-log", ["new", "new"])):
            with self.subTest(f"{first} {second} {options}"):
                names = [f"{option}={self.folder}/{name}"
                         for option, name in zip((first, second), options)]
                plugin = ",".join(str(PLUGINS / f"{name}.so") if name in ("counts", "values")
                                  else name for name in plugin.split(","))
                result = run([ASSAY, f"--plugin={plugin}", f"--out={self.out}", *names, "--", "cat"])
                self.refused(result, FAILURE, f"{first} and {second} name the same file: ")
        result = run([ASSAY, "--plugin=bbv", "--out=bb.out.%p", "--", "cat"])  # as by default
        self.refused(result, FAILURE, "--out and --bb-out-file name the same file: bb.out.")
        result = profile(["true"], "--bb-out-file=/dev/null", "--pc-out-file=/dev/null",
                         plugin="bbv")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_control_characters_in_a_summary(self):
        result = profile(WORK, plugin=PLUGINS / "careless.so", out=self.out,
                         env={**os.environ, "ASSAY_CARELESS": "latin-1-summary"})
        self.assertRegex(result.stderr, r"\A==(\d+)== br\\xfccken\n==\1== \t\\x1b\[31m\u00e9\nassay: ")

    # --- What the driver does not run yet: the profile so far is kept

    def check_unsupported(self, program, reason):
        result = profile(program, "-q", out=self.out)
        self.assertEqual(result.returncode, FAILURE, result.stderr)
        self.assertEqual([reason in line for line in result.stderr.splitlines()].count(True), 1,
                         result.stderr)
        self.assertIn("incomplete", self.out.read_text())

    def test_segments_of_the_driver(self):
        for case in ("mov_fs", "pop_fs", "lfs", "mov_gs", "pop_gs", "lgs"):
            with self.subTest(case):
                self.check_unsupported([PROGRAMS / "segments", case],
                                       f": {case.partition('_')[0]}")

    def test_tiles(self):
        """AMX is refused where the kernel has it, whether or not the program may use it, and no
        instruction elsewhere."""
        program = [PROGRAMS / "processor", "tile"]
        if " amx_tile " in Path("/proc/cpuinfo").read_text():
            self.check_unsupported(program, ": ldtilecfg (AMX)")
        else:
            result = profile(program, "-q", out=self.out)
            self.assertEqual((result.returncode, result.stderr), (-signal.SIGILL, ""))

    def check_full(self, out):
        """The program has run, and its profile is saved elsewhere."""
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        result = profile(WORK, "--quiet", out=out, env={**os.environ, "TMPDIR": str(elsewhere)})
        self.assertEqual(result.returncode, FAILURE, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("No space left", result.stderr)
        self.assertEqual(result.stdout, run(WORK).stdout)
        saved = list(elsewhere.iterdir())
        self.assertEqual(len(saved), 1)
        self.assertIn(str(saved[0]), result.stderr)
        events = read_events(saved[0])
        self.assertEqual(events.totals(), events.summary)

    def test_full_device(self):
        self.check_full("/dev/full")

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", disk]).returncode != 0:
            self.skipTest("tmpfs cannot be mounted here")
        self.addCleanup(run, ["umount", disk])
        self.check_full(disk / "events")
        self.assertEqual(list(disk.iterdir()), [])

    @unittest.skipUnless(os.geteuid() == 0, "giving files away needs root")
    def test_links_of_others(self):
        """In a folder like /tmp: neither as --out, nor where a full disk's profile is saved."""
        shared, victim = self.folder / "shared", self.folder / "victim"
        shared.mkdir()
        shared.chmod(0o1777)
        victim.write_text("untouched")
        link = shared / "link"
        link.symlink_to(victim)
        os.chown(link, 1234, 1234, follow_symlinks=False)
        for option, plugin in ("out", "cache"), ("bb-out-file", "bbv"):
            with self.subTest(option):
                self.refused(profile(["touch", self.folder / "events"], f"--{option}={link}",
                                     plugin=plugin), FAILURE, link, "belongs to another user")
        profile(WORK, "-q", *GEOMETRY, out=self.out)
        for command in (["merge", "-o", link], ["export", "--format=json", "-o", link],
                        ["report", "-o", link], ["diff", "-o", link, self.out]):
            with self.subTest(command[0]):
                result = run([ASSAY, *command, self.out])
                self.assertEqual(result.returncode, support.failure_status(command))
                self.assertIn("belongs to another user", result.stderr)
        traps = f"ln -s {victim} {shared}/assay.out.$$; chown -h 1234 {shared}/assay.out.$$"
        result = profile(["sh", "-c", traps], "-q", "--trace-children=no", out="/dev/full",
                         env={**os.environ, "TMPDIR": str(shared)})
        self.assertEqual(result.returncode, FAILURE)
        self.assertIn("the profile is lost: ", result.stderr)
        self.assertIn("belongs to another user", result.stderr)
        self.assertEqual(victim.read_text(), "untouched")

    # --- Profilers that fail

    def test_crashing_profiler_does_not_take_the_program_down(self):
        """Before the program starts, it is an error; later, the program runs to its end."""
        crash = PLUGINS / "crash.so"
        for function in ("vp_name", "vp_description", "vp_init", "vp_events", "vp_derived",
                         "vp_option_table", "vp_options", "vp_prof_init", "vp_prof_process",
                         "vp_finish", "vp_summary"):
            with self.subTest(function):
                result = profile(WORK, plugin=crash, out=self.out,
                                 env={**os.environ, "ASSAY_CRASH_IN": function})
                self.assertEqual(result.returncode, FAILURE, "no profiler is left")
                self.assertIn("crash", result.stderr)
                self.assertIn(function, result.stderr)
                if function in ("vp_prof_process", "vp_finish", "vp_summary"):
                    self.assertEqual(result.stdout, run(WORK).stdout, result.stderr)
                self.out.unlink(missing_ok=True)

    def test_crash_behind_the_end_leaves_the_file(self):
        for function in ("vp_prof_release", "vp_release"):
            with self.subTest(function):
                result = profile(WORK, plugin=PLUGINS / "crash.so", out=self.out,
                                 env={**os.environ, "ASSAY_CRASH_IN": function})
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(function, result.stderr)
                self.assertEqual(read_events(self.out).summary, [0])

    def test_exit_in_a_profiler_ends_that_profiler_only(self):
        """Also after it has said something, and when two of them do it."""
        garbage, counts, crash = (PLUGINS / f"{name}.so" for name in ("garbage", "counts", "crash"))
        for function in ("vp_prof_process", "vp_finish", "vp_summary", "vp_prof_release",
                         "vp_release"):
            for how in ("exit", "quick_exit"):
                with self.subTest(function=function, how=how):
                    result = profile(WORK, plugin=f"{crash},{garbage},{counts}", out=self.out,
                                     env={**os.environ, "ASSAY_CRASH_IN": function,
                                          "ASSAY_CRASH_BY": how, "ASSAY_GARBAGE": "exit"})
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertEqual(result.stdout, run(WORK).stdout, result.stderr)
                    lost = [line for line in result.stderr.splitlines() if " is lost" in line]
                    self.assertEqual(len(lost), 2, result.stderr)
                    self.assertRegex("\n".join(lost),
                                     rf"crash is lost.*: its {function} called {how}(?m:$)")
                    self.assertIn("Refs", read_events(self.out).events)
                    self.out.unlink()

    def test_heap_that_is_preloaded(self):
        """Whose operator delete calls free, from wherever it is."""
        found = sorted(Path("/usr/lib/x86_64-linux-gnu").glob("libjemalloc.so.*"))
        if not found:
            self.skipTest("no libjemalloc")
        counts, crash = (PLUGINS / f"{name}.so" for name in ("counts", "crash"))
        result = profile(WORK, "-q", plugin=f"{crash},{counts}", out=self.out,
                         env={**os.environ, "LD_PRELOAD": str(found[0]),
                              "ASSAY_CRASH_IN": "vp_finish"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("crash is lost", result.stderr)
        self.assertIn("Ir", read_events(self.out).events)

    def test_exit_on_a_thread_of_a_profiler_is_told(self):
        for function in ("vp_init", "vp_prof_process", "vp_finish"):
            with self.subTest(function):
                result = profile(WORK, "-q", plugin=PLUGINS / "crash.so", out=self.out,
                                 env={**os.environ, "ASSAY_CRASH_IN": function,
                                      "ASSAY_CRASH_BY": "exit_on_thread"})
                self.refused(result, FAILURE, "crash is lost", "it has called exit on a thread of "
                             "its own")

    def test_a_profiler_without_environment(self):
        counts, crash = (PLUGINS / f"{name}.so" for name in ("counts", "crash"))
        result = profile([WORK[0]], "-q", plugin=f"{crash},{counts}", out=self.out,
                         env={**os.environ, "ASSAY_CRASH_IN": "vp_init",
                              "ASSAY_CRASH_BY": "clearenv"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_profiler_that_closes_all_files_costs_its_own_columns(self):
        counts, crash = (PLUGINS / f"{name}.so" for name in ("counts", "crash"))
        for function in ("vp_options", "vp_prof_init", "vp_prof_process", "vp_finish"):
            for program in (WORK, ["sh", "-c", f"{WORK[0]}; true"]):
                with self.subTest(function, program=program):
                    result = profile(program, "-q", plugin=f"{crash},{counts}", out=self.out,
                                     timeout=300, env={**os.environ, "ASSAY_CRASH_IN": function,
                                                      "ASSAY_CRASH_BY": "close"})
                    self.assertEqual((result.returncode, result.stdout), (0, run(WORK).stdout))
                    self.assertEqual(set(result.stderr.splitlines()), {
                        "assay: the profiler crash is lost, and its columns with it: it has closed "
                        f"files that are not its own, in its {function}"})
                    for path in self.folder.glob("events*"):
                        self.assertEqual(read_events(path).events, ["Ir", "Refs", "Lines"])
                        path.unlink()

    def test_constructors_and_destructors_of_profilers_are_guarded(self):
        counts, garbage, crash = (PLUGINS / f"{name}.so" for name in ("counts", "garbage", "crash"))
        for plugin, how, words in ((crash, "fault", "crashed with signal 11"),
                                   (crash, "exit", "called exit"),
                                   (garbage, "throw-early", "threw an exception: too early")):
            with self.subTest("constructor", how=how):
                result = profile(WORK, plugin=f"{counts},{plugin}", out=self.out,
                                 env={**os.environ, "ASSAY_CRASH_IN": "constructor",
                                      "ASSAY_CRASH_BY": how, "ASSAY_GARBAGE": how})
                self.refused(result, FAILURE, "cannot use", plugin, f"its constructors {words}")
        for how, words in (("fault", "crashed with signal 11"), ("exit", "called exit")):
            with self.subTest("destructor", how=how):
                result = profile(WORK, "-q", plugin=f"{crash},{counts}", out=self.out,
                                 env={**os.environ, "ASSAY_CRASH_IN": "destructor",
                                      "ASSAY_CRASH_BY": how})
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn(f"its destructors {words}", result.stderr)
                self.assertEqual(read_events(self.out).events, ["Crashes", "Ir", "Refs", "Lines"])

    def test_profiler_that_ignores_sigchld(self):
        """How the program ends is known all the same."""
        shell = ["/bin/sh", "-c", "exit 7"]
        result = profile(shell, "-q", plugin=PLUGINS / "garbage.so", out=self.out,
                         env={**os.environ, "ASSAY_GARBAGE": "ignore-children"})
        self.assertEqual((result.returncode, result.stderr), (7, ""))
        ignoring = [sys.executable, "-c", "import os, signal, sys\n"
                    "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                    "os.execv(sys.argv[1], sys.argv[1:])"]
        result = run([*ignoring, ASSAY, "-q", "--plugin=cache", f"--out={self.out}", "--", *shell])
        self.assertEqual((result.returncode, result.stderr), (7, ""))

    def test_names_and_texts_too_long_for_a_file(self):
        crash = PLUGINS / "crash.so"
        for case, words in {
            "long-name": "its name has 257 bytes, more than 256",
            "long-event": "the name of its event 0 has 257 bytes, more than 256",
            "long-text": "the description of its event Crashes has 4097 bytes, more than 4096",
        }.items():
            with self.subTest(case):
                result = profile(WORK, plugin=crash, out=self.out,
                                 env={**os.environ, "ASSAY_CRASH_IN": case})
                self.refused(result, FAILURE, "cannot use", crash, words)

    def test_events_declared_before_a_crash_do_not_count(self):
        result = profile(WORK, plugin=f"{PLUGINS / 'crash.so'},{PLUGINS / 'counts.so'}",
                         out=self.out, env={**os.environ, "ASSAY_CRASH_IN": "huge-table"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("its vp_events crashed", result.stderr)
        self.assertEqual(read_events(self.out).events, ["Ir", "Refs", "Lines"])

    def test_other_profilers_keep_their_columns(self):
        result = profile(WORK, *GEOMETRY, plugin=f"cache,{PLUGINS / 'crash.so'}", out=self.out,
                         env={**os.environ, "ASSAY_CRASH_IN": "vp_finish"})
        self.assertEqual(result.stdout, run(WORK).stdout, result.stderr)
        events = read_events(self.out)
        self.assertIn("D1mr", events.events)
        self.assertEqual(events.totals(), events.summary)

    def test_whatever_a_profiler_returns_costs_only_its_own_columns(self):
        """Garbage, exceptions, exit, endless calls, a damaged heap: one line, and the run goes on."""
        counts, garbage, crash = (PLUGINS / f"{name}.so" for name in ("counts", "garbage", "crash"))
        alone = profile(WORK, "-q", "--references=yes", plugin=counts, out=self.out)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        expected = read_events(self.out).functions["sum_cells"]
        cases = {
            "throw": "threw an exception: something is wrong", "throw-number": "threw an exception",
            "exit": "called exit", "sleep": "did not return within 2 s",
            "loop": "did not return within 2 s", "null": "returned no samples",
            "dangling": "at an invalid address",
            "huge": "2147483647 samples at an invalid address",
            "event": "a sample of event 7, but declares 1", "overflow": "exceed 64 bits",
            "negative": "failed", "finish-sleep": "did not return within 2 s",
            "finish-places": "still returns samples after 2 s", "finish-dangling": "invalid address",
        }
        def check(plugin, words, environment):
            result = profile(WORK, "-q", "--references=yes", "--profiler-timeout=2",
                             plugin=f"{plugin},{counts}", out=self.out, timeout=300,
                             env={**os.environ, **environment})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, alone.stdout)
            said = [line for line in result.stderr.splitlines() if line.startswith("assay:")]
            self.assertEqual(len(said), 1, result.stderr)
            self.assertIn(f"the profiler {plugin.stem} is lost, and its columns with it", said[0])
            self.assertIn(words, said[0])
            self.assertEqual(read_events(self.out).functions["sum_cells"], expected)
        for case, words in cases.items():
            with self.subTest(case):
                check(garbage, words, {"ASSAY_GARBAGE": case})
        for how in ("heap", "abort"):
            with self.subTest(how):
                check(crash, "crashed with signal 6",
                      {"ASSAY_CRASH_IN": "vp_prof_process", "ASSAY_CRASH_BY": how})

    def test_places_that_do_not_exist_are_counted_as_unknown(self):
        """A pc outside of the program is no error: code that was generated has none either."""
        result = profile(WORK, "-q", plugin=PLUGINS / "garbage.so", out=self.out,
                         env={**os.environ, "ASSAY_GARBAGE": "places"})
        self.assertEqual(result.returncode, 0, result.stderr)
        events = read_events(self.out)
        self.assertEqual(events.functions, {"???": events.summary})

    # --- Programs with wild pointers

    def scribble(self, count, value, *options):
        """Has a program store a number into so many counters of blocks of its first thread."""
        def trace_maps(pid):
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
            spans = [(line.split()[2], line.split("-")) for line in lines if "assay-trace" in line]
            return [(int(offset, 16), int(first, 16), int(rest.split()[0], 16))
                    for offset, (first, rest, *_) in spans]
        with subprocess.Popen([ASSAY, "-q", f"--out={self.out}", *options, "--",
                               PROGRAMS / "stray_stores"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as assay:
            pid = int(assay.stdout.readline())
            # The slot's mapping is the only large one behind the tables, which begin the file. Of
            # its counters assay has no mapping, but of the header before them.
            offset, slot, _ = next(span for span in trace_maps(pid)
                                   if span[0] != 0 and span[2] - span[1] > 1 << 26)
            header = next(end - first for at, first, end in trace_maps(assay.pid) if at == offset)
            output, words = assay.communicate(f"{slot + header:x} {count} {value}\n", timeout=60)
        self.assertEqual(output, "stored\n")
        return assay.returncode, words

    def test_stray_stores_into_counters(self):
        """The run, the file and all who read it say so, and no count is impossible."""
        status, words = self.scribble(4000, 4330040640251999351, "--plugin=cache", "--dump-instr=yes",
                                      *GEOMETRY)
        self.assertEqual(status, FAILURE, words)
        self.assertRegex(words, r"\Aassay: the counts are damaged \(the block at 0x[0-9a-f]+ executed "
                         r"433004064025199935\d times within [0-9.]+ s\): the program has probably "
                         r"written over the driver's memory\n\Z")
        events = read_events(self.out)
        self.assertEqual(events.totals(), events.summary)
        self.assertLess(events.summary[0], 10_000_000)
        self.assertIn("#! incomplete the counts are damaged", "\n".join(events.remarks))
        for command in (["annotate"], ["list"], ["diff", self.out], ["merge"],
                        ["export", "--format=callgrind"], ["export", "--format=json"],
                        ["report", "-o", "-"]):
            with self.subTest(command[0]):
                shown = run([ASSAY, *command, self.out])
                self.assertEqual(shown.returncode, 0, shown.stderr)
                if packed := re.search('id="data">([^<]+)<', shown.stdout):
                    shown.stdout = gzip.decompress(base64.b64decode(packed[1])).decode()
                self.assertIn("the counts are damaged", shown.stdout + shown.stderr)

    # --- Damaged events files

    def test_limits_of_the_system(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10240, 10240))

        def small_stack():
            resource.setrlimit(resource.RLIMIT_STACK, (256 * 1024, resource.RLIM_INFINITY))

        def small_address_space():
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))

        result = profile(WORK, "--quiet", out=self.out, preexec_fn=small_address_space)
        self.refused(result, FAILURE, "no address space", "RLIMIT_AS")
        result = profile(["/bin/echo"], out=self.out, preexec_fn=small_files)
        self.assertEqual(result.returncode, 125)
        self.assertRegex(result.stderr, r"^assay: cannot create .*: File too large; raise [^\n]*\n$")
        result = profile(["/bin/echo", "words"], "--quiet", out=self.out, preexec_fn=small_stack)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "words\n", ""))

    def test_annotate_refuses_damaged_files(self):
        self.assertEqual(profile(WORK, out=self.out).returncode, 0)
        whole = self.out.read_bytes()
        for name, content in {
            "empty": b"", "cut": whole[:len(whole) // 2], "text": b"hello\n",
            "no-summary": whole[:whole.rindex(b"summary:")],
            "wrong-summary": whole[:whole.rindex(b"summary:")] + b"summary: 1 2 3 4 5 6 7 8 9\n",
        }.items():
            with self.subTest(name):
                damaged = self.folder / name
                damaged.write_bytes(content)
                result = run([ASSAY, "annotate", damaged])
                self.assertEqual(result.returncode, FAILURE, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn(str(damaged), result.stderr)
        result = run([ASSAY, "annotate", self.folder / "not-there"])
        self.assertEqual(result.returncode, FAILURE, result.stderr)
        self.assertIn("not-there", result.stderr)


if __name__ == "__main__":
    unittest.main()
