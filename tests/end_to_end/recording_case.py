"""What the tests of recordings share: a live run, a trace, and what a replay of it says."""

import os
import re
import subprocess
import unittest

import support
from support import ASSAY, PLUGINS

# What these write besides the events file.
OWN_FILE = {"--plugin=bbv": "--bb-out-file", "--plugin=effective_address": "--address-report",
            f"--plugin={PLUGINS / 'values.so'}": "--values-log"}
MAIN_PROFILERS = [
    ["--plugin=cache"],
    ["--plugin=branch"],
    ["--plugin=bbv", "--interval-size=100k"],
    ["--plugin=used_bytes"],
    ["--plugin=effective_address"],
]
QUERY = """create table t(a integer, b text);
with recursive c(x) as (select 1 union all select x+1 from c where x<300)
  insert into t select x, 'row'||(x*7919%300) from c;
create index i on t(b); select count(*), sum(a) from t where b like 'row1%';
"""


def text_of(path):
    """What must be the same: all but the process id."""
    return re.sub(r"(#! pid) \d+", r"\1", path.read_text())


class RecordingCase(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.environment = {**os.environ, "PYTHONHASHSEED": "0"}
        self.recorded = None  # the words of the last recording

    def assay(self, *words, status=0):
        """`status`: None for that of the program, whichever it is."""
        with open(self.folder / "stdout", "wb") as stdout:  # programs look at what it is
            result = subprocess.run([str(word) for word in (ASSAY, *words)], stdout=stdout,
                                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                    env=self.environment, check=False, timeout=600)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def record(self, program, *options, status=0):
        """The same program with the same options, twice in a row, is recorded once."""
        support.require(program[0])
        trace = self.folder / "trace"
        words = (*options, "--", *program)
        if words != self.recorded or not trace.exists():
            self.assay("record", "-q", "-o", trace, *words, status=status)
            self.assay("trace", "--check", trace)
            self.recorded = words
        return trace

    def texts_of_processes(self, name):
        """What NAME.%n.%p of a shell's processes say, the shell ending as `true`: of all but the
        shell itself. Where it is when SIGCHLD comes, and what it writes to, depends on its children."""
        files = list(self.folder.glob(f"{name}.*"))
        [last] = self.folder.glob(f"{name}.true.*")
        files.remove(self.folder / f"{name}.sh.{last.name.split('.')[-1]}.1")
        return sorted(text_of(file) for file in files)

    def compare(self, program, profilers, *options, extra=(), capture="default", status=0):
        trace = self.record(program, f"--capture={capture}", *options, status=status)
        for words in profilers:
            with self.subTest(program=str(program[0]), profiler=words):
                live, again = self.folder / "live", self.folder / "again"
                file = self.folder / "own"
                own = [f"{OWN_FILE[words[0]]}={file}"] if words[0] in OWN_FILE else []
                self.assay("-q", *words, *own, *options, *extra, "-o", live, "--", *program,
                           status=status)
                wanted = file.read_bytes() if own else b""
                self.assay("replay", "-q", *words, *own, *extra, "-o", again, trace)
                self.assertEqual(text_of(live), text_of(again))
                self.assertEqual(file.read_bytes() if own else b"", wanted)
