#!/usr/bin/env python3
"""Recording and replay: each profiler says the same of a trace as of the program itself."""

import os
import random
import re
import shutil
import subprocess
import unittest

import support
from support import ASSAY, PROGRAMS, run

# What these write besides the events file.
OWN_FILE = {"--plugin=bbv": "--bb-out-file", "--plugin=effective_address": "--address-report"}
PROFILERS = [
    ["--plugin=cache"],
    ["--plugin=branch"],
    ["--plugin=bbv", "--interval-size=100k"],
    ["--plugin=used_bytes"],
    ["--plugin=effective_address"],
    ["--plugin=cache", "--machine=generic"],
    ["--plugin=cache,branch,opcode_mix"],
    ["--plugin=reuse"],
    ["--plugin=working_set", "--interval-size=100k"],
    ["--plugin=syscalls"],
]
QUERY = """create table t(a integer, b text);
with recursive c(x) as (select 1 union all select x+1 from c where x<300)
  insert into t select x, 'row'||(x*7919%300) from c;
create index i on t(b); select count(*), sum(a) from t where b like 'row1%';
"""


def text_of(path):
    """What must be the same: all but the process id."""
    return re.sub(r"(#! pid) \d+", r"\1", path.read_text())


class Record(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.environment = {**os.environ, "PYTHONHASHSEED": "0"}

    def assay(self, *words, status=0):
        with open(self.folder / "stdout", "wb") as stdout:  # programs look at what it is
            result = subprocess.run([str(word) for word in (ASSAY, *words)], stdout=stdout,
                                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                    env=self.environment, check=False, timeout=600)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def record(self, program, *options):
        trace = self.folder / "trace"
        self.assay("record", "-q", "-o", trace, *options, "--", *program)
        return trace

    def compare(self, program, profilers, *options, extra=()):
        trace = self.record(program, *options)
        for words in profilers:
            with self.subTest(program=str(program[0]), profiler=words):
                live, again = self.folder / "live", self.folder / "again"
                file = self.folder / "own"
                own = [f"{OWN_FILE[words[0]]}={file}"] if words[0] in OWN_FILE else []
                self.assay("-q", *words, *own, *options, *extra, "-o", live, "--", *program)
                wanted = file.read_bytes() if own else b""
                self.assay("replay", "-q", *words, *own, *extra, "-o", again, trace)
                self.assertEqual(text_of(live), text_of(again))
                self.assertEqual(file.read_bytes() if own else b"", wanted)

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
                        ["bzip2", "-c", "-k", str(ASSAY.parent / "build.ninja")]):
            # At a level there is no vDSO, which executes more or less as time goes by.
            if shutil.which(program[0]):
                chosen = PROFILERS[:5] if "bzip2" not in program else [PROFILERS[0], PROFILERS[4]]
                self.compare(program, chosen,
                             "--cpu=x86-64-v2")

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

            def texts(name):
                files = sorted(self.folder.glob(f"{name}.*"))
                self.assertGreaterEqual(len(files), 4)
                if plugin == "effective_address":
                    # Where the shell that waits writes to depends on its children's numbers.
                    [last] = self.folder.glob(f"{name}.true.*")
                    files.remove(self.folder / f"{name}.sh.{last.name.split('.')[-1]}.1")
                return sorted(text_of(file) for file in files)

            self.assertEqual(texts(live), texts(again))

    def test_a_program_that_is_killed(self):
        """What it did until then, and the reason."""
        trace = self.folder / "trace"
        self.assay("record", "-q", "-o", trace, "--timeout=4", "--", "sh", "-c",
                   "while :; do :; done", status=124)
        self.assay("replay", "-q", "--plugin=cache", "-o", self.folder / "again", trace)
        self.assertIn("incomplete", (self.folder / "again").read_text())

    def test_damage_is_one_line(self):
        """Of a file that was cut off, or in which a bit has flipped. ASSAY_DAMAGES=10000 tries more
        than the few dozen of every day."""
        trace = self.record([PROGRAMS / "work"])
        whole = trace.read_bytes()
        broken = self.folder / "broken"
        dice = random.Random(1)
        self.assay("replay", "-q", "--plugin=cache", "-o", self.folder / "good", trace)
        damages = [("cut", at) for at in (0, 10, 16, 100, len(whole) // 2, len(whole) - 1)]
        while len(damages) < int(os.environ.get("ASSAY_DAMAGES", 40)):
            damages.append((dice.choice(["cut", "flip"]), dice.randrange(len(whole))))
        for kind, at in damages:
            with self.subTest(kind=kind, at=at):
                damaged = bytearray(whole if kind == "flip" else whole[:at])
                if kind == "flip":
                    damaged[at] ^= 1 << dice.randrange(8)
                broken.write_bytes(damaged)
                result = run([ASSAY, "replay", "-q", "--plugin=cache", "-o",
                              self.folder / "replayed", broken])
                if result.returncode == 0:  # a bit of the header, or of zstd's, that says nothing
                    self.assertEqual(kind, "flip")
                    self.assertEqual((self.folder / "replayed").read_bytes(),
                                     (self.folder / "good").read_bytes())
                    continue
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(str(broken), result.stderr)

    def test_what_a_trace_does_not_have(self):
        trace = self.record(["true"])
        for words in (["--plugin=classic"], ["--plugin=cache", "--contexts"],
                      ["--plugin=cache", "--sample=1/100"], ["--plugin=nothing"]):
            errors = self.assay("replay", *words, "-o", "/dev/null", trace, status=125)
            self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("is an option of assay replay",
                      self.assay("record", "--plugin=cache", "--", "true", status=125))
        self.assertIn("cannot write to /nowhere/trace",
                      self.assay("record", "-o", "/nowhere/trace", "--", "true", status=125))
        full = run([ASSAY, "record", "-o", "/dev/full", "--", "true"])
        self.assertEqual(full.returncode, 125)
        self.assertEqual(full.stderr.count("\n"), 1, full.stderr)


if __name__ == "__main__":
    unittest.main()
