#!/usr/bin/env python3
"""What a terminal shows while programs run under assay: the same as without it. Needs tmux; each
program runs twice, in sessions of their own, all of them at the same time."""

import shlex
import shutil
import sys
import time
import unittest

import support
from support import ASSAY, ROOT, run

# What runs for longer than a second, after which there would be a line about progress, keys to press, and what is
# shown when there is nothing more to wait for.
TEXT = ROOT / "LICENSE"
PROGRAMS = {
    "bash": (["bash", "-c", "for i in 1 2 3; do echo $i; sleep 1; done; sleep 60"], "", "3"),
    "vim": (["vim", "-n", "-u", "NONE", "-i", "NONE", TEXT], "jj", "MIT License"),
    "less": (["less", TEXT], "j", "MIT License"),
    "htop": (["htop"], "", "F1Help"),
}
PROGRESS = r"assay: \d+ s, [\d,]+ million instructions"


class Terminal(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.server = ["tmux", "-S", self.folder / "socket", "-f", "/dev/null"]
        self.addCleanup(run, [*self.server, "kill-server"])

    def start(self, name, words):
        line = "LESS= HTOPRC=/dev/null " + shlex.join(map(str, words))
        result = run([*self.server, "new-session", "-d", "-s", name, "-x", "80", "-y", "24", line])
        self.assertEqual(result.returncode, 0, result.stderr)

    def profiled(self, words, *options):
        return [ASSAY, "--plugin=cache", f"--out={self.folder}/%p.out", *options, "--", *words]

    def shown(self, name) -> str:
        return run([*self.server, "capture-pane", "-p", "-t", name]).stdout

    def wait_for(self, name, text):
        deadline = time.monotonic() + 300
        while text not in self.shown(name):
            self.assertLess(time.monotonic(), deadline, self.shown(name))
            time.sleep(0.05)

    def test_programs_look_as_natively(self):
        programs = {name: program for name, program in PROGRAMS.items() if shutil.which(name)}
        for name, (words, _, _) in programs.items():
            self.start(f"{name}-alone", words)
            # Children say what they have counted when they end.
            self.start(f"{name}-assay", self.profiled(words, "--trace-children=no"))
        for name, (_, keys, text) in programs.items():
            for session in (f"{name}-alone", f"{name}-assay"):
                self.wait_for(session, text)
                if keys:
                    run([*self.server, "send-keys", "-t", session, keys])
        time.sleep(1.5)  # a progress line would be shown by now
        for name in programs:
            with self.subTest(name):
                deadline = time.monotonic() + 60  # one of them may be slower
                while True:
                    alone, profiled = (self.shown(f"{name}-{how}") for how in ("alone", "assay"))
                    self.assertNotRegex(profiled, PROGRESS)
                    if name == "htop":  # processes differ
                        alone, profiled = (text.splitlines()[-1] for text in (alone, profiled))
                    if alone == profiled or time.monotonic() > deadline:
                        break
                    time.sleep(0.2)
                self.assertEqual(alone, profiled)

    def test_progress_is_gone_at_the_end(self):
        words = ["sh", "-c", '"$@"; echo over; sleep 60', "sh"]
        self.start("shows", [*words, *self.profiled(["sleep", "6"], "--progress=yes")])
        self.wait_for("shows", " million instructions")
        self.wait_for("shows", "over")
        self.assertNotRegex(self.shown("shows"), PROGRESS)


if __name__ == "__main__":
    if not shutil.which("tmux"):
        print("skipped: tmux is not installed")
        sys.exit(support.SKIPPED)
    unittest.main()
