#!/usr/bin/env python3
"""In containers: the same counts as outside."""

import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import support
from support import ASSAY, GEOMETRY, PROGRAMS, ROOT, run

# In which two runs of one program may differ.
OWN_LINES = re.compile(r"^fl=#! (pid|object) .*\n", re.MULTILINE)

CONTAINER = PROGRAMS / "container"
RUNS = 10

# By name: a program, the images whose files it writes, how often it is run in a container, and
# options: the vDSO computes longer for some times than for others.
PROGRAMS_WITH_EQUAL_COUNTS = {
    "ls": (["/bin/ls", "-l", "/usr"], 1, RUNS),
    "sort": (["/usr/bin/sort", ROOT / "LICENSE"], 1, 2),
    "bzip2": (["/bin/bzip2", "-c", ROOT / "meson.build"], 1, 2),
    "python": ([sys.executable, "-S", "-s", "-c", "pass"], 1, 2, "--cpu=x86-64-v2"),
    "static": ([PROGRAMS / "work_static"], 1, 2),
    "not position-independent": ([PROGRAMS / "list"], 1, 2),
    "large": ([PROGRAMS / "large_data"], 1, 2),
    "memory": ([PROGRAMS / "many_mappings"], 2, 4),
    "children": (["/usr/bin/xargs", "-a", "/dev/null", "/bin/ls", "/"], 3, 2),
}


class SameCounts(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def files(self, program, *options, before=(), **more) -> tuple[str, list[str]]:
        """What the program writes, and the events files of its images, in an order of their own."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        result = run([*before, ASSAY, "--plugin=cache", f"--out={folder}/%p", "--quiet",
                      *GEOMETRY, *options, "--", *program], **more)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        files = sorted(OWN_LINES.sub("", file.read_text()) for file in folder.iterdir())
        shutil.rmtree(folder)
        return result.stdout, files

    def test_personality_is_refused(self):
        """Else the other tests would prove nothing."""
        refused = run([CONTAINER, "setarch", "-R", "true"])
        self.assertNotEqual(refused.returncode, 0)
        random = {run([CONTAINER, PROGRAMS / "surroundings", "addresses"]).stdout for _ in range(3)}
        if len(random) == 1:
            self.skipTest("this kernel does not randomise addresses")

    def test_the_same_files_as_outside(self):
        environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        for name, (program, images, runs, *options) in PROGRAMS_WITH_EQUAL_COUNTS.items():
            with self.subTest(name):
                output, expected = self.files(program, *options, env=environment)
                self.assertEqual(len(expected), images)
                for _ in range(runs):
                    found, files = self.files(program, *options, before=[CONTAINER],
                                              env=environment)
                    self.assertEqual(found, output)
                    self.assertEqual(files, expected)

    def test_the_same_threads_as_outside(self):
        """In place, that is: how they wait for one another is a matter of chance, and counts."""
        program = [PROGRAMS / "surroundings", "addresses_of_threads"]
        expected, _ = self.files(program)
        self.assertEqual(len(expected.split()), 6)
        for _ in range(3):
            self.assertEqual(self.files(program, before=[CONTAINER])[0], expected)

    def test_randomised_addresses_still_are(self):
        program = [PROGRAMS / "surroundings", "addresses"]
        places = {self.files(program, "--aslr=yes", before=[CONTAINER])[0] for _ in range(4)}
        self.assertGreater(len(places), 1)


if __name__ == "__main__":
    unittest.main()
