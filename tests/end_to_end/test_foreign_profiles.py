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
        text = self.shown("annotate", "--full", profile)
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
            text = self.shown("annotate", "--full", *words, stderr=warning)
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


class Callgrind(unittest.TestCase):
    """Profiles in Callgrind's format, with calls but without contexts."""

    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.path = self.folder / "callgrind.out"

    def annotated(self, text, *words):
        self.path.write_text(text)
        result = run([ASSAY, "annotate", "--json", *words, self.path])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def calls(self, text):
        return {each["function"]: (each["inclusive"], each["exclusive"],
                                   {to["function"]: (to["calls"], to["counts"]) for to in each["callees"]})
                for each in self.annotated(text, "--calls")["calls"]}

    def test_calls(self):
        found = self.calls("events: Ir\nfl=a.c\nfn=main\n1 10\ncfn=a\ncalls=3 5\n2 60\n"
                           "cfn=b\ncalls=1 9\n3 20\nfn=a\n5 60\nfn=b\n9 20\n")
        self.assertEqual(found, {"main": ([90], [10], {"a": (3, [60]), "b": (1, [20])}),
                                 "a": ([60], [60], {}), "b": ([20], [20], {})})
        for words, said in ((["annotate", "--tree"], "use --calls"), (["merge"], "calls are left out"),
                            (["export", "--format=folded"], "no stacks")):
            result = run([ASSAY, *words, self.path])
            self.assertEqual(result.stderr.count("\n"), 1, words)
            self.assertIn(said, result.stderr)

    def test_recursion(self):
        # f calls itself; a and b call one another, and main calls a.
        found = self.calls("events: Ir\nfl=a.c\nfn=main\n1 1\ncfn=f\ncalls=1 5\n1 30\ncfn=a\ncalls=1 5\n"
                           "2 70\nfn=f\n5 30\ncfn=f\ncalls=4 5\n5 80\nfn=a\n6 40\ncfn=b\ncalls=2 7\n6 60\n"
                           "fn=b\n7 30\ncfn=a\ncalls=1 6\n7 45\n")
        self.assertEqual({name: each[0] for name, each in found.items()},
                         {"main": [101], "a": [70], "f": [30], "b": [30]})

    def test_costs_that_are_given_back(self):
        text = "events: Time Memory\nfl=a.php\nfn=f\n4 120 4096\nfn=g\n5 30 -4000\n"
        found = self.annotated(text, "--threshold=0")
        self.assertEqual({each["function"]: each["counts"] for each in found["functions"]},
                         {"f": [120, 4096], "g": [30, -4000]})

    def test_names_of_events(self):
        self.path.write_text("events: Time_(10ns) 2x cycles:u\nevent: 2x : Twice\nfl=a.c\nfn=f\n4 120 1 3\n")
        merged, changes = self.folder / "merged", self.folder / "changes"
        for words in (["merge", "-o", merged, self.path], ["diff", "-o", changes, self.path, merged],
                      ["annotate", "--show=cycles:u", "--sort=cycles:u:1", merged], ["annotate", changes],
                      ["annotate", "--sort=cycles:u", self.path], ["report", "-o", changes, merged],
                      ["diff", "--fail-on=cycles:u:+1%", "--sort=2x", self.path, merged]):
            result = run([ASSAY, *words])
            self.assertEqual((result.returncode, result.stderr), (0, ""), words)
        self.assertIn("events: Time_(10ns) 2x cycles:u\n", merged.read_text())

    def test_objects_of_unknown_files(self):
        found = self.annotated("events: Ir\nob=/lib/a.so\nfl=???\nfn=0x10\n0 1000\n"
                               "ob=/lib/b.so\nfn=0x10\n0 300\n")
        self.assertEqual({each["file"]: each["counts"] for each in found["functions"]},
                         {"[/lib/a.so]": [1000], "[/lib/b.so]": [300]})
        self.assertEqual(found["sourcesNotFound"], [])


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
