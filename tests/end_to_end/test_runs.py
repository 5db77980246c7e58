#!/usr/bin/env python3
"""References that continue a run are left out of the trace (trace_capture_runs): whatever cuts runs
short, no number changes. tests/programs/hosted/run_ends.c, whose walks are known on paper, and the
same beside a profiler for which all references are recorded."""

import mmap
import os
import signal
import struct
import subprocess
import time
import unittest

import support
from support import ASSAY, PROGRAMS, profile, read_events

RUN_ENDS = PROGRAMS / "run_ends"
EXACT = ("Refs", "Lines", "Pages", "Misal", "LineX", "PageX")
RETURN = 1  # of each call reads its address


class Runs(unittest.TestCase):
    def images(self, case, *options, plugin="effective_address"):
        """Of each program that a process executes: by function, the columns by name."""
        folder = support.temporary_folder(self)
        profile([RUN_ENDS, case], "-q", *options, plugin=plugin, out=folder / "%p")
        # Of a process that executes another program, the last one has its number alone.
        files = sorted((file for file in folder.iterdir() if file.stem != "index"),
                       key=lambda file: (int(file.stem), file.suffix == "", file.suffix))
        found = []
        for file in files:
            events = read_events(file)
            found.append({name: dict(zip(events.events, counts))
                          for name, counts in events.functions.items()})
        return found

    def walks(self, images):
        return [image["walk"]["Refs"] for image in images]

    def check(self, case, *references, options=()):
        """Images make so many references each in their walks, and left out or not is the same."""
        alone = self.images(case, *options)
        self.assertEqual(self.walks(alone), list(references))
        for more in ((), ("--stress=yes",)):
            beside = self.images(case, *options, *more, plugin="effective_address,used_bytes")
            self.assertEqual(self.walks(beside), list(references))
        beside = self.images(case, *options, plugin="effective_address,used_bytes")
        for image, other in zip(alone, beside):
            for function in image.keys() & {"walk", "jump_about", "advance", "main", case}:
                self.assertEqual([image[function][name] for name in EXACT],
                                 [other[function][name] for name in EXACT], function)
        for name in ("StrC", "StrF", "StrI"):
            self.assertEqual([image["walk"][name] for image in alone],
                             [image["walk"][name] for image in beside], name)

    def test_killed(self):
        self.check("killed", 1000 + RETURN)

    def test_forks(self):
        """The child begins anew; its own is killed."""
        self.check("forks", 900 + 3 * RETURN, 510 + 2 * RETURN, 70 + RETURN)

    def test_a_child_that_shares_the_memory(self):
        self.check("vforks", 370 + 3 * RETURN)

    def test_another_program(self):
        self.check("executes", 700 + RETURN, 1000 + RETURN)

    def test_threads_that_end(self):
        self.check("threads_end", 2 * (3 * 1010 + 3) + 12 * RETURN)

    def test_threads_that_are_ended(self):
        self.check("threads_are_ended", 3 * 600 + 50 + 4 * RETURN)

    def test_markers(self):
        self.check("markers", 20 * (50 + RETURN))

    def test_functions(self):
        self.check("forks", 900 + 3 * RETURN, 510 + 2 * RETURN, 70 + RETURN,
                   options=["--toggle=walk"])
        self.check("buffers", 300 * (200 + RETURN), options=["--toggle=walk"])

    def test_instructions(self):
        alone = self.images("buffers", "--from-instruction=200000", "--to-instruction=300001")
        beside = self.images("buffers", "--from-instruction=200000", "--to-instruction=300001",
                             plugin="effective_address,used_bytes")
        self.assertGreater(alone[0]["walk"]["Refs"], 1000)
        for function in ("walk", "jump_about"):
            self.assertEqual([alone[0][function][name] for name in EXACT],
                             [beside[0][function][name] for name in EXACT])

    def test_ends_of_buffers(self):
        self.check("buffers", 300 * (200 + RETURN))

    def test_killed_at_any_time(self):
        """The program itself says how far it has come. One reference of each operand may be told
        twice, or not (docs/internals/captures.md)."""
        for milliseconds in (*range(20), 50, 100):
            with self.subTest(milliseconds=milliseconds):
                rounds, counts = self.killed_after(milliseconds / 1000)
                self.assertGreater(rounds, 0)
                self.assertLessEqual(abs(counts["Refs"] - 2 * rounds), 2)

    def killed_after(self, seconds):
        folder = support.temporary_folder(self)
        progress, out = folder / "progress", folder / "events"
        progress.write_bytes(bytes(4096))
        with open(progress, "r+b") as file, mmap.mmap(file.fileno(), 4096) as shared:
            told = lambda: struct.unpack_from("QQ", shared)
            with subprocess.Popen([ASSAY, "-q", "--plugin=effective_address", f"--out={out}", "--",
                                   RUN_ENDS, "advances"],
                                  env=dict(os.environ, PROGRESS=progress)) as assay:
                while told()[0] == 0 and assay.poll() is None:
                    time.sleep(0.001)
                time.sleep(seconds)
                os.kill(told()[1], signal.SIGKILL)
            rounds = told()[0]
        events = read_events(out)
        self.assertTrue(any("killed by signal 9" in remark for remark in events.remarks))
        return rounds, dict(zip(events.events, events.functions["advance"]))


if __name__ == "__main__":
    unittest.main()
