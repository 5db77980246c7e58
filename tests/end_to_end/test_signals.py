#!/usr/bin/env python3
"""Signals that are sent to assay alone, that a terminal sends, or that the program sends reach the
program once; those that another process sends to the group reach it twice. Signals that arrive while
the driver waits for a thread reach it, too."""

import os
import pty
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support
from support import ASSAY, PLUGINS, PROGRAMS, profile

# Says what comes, until its standard input ends.
PROGRAM = """
import os, select, signal
def say(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, say)
def wait_for_input():
    # A handler of Python's does not run within the call that follows its signal.
    while not select.select([0], [], [], 0.05)[0]:
        pass
{before}
print("ready", flush=True)
{after}
wait_for_input()
"""
A_MOMENT = 0.2  # in which a signal arrives


class Signals(unittest.TestCase):
    def setUp(self):
        self.out = support.temporary_folder(self) / "out"

    def start(self, *options, before="", after="", wrapper=()):
        command = [ASSAY, f"--plugin={PLUGINS / 'counts.so'}", f"--out={self.out}",
                   *options, "--", *wrapper, "/usr/bin/python3", "-c",
                   PROGRAM.format(before=before, after=after)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def check(self, process, *sent):
        """Each way to send a signal makes it arrive: once, if it is sent to assay alone."""
        for send in sent:
            send(process.pid, signal.SIGTERM)
            time.sleep(A_MOMENT)
        output, words = process.communicate(timeout=300)
        self.assertEqual((process.returncode, output.replace("SIGTERM\n", "")), (0, ""), words)
        alone, all_ways = sent.count(os.kill), len(sent)
        self.assertLessEqual(all_ways, output.count("SIGTERM\n"), words)
        self.assertLessEqual(output.count("SIGTERM\n"), alone + 3 * (all_ways - alone), words)

    def test_sent_to_assay_or_to_the_group(self):
        self.check(self.start(), os.kill, os.killpg, os.killpg, os.killpg, os.kill)

    def test_sent_to_both_at_once(self):
        """As timeout(1) does."""
        def both(pid, number):
            os.kill(pid, number)
            os.killpg(pid, number)
        self.check(self.start(), both)

    def test_another_program_of_the_first_process(self):
        self.check(self.start(wrapper=["env"]), os.kill, os.killpg)

    def test_a_program_that_runs_natively(self):
        self.check(self.start("--trace-children=no", wrapper=["env"]), os.kill, os.killpg)

    def test_taken_from_a_descriptor(self):
        """Blocked and taken at once: nothing in the process shows that it has come."""
        before = ("import threading\n"
                  "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
                  "def wait():\n"
                  "    while True:\n"
                  "        print(signal.Signals(signal.sigwait([signal.SIGTERM])).name, flush=True)\n"
                  "threading.Thread(target=wait, daemon=True).start()")
        self.check(self.start(before=before), os.kill, os.killpg)

    def test_of_different_numbers(self):
        process = self.start()
        os.killpg(process.pid, signal.SIGTERM)
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(A_MOMENT)
        output, words = process.communicate(timeout=300)
        self.assertEqual(set(output.splitlines()), {"SIGTERM", "SIGUSR1"}, words)
        self.assertEqual(output.count("SIGUSR1"), 1)

    def test_a_program_in_a_group_of_its_own(self):
        self.check(self.start(before="os.setpgid(0, 0)"), os.kill, os.killpg)

    def test_sent_by_the_program(self):
        process = self.start(after="os.kill(0, signal.SIGTERM)")
        self.assertEqual(process.stdout.readline(), "SIGTERM\n")
        self.check(process)

    def test_ctrl_c(self):
        """The terminal sends to assay and the program."""
        child, terminal = pty.fork()
        if child == 0:
            os.execv(ASSAY, [str(ASSAY), f"--plugin={PLUGINS / 'counts.so'}", f"--out={self.out}", "-q",
                             "--", "sh", "-c", "trap 'echo caught' INT; echo ready; sleep 1; exit 4"])
        said = ""
        while "ready" not in said:
            said += os.read(terminal, 1024).decode()
        os.write(terminal, b"\x03")
        said += support.terminal_text(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 4, said)
        self.assertEqual(said.count("caught"), 1, said)

    def test_sent_by_name(self):
        """As pkill -f does: to all that have the words in their command lines."""
        def by_name(_, number):
            for line in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    found = str(self.out) in line.read_text(errors="replace")
                except OSError:
                    continue
                if found:
                    os.kill(int(line.parent.name), number)
        self.check(self.start(), by_name)

    def test_sent_to_the_group_of_children(self):
        """Their collectors go on, and say what they have to say."""
        process = self.start(after="if os.fork(): wait_for_input(), os.wait()\n"
                                   "else: print('child', flush=True)")
        self.assertEqual(process.stdout.readline(), "child\n")
        os.killpg(process.pid, signal.SIGUSR1)
        self.assertEqual([process.stdout.readline() for _ in range(2)], 2 * ["SIGUSR1\n"])
        output, words = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, words)
        self.assertIn(output, ("", "SIGUSR1\n"))
        self.assertIn("2 processes have run 1 program, 2 in all\n", words)

    def test_while_a_thread_is_waited_for_in_a_string_instruction(self):
        result = profile([PROGRAMS / "signals", "timer_and_strings"], "--quiet", "--stress=yes",
                         plugin=PLUGINS / "counts.so", out=self.out)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "1\n", ""))

    def test_one_that_ends_the_program(self):
        for send in (os.kill, os.killpg):
            process = self.start(before="signal.signal(signal.SIGTERM, signal.SIG_DFL)")
            send(process.pid, signal.SIGTERM)
            self.assertEqual(process.wait(60), -signal.SIGTERM)
            remarks = support.read_events(self.out).remarks
            self.assertTrue(any("killed by signal 15" in line for line in remarks), remarks)


if __name__ == "__main__":
    unittest.main()
