#!/usr/bin/env python3
"""What the reading tools make of profiles from somewhere else, which name any file."""

import gzip
import json
import os
import unittest

import support
from support import ASSAY, run
from test_reading import peak_memory
from test_reports import data_of

SECRET = "nobody shall see this"


class Sources(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self).resolve()
        self.work = self.folder / "work"
        self.work.mkdir()
        (self.folder / "secret").write_text(f"{SECRET}\n")
        (self.folder / "a.c").write_text("an ordinary source;\n")

    def profile(self, *names):
        path = self.folder / "out"
        path.write_text("desc: a\ncmd: ./a\nevents: Ir\n" +
                        "".join(f"fl={name}\nfn=f\n1 5\n" for name in names) +
                        f"summary: {5 * len(names)}\n")
        return path

    def shown(self, command, *words, cwd=None, stderr="") -> str:
        result = run([ASSAY, command, *words], cwd=cwd or self.work)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, stderr or r"\A\Z")
        return result.stdout

    def report(self, *words, stderr=""):
        page = self.folder / "report.html"
        self.shown("report", "-o", page, *words, stderr=stderr)
        return {source["name"]: source for source in data_of(page.read_text())["sources"]}

    def test_only_sources_are_shown(self):
        secret = self.folder / "secret"
        (self.work / "evil.c").symlink_to(secret)
        os.mkfifo(self.work / "fifo.c")
        names = ["/etc/shadow", "../../../../../../../etc/shadow", secret, "../secret", "evil.c",
                 self.work / "evil.c"]
        profile = self.profile(self.folder / "a.c", *names, "fifo.c")
        text = self.shown("annotate", profile)
        self.assertIn("an ordinary source;", text)
        left_out = text.split("Left out: nothing says that these are sources")[1].split("---")[0]
        self.assertIn("--include=DIR", left_out)
        for name in names:
            self.assertIn(f"  {name}\n", text)
        self.assertIn("30 (75.0%)  not annotated: nothing says that the file is a source\n", text)
        document = json.loads(self.shown("annotate", "--json", profile))
        self.assertEqual(sorted(document["sourcesLeftOut"]), sorted(map(str, names)))
        self.assertEqual(document["sourcesNotFound"], ["fifo.c"])
        sources = self.report(profile, stderr=rf"\Aassay: left out of the report.* {secret}.*--include=.*\n\Z")
        self.assertEqual({name for name, source in sources.items() if source["leftOut"]},
                         set(map(str, names)))
        self.assertIn("an ordinary source;", str(sources[str(self.folder / "a.c")]))
        for everything in (text, str(document), str(sources)):
            self.assertNotIn(SECRET, everything)
            self.assertNotIn("root:", everything)

    def test_what_the_user_allows(self):
        secret = self.folder / "secret"
        profile = self.profile(secret)
        self.assertIn(SECRET, self.shown("annotate", "--include=..", profile))
        self.assertIn(SECRET, self.shown("annotate", profile, secret))
        self.assertIn(SECRET, self.shown("annotate", f"--map={self.folder}={self.folder}", profile))
        self.assertIn(SECRET, self.shown("annotate", profile, cwd=self.folder))
        self.assertIn(SECRET, str(self.report("--include=..", profile)))
        self.assertNotIn(SECRET, self.shown("annotate", profile, cwd="/"))
        hidden = self.work / ".keys" / "id"
        hidden.parent.mkdir()
        hidden.write_text(SECRET)
        profile = self.profile(hidden)
        self.assertNotIn(SECRET, self.shown("annotate", profile))
        self.assertIn(SECRET, self.shown("annotate", profile, cwd=hidden.parent))
        secret = secret.rename(self.folder / "secret.x2")
        profile = self.profile(secret)
        self.assertNotIn(SECRET, self.shown("annotate", profile))
        self.assertIn(SECRET, self.shown("annotate", "--source-extensions=x1,x2", profile))
        self.assertIn(SECRET, str(self.report("--source-extensions=x2", profile)))

    def test_a_source_that_cannot_be_read_ends_nothing(self):
        memory, pair = "/proc/self/mem", self.profile("/proc/self/mem", self.folder / "a.c")
        warning = r"\Aassay: cannot read source file /proc/self/mem: Input/output error\n\Z"
        for words in (["--include=/proc", pair], [pair, memory]):
            text = self.shown("annotate", *words, stderr=warning)
            self.assertIn("Warning: the file cannot be read.", text)
            self.assertIn("an ordinary source;", text)
            self.assertIn("5 (50.0%)  not annotated: source cannot be read\n", text)
        document = json.loads(self.shown("annotate", "--json", "--include=/proc", pair, stderr=warning))
        self.assertEqual({source["file"]: source["lines"][0]["text"] for source in document["sources"]},
                         {memory: None, str(self.folder / "a.c"): "an ordinary source;"})
        sources = self.report("--include=/proc", pair, stderr=warning)
        self.assertIn("an ordinary source;", str(sources[str(self.folder / "a.c")]))
        self.assertNotIn("pieces", sources[memory])
        huge = self.folder / "huge.c"
        huge.touch()
        os.truncate(huge, 2 ** 40)
        self.report(self.profile(huge), stderr=rf"\Aassay: cannot read source file {huge}: it has more than")


class Bombs(unittest.TestCase):
    """Small compressed files that stand for much."""

    def test_lines_that_come_again_take_no_memory(self):
        folder = support.temporary_folder(self)
        path, merged = folder / "bomb.gz", folder / "merged"
        times = 2_000_000
        with gzip.open(path, "wt") as bomb:
            bomb.write("desc: a\ncmd: ./a\nevents: Ir\nfl=#! version 1\nfl=#! object 0 /none\n"
                       "fl=a.c\nfn=f\n")
            for _ in range(times // 1000):
                bomb.write("1 1\n2 1\n" * 1000)
            for _ in range(times // 4000):
                bomb.write("fl=#! at 0:0x10 1 1\n" * 1000)
            bomb.write(f"summary: {2 * times}\n")
        memory, _ = peak_memory([ASSAY, "merge", "-o", merged, path])
        self.assertLess(memory, 64 << 20)  # Python's own before it is assay counts
        text = merged.read_text()
        self.assertIn(f"\n1 {times}\n2 {times}\n", text)
        self.assertIn(f"\nfl=#! at 0:0x10 1 {times // 4}\n", text)


if __name__ == "__main__":
    unittest.main()
