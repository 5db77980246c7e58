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
# options: the vDSO computes longer for some times than for others, as where a second has just begun;
# it is hidden with a processor's level.
PROGRAMS_WITH_EQUAL_COUNTS = {
    "ls": (["/bin/ls", "-l", "/usr"], 1, RUNS, "--cpu=x86-64-v2"),
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
        support.require(program[0])
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        result = run([*before, ASSAY, "--plugin=cache", f"--out={folder}/%p", "--quiet",
                      *GEOMETRY, *options, "--", *program], **more)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        files = sorted(OWN_LINES.sub("", file.read_text()) for file in folder.iterdir()
                       if "index." not in file.name)
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


class Sandboxes(unittest.TestCase):
    """What containers have less of than the system outside, by bubblewrap's namespaces."""

    # The whole system, which cannot be written to, and new namespaces of every kind.
    PLAIN = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all"]
    CASES = {
        "read-only": [],
        "unprivileged": ["--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"],
        "nobody": ["--uid", "65534", "--gid", "65534"],
        "no home": ["--unsetenv", "HOME", "--unsetenv", "TMPDIR", "--unsetenv", "XDG_CACHE_HOME"],
        "home that cannot be written to": ["--setenv", "HOME", "/"],
        "no shared memory": ["--tmpfs", "/dev", "--dev-bind", "/dev/null", "/dev/null"],
        "no /sys": ["--tmpfs", "/sys"],
        "no temporary folder": ["--setenv", "TMPDIR", "/nonexistent"],
    }
    SCRIPT = "echo $(/bin/ls -d /proc /usr); (/bin/echo child | /bin/cat); exit 3"

    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.folder.chmod(0o777)

    def sandboxed(self, more, command):
        return run(["bwrap", *self.PLAIN, *more, "--bind", self.folder, self.folder, "--", *command])

    def require_bubblewrap(self):
        if not shutil.which("bwrap") or self.sandboxed([], ["/bin/true"]).returncode != 0:
            self.skipTest("bubblewrap is not installed, or cannot make namespaces here")

    def assay(self, *options):
        return [ASSAY, "--plugin=cache", "--quiet", f"--out={self.folder}/out.%p", *options, "--"]

    def test_as_natively(self):
        self.require_bubblewrap()
        for name, more in self.CASES.items():
            with self.subTest(name):
                program = ["/bin/sh", "-c", self.SCRIPT]
                alone = self.sandboxed(more, program)
                under = self.sandboxed(more, [*self.assay(), *program])
                self.assertEqual((under.returncode, under.stdout, under.stderr),
                                 (3, alone.stdout, ""))
                files = [file for file in self.folder.iterdir() if "index." not in file.name]
                events = [support.read_events(file) for file in files]
                for words in ("/bin/ls -d /proc /usr", "/bin/echo child", "/bin/cat"):
                    found = [one for one in events if one.command == words]
                    self.assertEqual(len(found), 1, words)
                    self.assertGreater(found[0].summary[0], 1000)
                for file in files:
                    file.unlink()

    def test_limits(self):
        self.require_bubblewrap()
        for limit in ("--nofile=32", "--stack=unlimited", "--core=0"):
            with self.subTest(limit):
                result = self.sandboxed([], ["/usr/bin/prlimit", limit, *self.assay(),
                                             "/bin/sh", "-c", self.SCRIPT])
                self.assertEqual((result.returncode, result.stderr), (3, ""))

    @unittest.skipUnless(os.geteuid() == 0, "only root can be a user that runs nothing else")
    def test_limit_of_processes(self):
        """Threads are among them. Root is not limited."""
        user = str(0x7ffffff0)
        as_user = ["/usr/bin/setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        if run([*as_user, "/usr/bin/test", "-x", ASSAY]).returncode != 0:
            self.skipTest("other users cannot reach the build folder")
        def limited(most):
            return run([*as_user, "/usr/bin/prlimit", f"--nproc={most}", *self.assay(),
                        "/bin/sh", "-c", self.SCRIPT])
        enough = limited(32)
        self.assertEqual((enough.returncode, enough.stderr), (3, ""))
        self.check_refused(limited(3), "ulimit -u")

    def check_refused(self, result, *words):
        self.assertEqual(result.returncode, 125, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        for word in ("assay: ", *words):
            self.assertIn(word, lines[0])

    def test_what_is_needed(self):
        """Else one line says what."""
        self.require_bubblewrap()
        program = ["/bin/ls", "/"]
        self.check_refused(self.sandboxed(["--tmpfs", "/proc"], [*self.assay(), *program]),
                           "/proc", "mount")
        self.check_refused(self.sandboxed([], [*self.assay("--out=/out"), *program]),
                           "/out", "Read-only file system")
        for bytes_of_addresses, words in ((2 << 30, "ulimit -v"), (4 << 30, "RLIMIT_AS")):
            small = ["/usr/bin/prlimit", f"--as={bytes_of_addresses}", *self.assay(), *program]
            self.check_refused(self.sandboxed([], small), words)


if __name__ == "__main__":
    unittest.main()
