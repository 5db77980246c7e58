#!/usr/bin/env python3
"""The same counts on any machine: what programs are told of the processor, and where things lie."""

import re
import resource
import shutil
import subprocess
import unittest
from pathlib import Path

import support
from support import GEOMETRY, PROGRAMS, profile

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
# Of the ways in which two runs of one program may differ: the process id, and names of files.
OWN_LINES = re.compile(r"^(fl=#! (pid|object) |cmd:).*\n", re.MULTILINE)

# What glibc makes of a level: `ld.so --list-diagnostics`, in part.
DIAGNOSTICS = {
    "x86.cpu_features.basic.kind": (1, 1, 1),
    "x86.cpu_features.basic.max_cpuid": (0xd, 0xd, 0xd),
    "x86.cpu_features.basic.family": (6, 6, 6),
    "x86.cpu_features.basic.model": (0x2c, 0x3f, 0x55),
    "x86.cpu_features.basic.stepping": (2, 2, 4),
    "x86.cpu_features.isa_1": (3, 7, 0xf),
    "x86.cpu_features.features[0x0].cpuid[0x2]": (0x982201, 0x3cd83201, 0x3cd83201),
    "x86.cpu_features.features[0x0].cpuid[0x3]": (0x17888111, 0x17888111, 0x17888111),
    "x86.cpu_features.features[0x1].cpuid[0x1]": (0, 0x128, 0xd0030128),
    "x86.cpu_features.features[0x1].cpuid[0x2]": (0, 0, 0),
    "x86.cpu_features.features[0x1].cpuid[0x3]": (0, 0, 0),
    "x86.cpu_features.features[0x2].cpuid[0x2]": (1, 0x21, 0x21),
    "x86.cpu_features.features[0x6].cpuid[0x0]": (0, 0, 0),
    "x86.cpu_features.xsave_state_size": (0, 0x380, 0x9c0),
    "x86.cpu_features.data_cache_size": (0x8000, 0x8000, 0x8000),
    "x86.cpu_features.shared_cache_size": (0x800000, 0x800000, 0x800000),
    "x86.cpu_features.non_temporal_threshold": (0x300000, 0x300000, 0x300000),
    "x86.cpu_features.rep_movsb_threshold": (0x800, 0x2000, 0x2000),
    "x86.cpu_features.level1_icache_size": (0x8000, 0x8000, 0x8000),
    "x86.cpu_features.level1_dcache_size": (0x8000, 0x8000, 0x8000),
    "x86.cpu_features.level2_cache_size": (0x100000, 0x100000, 0x100000),
    "x86.cpu_features.level3_cache_size": (0x800000, 0x800000, 0x800000),
    "dl_hwcaps_subdirs_active": (4, 6, 7),
    "dl_hwcap2": (0, 0, 0),
}


def diagnostics(text: str) -> dict[str, int]:
    return {name: int(value, 16) for name, value in re.findall(r"^(\S+)=(0x[0-9a-f]+)$", text,
                                                               re.MULTILINE)}


def glibc_version() -> str:
    text = subprocess.run([LOADER, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"version (\d+\.\d+)", text).group(1)


class Levels(unittest.TestCase):
    def run_at(self, level, *program, **more):
        """Runs a program at a level, and skips the test if this processor is below it."""
        result = profile(program, "--quiet", f"--cpu={level}", *GEOMETRY, **more)
        lacks = re.fullmatch(rf"assay: --cpu={level}: this processor lacks [^;\n]+; "
                             r"use a lower level\n", result.stderr)
        if result.returncode == 125 and lacks:
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    @unittest.skipUnless(LOADER.exists() and glibc_version() == "2.36", "needs glibc 2.36")
    def test_glibc_sees_nothing_but_the_level(self):
        for number, level in enumerate(LEVELS):
            with self.subTest(level):
                found = diagnostics(self.run_at(level, LOADER, "--list-diagnostics"))
                expected = {name: values[number] for name, values in DIAGNOSTICS.items()}
                self.assertEqual({name: found.get(name) for name in expected}, expected)

    def test_xgetbv_and_state_areas_agree(self):
        enabled = {"x86-64-v2": "no xsave\n", "x86-64-v3": "7\n", "x86-64-v4": "e7\n1\n"}
        for level in LEVELS:
            with self.subTest(level):
                program = PROGRAMS / "processor"
                self.assertEqual(self.run_at(level, program, "enabled"), enabled[level])
                self.assertEqual(self.run_at(level, program, "saved_state"), "saved\n")
                self.assertEqual(self.run_at(level, program, "state_fault"), "1\n")
                self.assertEqual(set(self.run_at(level, program, "signal_frame").split()), {"1"})

    def test_mask_at_the_operands_address(self):
        for level in LEVELS[1:]:
            with self.subTest(level):
                self.assertEqual(self.run_at(level, PROGRAMS / "processor", "state_at_rax"),
                                 "saved\n")

    def test_auxiliary_vector(self):
        expected = {"x86-64-v2": "2 0 1440\n", "x86-64-v3": "2 0 1776\n", "x86-64-v4": "6 0 3632\n"}
        for level in LEVELS:
            with self.subTest(level):
                found = self.run_at(level, PROGRAMS / "processor", "vector")
                self.assertEqual(found, expected[level] + "x86_64\nno vdso\n")

    def test_time_without_the_vdso(self):
        """Also of a program that looks for it by itself."""
        for level in LEVELS:
            with self.subTest(level):
                self.assertEqual(self.run_at(level, PROGRAMS / "surroundings", "clocks"),
                                 support.run([PROGRAMS / "surroundings", "clocks"]).stdout)

    def test_cpuid_of_a_level_is_not_the_processors(self):
        self.assertNotEqual(self.run_at("x86-64-v2", PROGRAMS / "processor", "leaves"),
                            self.run_at("host", PROGRAMS / "processor", "leaves"))

    def test_programs_run_at_every_level(self):
        """Lazy binding, string functions, numbers and vectors: the output stays the same."""
        alone = support.run([PROGRAMS / "work"]).stdout
        for level in LEVELS:
            with self.subTest(level):
                self.assertEqual(self.run_at(level, PROGRAMS / "work"), alone)
                self.assertEqual(self.run_at(level, PROGRAMS / "work_static"), alone)


class Layout(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.out = self.folder / "events"

    def addresses(self, *options, program=PROGRAMS / "surroundings", **more) -> str:
        result = profile([program, "addresses"], "--quiet", *options, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 3)
        return result.stdout

    def events(self, level, program, **more) -> str:
        result = profile([program], "--quiet", f"--cpu={level}", *GEOMETRY, out=self.out, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return OWN_LINES.sub("", self.out.read_text())

    def copy(self, path: str) -> Path:
        to = self.folder / path
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAMS / "surroundings", to)
        return to

    def test_environment_does_not_move_anything(self):
        short = self.addresses(env={"FIRST": "1", "SECOND": "2"})
        self.assertEqual(short, self.addresses(env={"FIRST": "1" * 300, "SECOND": "2" * 500}))
        # One that is too long for its slot lies elsewhere; nothing else does.
        first = self.addresses(env={"FIRST": "1" * 50000, "SECOND": "2"}).split()
        self.assertNotEqual(first.pop(2), short.split()[2])
        self.assertEqual(first, short.split()[:2] + short.split()[3:])

    def test_number_of_variables_does_not_move_the_stack_pointer(self):
        few = self.addresses(env={"FIRST": "1", "SECOND": "2"}).split()
        many = self.addresses(env={f"VARIABLE{i}": str(i) for i in range(150)}).split()
        self.assertEqual((few[0], few[4:]), (many[0], many[4:]))

    def test_names_of_files_do_not_move_anything(self):
        near, far = self.copy("p"), self.copy("a/rather/long/name/of/a/folder/and/a_program")
        self.assertEqual(self.addresses(program=near), self.addresses(program=far))
        self.assertEqual(self.addresses(program=near), self.addresses(program=near, cwd="/"))

    def test_limit_of_the_stack_does_not_move_anything(self):
        def more():
            resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.RLIM_INFINITY))

        def unlimited():
            resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)

        self.assertEqual(self.addresses(), self.addresses(preexec_fn=more))
        if resource.getrlimit(resource.RLIMIT_STACK)[1] == resource.RLIM_INFINITY:
            self.assertEqual(self.addresses(), self.addresses(preexec_fn=unlimited))

    def test_levels_do_not_move_what_the_driver_places(self):
        def placed(level: str) -> list[str]:
            words = self.addresses(f"--cpu={level}").split()
            return words[:6] + words[8:]  # where new mappings go is behind ld.so's own

        self.assertEqual(placed("x86-64-v2"), placed("host"))

    def test_addresses_are_those_of_every_machine(self):
        """Behind them stands no size that differs between machines."""
        stack, _, _, _, data, libc, large, mapping, heap, name = (
            int(word, 16) for word in self.addresses().split())
        for address in (stack, data, libc, large, mapping, heap, name):
            self.assertEqual(address >> 32, 0x7ebf)
        self.assertEqual(data >> 24, 0x7ebfb0)

    def test_too_many_strings_for_slots(self):
        words = [str(i) for i in range(20000)]
        result = profile(["/bin/echo", *words], "--quiet")
        self.assertEqual(result.stdout, " ".join(words) + "\n")

    def test_limited_address_space_does_not_move_anything(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (160 << 30, 160 << 30))

        self.assertEqual(self.addresses(), self.addresses(preexec_fn=limit))

    def test_randomised_addresses_still_work(self):
        self.assertNotEqual(self.addresses("--aslr=yes"), self.addresses("--aslr=yes"))

    def test_equal_files(self):
        """All counts and misses, of libc and ld.so too, whatever surrounds the program."""
        for name in ("one/w", "two/folders/another_work"):
            to = self.folder / name
            to.parent.mkdir(parents=True)
            shutil.copy(PROGRAMS / "work", to)
        short = {"A": "1", "B": "2", "HOME": "/"}
        long = {"A": "1" * 300, "B": "2" * 3000, "HOME": "/home/somebody/with/a/long/name"}
        for level in ("x86-64-v2", "x86-64-v3"):
            with self.subTest(level):
                first = self.events(level, "./w", cwd=self.folder / "one", env=short)
                self.assertIn("fn=fill_cells\n", first)
                again = self.events(level, "./w", cwd=self.folder / "one", env=short)
                self.assertEqual(first, again)
                other = self.events(level, "./another_work", cwd=self.folder / "two/folders",
                                    env=long)
                self.assertEqual(first, other)


if __name__ == "__main__":
    unittest.main()
