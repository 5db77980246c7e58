#!/usr/bin/env python3
"""Recording and replay: each profiler says the same of a trace as of the program itself."""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from recording_case import MAIN_PROFILERS, QUERY, RecordingCase, text_of
from support import ASSAY, BUILD, PLUGINS, PROGRAMS, run

PROFILERS = [
    *MAIN_PROFILERS,
    ["--plugin=cache", "--machine=generic"],
    ["--plugin=cache,branch,opcode_mix"],
    ["--plugin=reuse"],
    ["--plugin=prefetch"],
    ["--plugin=working_set", "--interval-size=100k"],
    ["--plugin=syscalls"],
]
# Profilers of values, which are in a trace if that is asked for: each value of each execution, those
# of a default list, of another one, and beside a profiler of something else.
VALUES = [
    ["--plugin=classic"],
    ["--plugin=classic", "--values=results,operands"],
    ["--plugin=classic,cache"],
    [f"--plugin={BUILD / 'examples' / 'vp-ldq-addr.so'}"],
]
EACH_VALUE = [
    [f"--plugin={PLUGINS / 'values.so'}",
     "--capture=stored~,loaded~,destination~,source1!~,source0!~,address"],
    [f"--plugin={PLUGINS / 'values.so'}", "--capture=target,stored!,loaded!,taken"],
]


class Record(RecordingCase):
    def test_a_small_program_with_every_profiler(self):
        self.compare([PROGRAMS / "work"], PROFILERS, extra=["--dump-instr=yes"])

    def test_instructions_of_all_kinds(self):
        """Repeated strings, locked instructions, gathers, faults and handlers, without libc."""
        for name in ("repeat", "atomics", "straddle", "callers", "matrix"):
            self.compare([PROGRAMS / name], PROFILERS[:5])

    def test_signals(self):
        """Handlers, and blocks that faults end early."""
        for case in ("raised", "nested", "siginfo", "fault_and_retry", "debug_trap"):
            self.compare([PROGRAMS / "signals", case], [PROFILERS[i] for i in (0, 1, 3, 4)],
                         "--cpu=x86-64-v2")
            shown = subprocess.run([ASSAY, "trace", "--kind=signal", "--format=csv",
                                    self.folder / "trace"], capture_output=True, text=True,
                                   check=True, timeout=60)
            self.assertGreater(shown.stdout.count("\n"), 1, case)

    def test_real_programs(self):
        script = self.folder / "q.sql"
        script.write_text(QUERY)
        for program in (["sqlite3", ":memory:", f".read {script}"],
                        ["/usr/bin/python3", "-S", "-c", "print(sum(i * i for i in range(2000)))"],
                        ["bzip2", "-c", "-k", str(PROGRAMS / "work")]):
            # At a level there is no vDSO, which executes more or less as time goes by.
            if shutil.which(program[0]):
                chosen = PROFILERS[:5] if "sqlite3" in program else [PROFILERS[0], PROFILERS[4]]
                self.compare(program, chosen, "--cpu=x86-64-v2")

    def compare_values(self, program, profilers, *options, capture="all"):
        """Of programs that see the time, their process id, and the random numbers that the kernel gives
        libc: lines in which runs differ are left out. Some can be the same by chance, as what CPUID says
        of the processor that it is on."""
        # The first runs come before, the others behind, as what the time is lies in between.
        file, before = self.folder / "again", []
        for words in profilers:
            self.assay("-q", *words, *options, "-o", file, "--", *program)
            before.append(text_of(file).splitlines())
        trace = self.record(program, f"--capture={capture}", *options)
        for words, first in zip(profilers, before):
            with self.subTest(program=str(program[0]), profiler=words):
                self.assay("replay", "-q", *words, "-o", file, trace)
                again, runs = text_of(file).splitlines(), [first]
                differ = range(len(again))
                while len(runs) < 2 or (differ and len(runs) < 6):
                    self.assay("-q", *words, *options, "-o", file, "--", *program)
                    runs.append(text_of(file).splitlines())
                    self.assertEqual(len(runs[-1]), len(again))
                    same = [i for i in range(len(again)) if len({run[i] for run in runs}) == 1]
                    differ = [i for i in same if again[i] != runs[0][i]]
                self.assertGreater(len(same), 0.95 * len(again))
                if len(differ) > 0.001 * len(again):
                    self.assertEqual([again[i] for i in differ], [runs[0][i] for i in differ])

    def test_values(self):
        """All that profilers may ask for, of vectors, x87, repeated strings, gathers, branches."""
        for name in ("repeat", "atomics", "straddle", "callers", "matrix"):
            self.compare([PROGRAMS / name], VALUES[:2] + EACH_VALUE, capture="all")
        # They have no end but the sum of what they computed.
        for name in ("values", "register_values", "wide_stores", "x87", "sse"):
            self.compare([PROGRAMS / name], VALUES[:2] + EACH_VALUE, capture="all",
                         status=None)

        self.compare_values([PROGRAMS / "unusual_values"], VALUES[:2])

    def test_values_of_real_programs(self):
        script = self.folder / "q.sql"
        script.write_text(QUERY.replace("300", "100"))
        for program in (["sqlite3", ":memory:", f".read {script}"],
                        ["bzip2", "-c", "-k", str(PROGRAMS / "work")]):
            if shutil.which(program[0]):
                self.compare_values(program, VALUES[:1], "--cpu=x86-64-v2")

    def test_values_and_signals(self):
        for case in ("raised", "nested", "siginfo", "fault_and_retry", "debug_trap"):
            self.compare_values([PROGRAMS / "signals", case], VALUES[:2], "--cpu=x86-64-v2")

    def test_values_of_threads_in_turns(self):
        self.compare_values([PROGRAMS / "threads"], VALUES[:3], "--schedule=fair:10000")

    def test_a_part_of_what_there_is(self):
        """Profilers that need no more than that say the same, and others are refused in one line that
        names what is missing and how to record it."""
        program = [PROGRAMS / "work"]
        sizes = {}
        for capture, fits, refused in (
                ("branches,calls", ["--plugin=branch"],
                 {"cache": "references to data: .*--capture=default,references",
                  "syscalls": "system calls: .*--capture=default,system-calls",
                  "classic": "values that are loaded: .*--capture=default,values=loads"}),
                ("values=loads+stores", ["--plugin=classic"],
                 {"classic --values=results": "destination registers: .*--capture=default,values$",
                  "reuse": "references to data: .*--capture=default,values,references"}),
                ("references", ["--plugin=working_set", "--interval-size=100k"],
                 {"classic": "values that are loaded: "})):
            if "classic" in fits[0]:
                self.compare_values(program, [fits], capture=capture)
            else:
                self.compare(program, [fits], capture=capture)
            trace = self.folder / "trace"
            sizes[capture] = trace.stat().st_size
            for words, message in refused.items():
                errors = self.assay("replay", "-q", *f"--plugin={words}".split(), "-o", "/dev/null",
                                    trace, status=125)
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertRegex(errors, message)
        self.compare([PROGRAMS / "signals", "nested"], [["--plugin=branch"]], capture="branches")
        self.compare([PROGRAMS / "repeat"], [["--plugin=branch"]], capture="branches")
        self.record(program)
        self.assertLess(sizes["branches,calls"], (self.folder / "trace").stat().st_size)

    def test_lists_of_what_to_record(self):
        for words, message in (
                ("branches,refrences", 'capture: "refrences" is no kind of records; .*references'),
                ("values=lods", 'capture: "lods" is no kind of values; .*did you mean loads'),
                ("values=loads,stores", 'capture: "stores" is no kind of records; .*values'),
                ("", 'capture: "" is no kind of records; give some of references, ')):
            errors = self.assay("record", f"--capture={words}", "-o", self.folder / "trace", "--",
                                "true", status=125)
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertRegex(errors, message)
        self.assertFalse((self.folder / "trace").exists())

    def test_a_listing_of_values(self):
        """What a function was given and what it returned, with the same numbers in all formats."""
        trace = self.record([PROGRAMS / "callers"], "--capture=all")
        listed = {}
        for form in ("csv", "json"):
            lines = run([ASSAY, "trace", "--kind=value", f"--format={form}", trace]).stdout
            rows = lines.splitlines()
            listed[form] = ([json.loads(row) for row in rows] if form == "json"
                            else list(csv.DictReader(rows)))
        self.assertEqual([(row["kind"], row["address"], int(row["bytes"])) for row in listed["csv"]],
                         [(row["kind"], row["address"], row["bytes"]) for row in listed["json"]])
        kinds = {row["kind"] for row in listed["csv"]}
        self.assertLessEqual({"address", "loaded", "stored", "old", "input", "input2", "output",
                              "taken", "target"}, kinds)
        found = json.loads(run([ASSAY, "trace", "--summary", "--format=json", trace]).stdout)
        # Those of vectors have some lines.
        self.assertLessEqual(found["values"], len(listed["csv"]))
        self.assertGreater(found["values"], 0)
        text = run([ASSAY, "trace", "--kind=value", trace]).stdout.splitlines()
        self.assertEqual(len(text), len(listed["csv"]) + 1)
        plain = self.record([PROGRAMS / "callers"])
        found = json.loads(run([ASSAY, "trace", "--summary", "--format=json", plain]).stdout)
        self.assertEqual(found["values"], 0)

    def test_threads_in_turns(self):
        self.compare([PROGRAMS / "threads"], PROFILERS[:6] + [["--plugin=cache", "--threads"]],
                     "--schedule=fair:10000")

    def test_when_threads_have_ended(self):
        """What they share depends on it."""
        self.compare([PROGRAMS / "sharing"], [["--plugin=effective_address"],
                                              ["--plugin=effective_address,cache"]],
                     "--schedule=fair:1000")

    def test_processes(self):
        program = ["sh", "-c", "ls /usr > /dev/null; true | cat; exec true"]
        trace = self.record(program)
        for plugin in ("cache", "effective_address"):
            live, again = f"live.{plugin}", f"again.{plugin}"
            self.assay("-q", f"--plugin={plugin}", "-o", self.folder / f"{live}.%n.%p", "--",
                       *program)
            self.assay("replay", "-q", f"--plugin={plugin}", "-o", self.folder / f"{again}.%n.%p",
                       trace)
            wanted = self.texts_of_processes(live)
            self.assertGreaterEqual(len(wanted), 3)
            self.assertEqual(wanted, self.texts_of_processes(again))

    def test_processes_at_once(self):
        """The files of one after the other; and what all of them lack is said once."""
        trace = self.record(["sh", "-c", "ls / > /dev/null & true | cat; wait; exec true"])
        files = {}
        for jobs in ("1", "4"):
            folder = self.folder / jobs
            folder.mkdir()
            self.assay("replay", "-q", f"--jobs={jobs}", "--plugin=cache", "-o", folder / "out",
                       trace)
            files[jobs] = {file.name: file.read_text().replace(str(folder), "")
                           for file in folder.iterdir()}
        self.assertGreaterEqual(len(files["1"]), 6)
        self.assertEqual(files["1"], files["4"])
        errors = self.assay("replay", "--plugin=classic", "-o", "/dev/null", trace, status=125)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("--jobs: \"0\" is not a number from 1",
                      self.assay("replay", "--plugin=cache", "--jobs=0", trace, status=125))

    def test_progress(self):
        """How much of the trace has been replayed: it is stopped until there is something to say."""
        text = self.folder / "text"
        text.write_text("".join(f"{i * 7919 % 1000} line {i}\n" for i in range(20_000)))
        trace = self.record(["bzip2", "-c", "-k", text])
        with subprocess.Popen([ASSAY, "replay", "--progress=yes", "--plugin=cache",
                               "--machine=zen2", "-o", self.folder / "again", trace],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            time.sleep(0.3)
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(1.2)
            os.killpg(process.pid, signal.SIGCONT)
            said = process.communicate(timeout=600)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertRegex(said, r"(?m)^assay: \d+ s, [\d,]+ of [\d,]+ million instructions$")

    def test_a_program_that_is_killed(self):
        """What it did until then, and the reason."""
        trace = self.folder / "trace"
        self.assay("record", "-q", "-o", trace, "--timeout=2", "--", "sh", "-c",
                   "while :; do :; done", status=124)
        self.assay("replay", "-q", "--plugin=cache", "-o", self.folder / "again", trace)
        self.assertIn("incomplete", (self.folder / "again").read_text())

    def test_damage_is_one_line(self):
        """Of a file that was cut off, or in which a bit has flipped. ASSAY_DAMAGES=10000 tries more
        than the few dozen of every day."""
        for capture, profiler in (("default", "cache"), ("all", "classic")):
            with self.subTest(capture=capture):
                self.check_damages(self.record([PROGRAMS / "straddle"], f"--capture={capture}"),
                                   profiler)

    def check_damages(self, trace, profiler):
        whole = trace.read_bytes()
        broken = self.folder / "broken"
        dice = random.Random(1)
        self.assay("replay", "-q", f"--plugin={profiler}", "-o", self.folder / "good", trace)
        damages = [("cut", at) for at in (0, 10, 16, 100, len(whole) // 2, len(whole) - 1)]
        while len(damages) < int(os.environ.get("ASSAY_DAMAGES", 20)):
            damages.append((dice.choice(["cut", "flip"]), dice.randrange(len(whole))))
        for kind, at in damages:
            with self.subTest(kind=kind, at=at):
                damaged = bytearray(whole if kind == "flip" else whole[:at])
                if kind == "flip":
                    damaged[at] ^= 1 << dice.randrange(8)
                broken.write_bytes(damaged)
                result = run([ASSAY, "replay", "-q", f"--plugin={profiler}", "-o",
                              self.folder / "replayed", broken])
                if result.returncode == 0:  # a bit of the header, or of zstd's, that says nothing
                    self.assertEqual(kind, "flip")
                    self.assertEqual((self.folder / "replayed").read_bytes(),
                                     (self.folder / "good").read_bytes())
                    continue
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(str(broken), result.stderr)

    def test_a_killed_process_of_a_replay(self):
        """It is said which signal has ended it."""
        trace = self.record([PROGRAMS / "matrix"])
        for options in ([], ["--contexts"]):
            with subprocess.Popen([ASSAY, "replay", "-q", "--plugin=cache", *options, "-o",
                                   self.folder / "out", trace], stderr=subprocess.PIPE,
                                  text=True) as replay:
                children = Path(f"/proc/{replay.pid}/task/{replay.pid}/children")
                while not (found := children.read_text().split()):
                    time.sleep(0.001)
                os.kill(int(found[0]), signal.SIGKILL)
                said = replay.stderr.read()
            self.assertEqual(replay.returncode, 125, said)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn(f"process {found[0]} of the replay was ended by signal 9 (Killed)", said)

    def test_what_a_trace_does_not_have(self):
        trace = self.record(["true"])
        for words in (["--plugin=classic"], ["--plugin=cache", "--objects"],
                      ["--plugin=nothing"]):
            errors = self.assay("replay", *words, "-o", "/dev/null", trace, status=125)
            self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("may be an option of assay replay",
                      self.assay("record", "--plugin=cache", "--", "true", status=125))
        self.assertIn("cannot write to /nowhere/trace",
                      self.assay("record", "-o", "/nowhere/trace", "--", "true", status=125))
        full = run([ASSAY, "record", "-o", "/dev/full", "--", "true"])
        self.assertEqual(full.returncode, 125)
        self.assertEqual(full.stderr.count("\n"), 1, full.stderr)


if __name__ == "__main__":
    unittest.main()
