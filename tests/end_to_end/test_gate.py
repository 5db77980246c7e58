#!/usr/bin/env python3
"""assay diff as a gate: limits, formats, folders; and docs/guides/ci.md, whose workflows are run here, in a
repository of which one change inlines a function and another makes a loop 1 % slower."""

import json
import os
import re
import shutil
import subprocess
import textwrap
import unittest

import support
from support import ASSAY, ROOT, needs, run

try:
    import jsonschema
except ImportError:
    jsonschema = None

DATA = ROOT / "tests" / "end_to_end" / "data"
HEAD = "desc: a\ncmd: {}\nevents: Ir Dr\nfl=#! version 1\nfl=#! derived \"reads\" unit=% = Dr / Ir\n"

SOURCE = """#include <cstdio>

namespace {

template <typename Number>
[[gnu::noinline]] Number stir(Number number) {
    for (int i = 0; i < 1000; ++i) number = number * 1664525u + (number >> 7);
    return number;
}

}  // namespace

int main() {
    unsigned number = 1;
    for (int i = 0; i < 100; ++i) number = stir(number);
    std::printf("%u\\n", number);
}
"""
INLINED = ("[[gnu::noinline]]", "[[gnu::always_inline]] inline")
SLOWER = ("i < 1000", "i < 1010")
MAKEFILE = "work: work.cpp\n\tg++ -O1 -g work.cpp -o work\n"


def events(command="./prog", **functions) -> str:
    """A profile of functions by name, each of file FILE_NAME: {"a_f": (Ir, Dr)} is f in a.c."""
    lines = [HEAD.format(command)]
    for name, counts in functions.items():
        file, function = name.split("_")
        lines.append(f"fl=/src/{file}.c\nfn={function}\n1 {counts[0]} {counts[1]}\n")
    totals = [sum(column) for column in zip(*functions.values())]
    return "".join(lines) + f"summary: {totals[0]} {totals[1]}\n"


class Limits(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.old = self.write("old", events(a_f=(1000, 100), a_g=(500, 10), b_h=(100, 0)))
        self.new = self.write("new", events(a_f=(1010, 100), a_g=(490, 20), b_h=(101, 0)))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def diff(self, *words, files=None):
        return run([ASSAY, "diff", *words, *(files or (self.old, self.new))])

    def test_status_and_what_is_exceeded(self):
        for limit, status in (
                ("Ir:+0.1%", 0), ("Ir:+1", 0), ("Ir:+0", 1), ("Ir:-1", 1), ("Dr:+9%", 1), ("Dr:+10", 0),
                ("Ir@f:+1%", 0), ("Ir@f:+0.9%", 1), ("Ir@*:+9", 1), ("Ir@[gh]:+1", 0), ("Ir@[gh]:+0", 1),
                ("Ir@file=a.c:+0", 0), ("Ir@file=src/?.c:+0", 1), ("Dr@file=a.c:+9", 1), ("reads:+0.7", 0),
                ("reads:+0.1", 1), ("reads@g:+1", 1), ("reads:+20%", 0)):
            result = self.diff(f"--fail-on={limit}")
            self.assertEqual(result.returncode, status, (limit, result.stderr))
            self.assertEqual(result.stderr.count(limit), status, result.stderr)
        both = self.diff("--fail-on=Ir:+0", "--fail-on=Ir@f:+0.5%", "--fail-on=Ir:+5")
        self.assertEqual((both.returncode, both.stderr.splitlines()), (1, [
            "assay: Ir: 1,600 -> 1,601, +1 (+0.06%), exceeds Ir:+0",
            "assay: Ir of /src/a.c:f: 1,000 -> 1,010, +10 (+1.00%), exceeds Ir@f:+0.5%"]))
        # What is printed does not depend on them.
        self.assertEqual(both.stdout, self.diff().stdout)

    def test_errors(self):
        for limit, reason in (("Ir", "there is no limit"), ("Ir:+x", "not a number"),
                              ("Irr:+1", "did you mean 'Ir'?"), ("Ir@none:+1", "neither side has a function"),
                              ("Ir@object=a:+1", "run with --objects"), ("Ir@binary=a:+1", "--dump-instr=yes")):
            result = self.diff(f"--fail-on={limit}")
            self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), limit)
            self.assertIn(reason, result.stderr)
        for words in (["--format=pdf"], ["--format=text", "-o", self.folder / "out"], ["--by=object"],
                      ["--json", "--format=html"]):
            self.assertEqual(self.diff(*words).returncode, 2, words)
        self.assertEqual(self.diff(files=[self.old, self.folder]).returncode, 2)
        # Half a run counts less than a whole one.
        self.new.write_text(self.new.read_text().replace("version 1\n", "version 1\nfl=#! incomplete cut\n"))
        self.assertEqual(self.diff().returncode, 0)
        result = self.diff("--fail-on=Ir:+90%")
        self.assertEqual(result.returncode, 2)
        self.assertIn("cut: limits apply only to counts of whole runs", result.stderr)

    def test_events_that_both_have(self):
        self.new.write_text("cmd: ./prog\nevents: Dr Bc Ir\nfl=/src/a.c\nfn=f\n1 100 7 1200\n"
                            "fl=/src/b.c\nfn=h\n1 0 0 1\nsummary: 100 7 1201\n")
        result = self.diff()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("left out: Bc\n", result.stdout)
        self.assertEqual(json.loads(self.diff("--json").stdout)["warnings"],
                         ["Warning: events that only some of the files have are left out: Bc"])
        piped = run([ASSAY, "diff", "-", self.new], input=self.old.read_text())
        self.assertEqual((piped.returncode, piped.stderr.count("\n")), (2, 1))
        self.assertIn("(Dr Bc Ir)", piped.stderr)
        other = self.folder / "other"
        other.write_text("cmd: ./prog\nevents: Bc\nfl=/src/a.c\nfn=f\n1 7\nsummary: 7\n")
        result = self.diff(files=[self.old, other])
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"{self.old} and {other} have no event in common", result.stderr)
        shown = self.diff("--show=Ir", "--json")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        document = json.loads(shown.stdout)
        changed = {each["function"]: (each["old"], each["new"]) for each in document["functions"]}
        self.assertEqual((changed["f"], changed["g"]), (([1000], [1200]), ([500], [0])))
        self.assertIn("left out: Bc\n", self.diff("--sort=Dr").stdout)
        self.assertEqual(self.diff("--fail-on=Ir@f:+20%").returncode, 0)
        self.assertEqual(self.diff("--fail-on=Ir@f:+19%").returncode, 1)
        self.assertEqual(self.diff("--fail-on=Dr:+0").returncode, 0)
        for word in ("--show=Ir,Bc", "--sort=Bc", "--fail-on=Bc:+1"):
            result = self.diff(word)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), word)
            self.assertIn(f"{self.old} has no event 'Bc'", result.stderr)
        # The same events in another order are the same events.
        self.new.write_text("cmd: ./prog\nevents: Dr Ir\nfl=/src/a.c\nfn=f\n1 9 1200\nsummary: 9 1200\n")
        for command in ("annotate", "merge", "diff", "report"):
            words = ["-o", self.folder / "page"] if command == "report" else []
            result = run([ASSAY, command, *words, self.old, self.new])
            self.assertEqual((result.returncode, result.stderr), (0, ""), command)
        self.assertIn("\nsummary: 2800 119\n", run([ASSAY, "merge", self.old, self.new]).stdout)
        for command in (["annotate", "--diff"], ["export", "--format=folded", "--diff"]):
            self.assertEqual(run([ASSAY, *command, self.old, self.new]).returncode, 0, command)

    def test_events_differ_beside_contexts(self):
        """Both sides share the columns of stacks."""
        stack = "fl=#! stack 1 in=0 jumped=0 f {}\n"
        head = "cmd: x\nevents: {}\nfl=#! version 1\nfl=a.c\nfn=f\n1 {}\n"
        self.old.write_text(head.format("Ir", "5") + stack.format("5") + "summary: 5\n")
        many = " ".join(["5"] * 60)
        self.new.write_text(head.format(" ".join(f"E{i}" for i in range(59)) + " Ir", many) +
                            stack.format(many) + f"summary: {many}\n")
        for form in ("text", "json", "markdown", "html"):
            self.assertEqual(self.diff(f"--format={form}").returncode, 0, form)
            self.assertEqual(self.diff(f"--format={form}", "--show=Ir").returncode, 0, form)

    def test_first_answer_fits_a_screen(self):
        """The events that cause most of the change, and the functions that changed most."""
        def profile(factor):
            rows = "".join(f"fl=a.c\nfn=f{n}\n1 {1000 + n * factor} 5 {n * factor // 10}\n"
                           for n in range(1, 101))
            stacks = "".join(f"fl=#! stack {n} in=0 call=0:0x1:1 f{n} {1000 + n * factor} 5 "
                             f"{n * factor // 10}\n" for n in range(1, 101))
            sums = (100_000 + 5050 * factor, 500, sum(n * factor // 10 for n in range(1, 101)))
            return ("cmd: x\nevents: Ir Dr Bc\nfl=#! version 1\nfl=#! object 0 /a\n" + rows + stacks +
                    "summary: {} {} {}\n".format(*sums))
        self.old.write_text(profile(1))
        self.new.write_text(profile(3))
        text = self.diff().stdout
        self.assertLessEqual(len(text.splitlines()), 24)
        self.assertNotIn("Dr", text)
        self.assertIn("  a.c:f100\n", text)
        self.assertEqual(text.count("more above the threshold: see --full\n"), 2)
        full = self.diff("--full").stdout
        self.assertIn("Dr", full)
        self.assertIn("  a.c:f99\n", full)
        self.assertNotIn("see --full", full)

    def test_contexts_and_values_of_one_side(self):
        """They are no changes."""
        plain = ("cmd: x\nevents: Ir\nfl=#! version 1\nfl=#! object 0 /a\nfl=a.c\nfn=f\n1 {}\n"
                 "fl=#! at 0:0x1 1 {}\n{}summary: {}\n")
        more = ("fl=#! value 0:0x1 1 classic.loaded 9 0x5:9\nfl=#! stack 1 in=0 jumped=0 f 5\n")
        for old, new in (("", more), (more, "")):
            self.old.write_text(plain.format(5, 5, old, 5))
            self.new.write_text(plain.format(5, 5, new, 5))
            document = json.loads(self.diff("--json").stdout)
            self.assertEqual((document["stacks"], document["values"]), ([], []))

    def test_groups(self):
        old = (DATA / "groups.events").read_text()
        group = re.search(r"fl=#! group (\d+) object in=0 table ", old)[1]
        lines = old.splitlines()
        index = next(i for i, line in enumerate(lines) if line.startswith(f"fl=#! of {group} "))
        words = lines[index].split()
        words[5] = str(int(words[5]) - 1)  # Dr
        lines[index] = " ".join(words)
        less = self.write("less", "\n".join(lines) + "\n")
        shown = self.diff("--by=object", "--threshold=0", files=[less, DATA / "groups.events"])
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, r"\n\+1 .*table\n")
        self.assertNotIn("make_node", shown.stdout)
        for limit, status in (("table:+0", 1), ("table:+1", 0), ("make_no*:+0", 0)):
            result = self.diff(f"--fail-on=Dr@object={limit}", files=[less, DATA / "groups.events"])
            self.assertEqual(result.returncode, status, result.stderr)
        for kind in ("type", "member"):
            result = self.diff(f"--by={kind}", "--json", files=[less, DATA / "groups.events"])
            self.assertEqual(json.loads(result.stdout)["groups"], [])

    def test_groups_in_exports(self):
        path = DATA / "groups.events"
        document = json.loads(run([ASSAY, "export", "--format=json", path]).stdout)
        if jsonschema:
            jsonschema.validate(document, json.loads((ROOT / "docs/reference/export-schema.json").read_text()))
        groups = {group["name"]: group for group in document["groups"]}
        self.assertEqual((groups["table"]["kind"], groups["table"]["counts"]), ("object", [0, 30, 2]))
        self.assertEqual([(line["line"], line["counts"]) for line in groups["table"]["lines"]],
                         [(11, [0, 30, 2])])
        self.assertEqual(document["groups"][groups["next"]["parent"] - 1]["name"], "struct node")
        for form in ("csv", "callgrind", "folded"):
            self.assertEqual(run([ASSAY, "export", f"--format={form}", path]).returncode, 0)

    def test_folders(self):
        for side, more in (("base", 0), ("head", 30)):
            self.write(f"{side}/1", events("/ci/one a", a_f=(1000 + more, 1)))
            self.write(f"{side}/2", events(f"/{side}/two", a_f=(1000, 1)))
            self.write(f"{side}/3", events(f"/{side}/two", a_f=(10 + more, 1)))
            self.write(f"{side}/4", events(side, b_f=(5, 1)))
            self.write(f"{side}/notes", "no profile\n")
        pair = [self.folder / "base", self.folder / "head"]
        result = self.diff("--fail-on=Ir:+2%", "--fail-on=Ir@f:+50", files=pair)
        self.assertEqual((result.returncode, result.stderr.splitlines()), (1, [
            "assay: one a: Ir: 1,000 -> 1,030, +30 (+3.00%), exceeds Ir:+2%",
            "assay: two: Ir: 1,010 -> 1,040, +30 (+2.97%), exceeds Ir:+2%"]))
        self.assertRegex(result.stdout, r"\n *\+30  \+3.0% .* one a  \(a limit is exceeded\)\n"
                                        r" *\+30  \+3.0% .* two  \(a limit is exceeded\)\n"
                                        r"Only old: base\nOnly new: head\n")
        self.assertNotIn("Warning", result.stdout)
        (self.folder / "head" / "3").unlink()
        self.assertIn("two: Warning: 2 runs of OLD are compared with a run of NEW",
                      self.diff(files=pair).stdout)
        self.write("head/3", events("/head/two", a_f=(40, 1)))
        same = self.diff("--mod-command=s/base/head/", "--format=markdown", files=pair)
        self.assertIn("| Ir of `head` | 5 | 5 |", same.stdout)
        document = json.loads(self.diff("--json", "--fail-on=Ir:+2%", files=pair).stdout)
        self.assertEqual([each["command"] for each in document["programs"]], ["one a", "two"])
        self.assertEqual(document["programs"][0]["difference"]["limits"][0]["exceeded"], True)
        if jsonschema:
            jsonschema.validate(document, json.loads((ROOT / "docs/reference/diff-schema.json").read_text()))

    def test_names_do_not_escape(self):
        hostile = "<script>`|*_[x](y)\x1b</script>"
        for path, count in ((self.old, 100), (self.new, 200)):
            path.write_text(f"{HEAD.format(hostile)}fl={hostile}.c\nfn={hostile}\n1 {count} 1\n"
                            f"summary: {count} 1\n")
        markdown = self.diff("--format=markdown", "--fail-on=Ir:+0").stdout
        row = next(line for line in markdown.splitlines() if line.startswith("| Ir |"))
        self.assertEqual(len(re.findall(r"(?<!\\)\|", row)), 7, row)
        self.assertIn(r"`` <script>`\|*_[x](y)\x1b</script> ``", markdown)
        page = self.diff("--format=html", "--fail-on=Ir:+0").stdout
        for text in (markdown, page):
            self.assertNotIn("\x1b", text)
        self.assertNotIn("<script", page)

    def test_page_shows_both_sources(self):
        self.new.write_text(events(a_f=(1010, 100), a_g=(500, 20), b_h=(100, 0)))
        for side in ("old", "new"):
            (self.folder / f"{side}-source").mkdir()
            (self.folder / f"{side}-source" / "a.c").write_text(f"same\n<{side}>\nlast\n")
        result = self.diff("--format=html", "-o", self.folder / "page.html", "--include",
                           self.folder / "new-source", f"--old-map=/src={self.folder / 'old-source'}")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        page = (self.folder / "page.html").read_text()
        rows = re.findall(r"<tr class=\"changed\">(.*?)</tr>", page)
        self.assertEqual(len(rows), 1)
        self.assertLess(rows[0].index("&lt;old&gt;"), rows[0].index("&lt;new&gt;"))


def block(page: str, language: str, after: str) -> str:
    """The first code block of that language behind some text."""
    return re.search(rf"```{language}\n(.*?)```", page[page.index(after):], re.DOTALL)[1]


def github_steps(workflow: str) -> dict[str, str]:
    steps = {}
    for step in workflow.split("      - ")[1:]:
        if found := re.match(r"name: (\w+)\n", step):
            steps[found[1]] = textwrap.dedent(step[step.index("run: |\n") + len("run: |\n"):])
    return steps


def gitlab_script(workflow: str, name="script") -> str:
    """The lines of a script. A line that begins with >- goes on in the lines below it."""
    script = re.search(rf"\n  {name}:\n((?:    .*\n)+)", workflow)[1]
    commands = re.split(r"(?m)^    - ", script)[1:]
    return "".join(" ".join(command.removeprefix(">-").split("\n      ")).strip() + "\n"
                   for command in commands)


# Stands for gh and for curl. It keeps the comments of a pull request as the host does.
HOST = """#!/usr/bin/env python3
import json, os, subprocess, sys
from pathlib import Path

words = sys.argv[1:]
options = {a: b for a, b in zip(words, words[1:]) if a.startswith("--")}
store = Path(os.environ["COMMENTS"])
comments = json.loads(store.read_text())
method = options.get("--method", options.get("--request", "GET"))
url = next(word for word in reversed(words) if "/" in word and options.get("--jq") != word)
assert "repos/o/r/issues" in url or "/projects/7/merge_requests/5/notes" in url, url
if method == "GET":
    body = json.dumps(comments)
    if "--jq" in options:
        body = subprocess.run(["jq", "--raw-output", options["--jq"]], input=body, check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    print(body, end="")
    sys.exit()
name, _, file = (options.get("--field") or options["--data-urlencode"]).partition("@")
assert name.strip("=") == "body"
body = Path(file).read_text()
last = url.rsplit("/", 1)[1]
if method in ("PATCH", "PUT"):
    next(each for each in comments if str(each["id"]) == last)["body"] = body
else:
    assert method == "POST" and last in ("comments", "notes")
    comments.append({"id": len(comments) + 1, "user": {"type": "Bot"}, "body": body})
store.write_text(json.dumps(comments))
"""


@needs("git", "make", "g++")
class Workflows(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)
        page = (ROOT / "docs/guides/ci.md").read_text()
        steps = github_steps(block(page, "yaml", "### GitHub"))
        self.assertEqual(list(steps), ["Count", "Compare", "Comment"])
        self.comment_scripts = {"github": steps["Comment"],
                                "gitlab": gitlab_script(block(page, "yaml", "### GitLab"), "after_script")}
        self.scripts = {"github": steps["Count"] + steps["Compare"],
                        "gitlab": gitlab_script(block(page, "yaml", "### GitLab"))}
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "assay").symlink_to(ASSAY)
        self.environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}",
                            "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        self.git("init", "--quiet")
        (self.repository / "count.sh").write_text(block(page, "sh", "## Workflows"))
        (self.repository / "count.sh").chmod(0o755)
        (self.repository / "Makefile").write_text(MAKEFILE)
        (self.repository / ".gitignore").write_text("/base-source\n/base\n/head\n/work\n/comment.md\n/counts.html\n")
        self.commit("First", SOURCE)

    def git(self, *words) -> str:
        return subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *words],
                              cwd=self.repository, env=self.environment, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def commit(self, message, source):
        (self.repository / "work.cpp").write_text(source)
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", message)

    def gate(self, host):
        """The exit status of the workflow's steps, and the comment."""
        if host == "github":  # clones anew for each run
            self.git("worktree", "prune")
        self.environment["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = self.git("rev-parse", "HEAD^1")
        result = run(["sh", "-eu", "-c", self.scripts[host]], cwd=self.repository, env=self.environment)
        self.assertTrue((self.repository / "counts.html").exists(), result.stderr)
        comment = (self.repository / "comment.md").read_text()
        # GitLab keeps the clone, and removes files that git does not know.
        for name in ("base", "head", "base-source"):
            shutil.rmtree(self.repository / name)
        for name in ("comment.md", "counts.html", "work"):
            (self.repository / name).unlink()
        return result.returncode, comment, result.stderr

    @needs("jq")
    def test_a_comment_is_edited(self):
        for name in ("gh", "curl"):
            (self.folder / "bin" / name).write_text(HOST)
            (self.folder / "bin" / name).chmod(0o755)
        store = self.folder / "comments"
        of_a_person = {"id": 1, "user": {"type": "User"}, "body": "Fine"}
        environment = {**self.environment, "COMMENTS": str(store), "GITHUB_REPOSITORY": "o/r", "NUMBER": "5",
                       "GITHUB_STEP_SUMMARY": str(self.folder / "summary"), "COMMENT_TOKEN": "t",
                       "CI_API_V4_URL": "https://example.com", "CI_PROJECT_ID": "7",
                       "CI_MERGE_REQUEST_IID": "5"}
        for host, script in self.comment_scripts.items():
            store.write_text(json.dumps([of_a_person]))
            for text in ("### first\n", "### second\n"):
                (self.repository / "comment.md").write_text(text)
                result = run(["sh", "-eu", "-c", script], cwd=self.repository, env=environment)
                self.assertEqual(result.returncode, 0, (host, result.stderr))
                comments = json.loads(store.read_text())
                self.assertEqual([each["body"] for each in comments],
                                 ["Fine", "<!-- counts -->\n" + text], host)

    def test_history(self):
        """The commit is named in which a function grew; names give the order, by number."""
        history = self.folder / "history"
        inlined = SOURCE.replace(*INLINED)
        for number, source in ((8, SOURCE), (9, inlined), (10, inlined.replace(*SLOWER)),
                               (11, inlined.replace(*SLOWER))):
            self.commit(f"Commit {number}", source + f"// {number}\n")
            result = run(["./count.sh", ".", history / f"{number}-abc"], cwd=self.repository,
                         env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
        result = run([ASSAY, "history", history])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("Ir of work\n", result.stdout)
        rows = re.findall(r"(?m)^(\d+)-abc +([\d,]+) +(\S*) +\|( *)\*( *)\|$", result.stdout)
        self.assertEqual([row[0] for row in rows], ["8", "9", "10", "11"])
        counts = [int(row[1].replace(",", "")) for row in rows]
        self.assertEqual((counts[2], counts[3]), (counts[3], max(counts)))
        self.assertEqual(([len(row[4]) for row in rows][2:], max(len(row[3]) for row in rows)), ([0, 0], 39))
        grown = result.stdout.split("\n10-abc", 1)[1]
        self.assertRegex(grown.splitlines()[1], r"^    \+[\d,]+ \(\+1\.0%\)  .*work.cpp:.*stir")
        self.assertEqual(result.stdout.count("stir"), 1, result.stdout)
        page = run([ASSAY, "history", "--format=html", history]).stdout
        self.assertEqual((page.count("<circle "), page.count("<polyline "), page.count("work.cpp:")), (4, 1, 1))
        self.assertEqual(run([ASSAY, "history", "-o", self.folder / "page.html", history]).returncode, 125)
        none = run([ASSAY, "history", "--show=Bc", history])
        self.assertEqual((none.returncode, none.stderr.count("\n")), (125, 1))
        self.assertIn("no event 'Bc'", none.stderr)
        empty = run([ASSAY, "history", self.repository / ".git"])
        self.assertEqual(empty.returncode, 125)

    def test_inlining_passes_and_a_slower_loop_fails(self):
        inlined = SOURCE.replace(*INLINED)
        self.commit("Inline a function", inlined)
        for host in self.scripts:
            status, comment, problems = self.gate(host)
            self.assertEqual(status, 0, problems + comment)
            self.assertIn("no limit is exceeded", comment)
            self.assertNotRegex(comment, r"\(new\)|\(gone\)|\+100")
        self.commit("Make a loop slower", inlined.replace(*SLOWER))
        for host in self.scripts:
            status, comment, problems = self.gate(host)
            self.assertEqual(status, 1, problems + comment)
            self.assertRegex(problems, r"(?m)^assay: .*exceeds Ir:\+0\.5%$")
            why = [line for line in comment.splitlines() if line][:5]
            self.assertRegex(why[0], "a limit is exceeded")
            self.assertRegex(why[3], r"Ir .*\+0\.\d+%.*`Ir:\+0\.5%` \| exceeded")
            self.assertRegex(why[4], r"^Ir .*grew most in `work.cpp:.*stir.*`: \+[\d,]+ \(\+1\.0%\)")


if __name__ == "__main__":
    unittest.main()
