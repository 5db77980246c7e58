"""Reads events files with assay's tools. Each must take the file without a word on stderr, and show
the totals that the file has."""

import csv
import gzip
import json
import subprocess
from pathlib import Path

from events_file import Profile, added, read_profile

PATIENCE = 120  # seconds
NO_INSTRUCTIONS = "no counts of instructions"
FORMATS = ("callgrind", "pprof", "firefox", "speedscope", "folded", "json", "csv")


class Bad(Exception):
    """What is wrong, in one line."""


def read_all(assay: Path, profiles: list[Profile], has_instructions: bool,
             vectors: list[Path], formats: tuple[str, ...] = FORMATS) -> list[str]:
    """What is wrong. Of several files, the one that counts most gets all tools, and the others
    one each; all are merged. `formats`: those that it is exported in."""
    if not profiles:
        return []
    first = max(profiles, key=lambda profile: profile.path.stat().st_size)
    reader = Reader(assay, first.path.with_name("read"))
    checks = [(reader.annotate, profile) for profile in profiles]
    checks += [(reader.listed if has_instructions else reader.not_listed, first),
               (reader.report, first), (reader.diff, first), (reader.merge, profiles)]
    checks += [(getattr(reader, name), first) for name in formats]
    checks += [(reader.phases, path) for path in vectors]
    return [problem for check, subject in checks if (problem := reader.problem(check, subject))]


class Reader:
    def __init__(self, assay: Path, made: Path):
        self.assay = assay
        self.made = made  # what a tool writes

    def problem(self, check, subject) -> str:
        try:
            check(subject)
        except (Bad, ValueError, KeyError, OSError) as why:
            return f"{check.__name__.replace('_', ' ')}: {why}".replace("\n", " ")[:300]
        except subprocess.TimeoutExpired:
            return f"{check.__name__}: not done after {PATIENCE} s"
        return ""

    def run(self, *words) -> bytes:
        done = subprocess.run([self.assay, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE, check=False)
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode or said:
            raise Bad(f"status {done.returncode}: {said}")
        return done.stdout

    def annotate(self, profile: Profile) -> None:
        expect_printed(self.run("annotate", "--full", profile.path), profile)

    def listed(self, profile: Profile) -> None:
        if profile.counts:
            expect_printed(self.run("list", "--full", "--threshold=5", profile.path), profile)
        else:
            self.not_listed(profile)

    def not_listed(self, profile: Profile) -> None:
        """It has no counts to list, and may have values."""
        try:
            text = self.run("list", profile.path).decode(errors="replace")
        except Bad as why:
            text = str(why)
        if NO_INSTRUCTIONS not in text:
            raise Bad(f"does not say that there are no counts of instructions: {text[:200]}")

    def report(self, profile: Profile) -> None:
        self.run("report", "-o", self.made, profile.path)
        expect_page(self.made)

    def diff(self, profile: Profile) -> None:
        found = json.loads(self.run("diff", "--json", "--threshold=0", profile.path, profile.path))
        totals = dict(zip((event["name"] for event in found["events"]), found["totals"]["old"]))
        expect_totals(totals, profile.totals)
        if found["totals"]["old"] != found["totals"]["new"]:
            raise Bad("a file has other totals than itself")
        for what in ("functions", "stacks", "values"):
            if found[what]:
                raise Bad(f"a file has other {what} than itself: {found[what][0]}")

    def merge(self, profiles: list[Profile]) -> None:
        paths = [profile.path for profile in profiles]
        self.run("merge", "-o", self.made, *paths, *paths)
        expect_totals(read_profile(self.made).totals,
                      {name: 2 * total for name, total in added(profiles).items()})
        self.run("annotate", self.made)

    def phases(self, vectors: Path) -> None:
        simpoints = ["--save-simpoints=/dev/null", "--save-weights=/dev/null"]
        if b"phase" not in self.run("simpoint", "--maxK=4", *simpoints, vectors):
            raise Bad("no phases are shown")

    def exported(self, profile: Profile, form: str) -> bytes:
        text = self.run("export", f"--format={form}", profile.path)
        if profile.counts and not text:
            raise Bad("nothing")
        return text

    def callgrind(self, profile: Profile) -> None:
        self.made.write_bytes(self.exported(profile, "callgrind"))
        expect_totals(read_profile(self.made).totals, profile.totals)

    def pprof(self, profile: Profile) -> None:
        if not gzip.decompress(self.exported(profile, "pprof")):
            raise Bad("nothing in gzip")

    def firefox(self, profile: Profile) -> None:
        threads = json.loads(self.exported(profile, "firefox"))["threads"]
        expect_totals({one["name"]: sum(one["samples"]["weight"]) for one in threads},
                      profile.counts)

    def speedscope(self, profile: Profile) -> None:
        found = json.loads(self.exported(profile, "speedscope"))["profiles"]
        expect_totals({one["name"]: sum(one["weights"]) for one in found}, profile.counts)

    def folded(self, profile: Profile) -> None:
        event, total = next(iter(profile.totals.items()))
        text = self.run("export", "--format=folded", f"--event={event}", profile.path)
        expect_totals({event: sum(int(line.rpartition(b" ")[2]) for line in text.splitlines())},
                      {event: total})

    def json(self, profile: Profile) -> None:
        events = json.loads(self.exported(profile, "json"))["events"]
        expect_totals({one["name"]: one["total"] for one in events}, profile.totals)

    def csv(self, profile: Profile) -> None:
        text = self.exported(profile, "csv").decode(errors="replace")
        names, *rows = csv.reader(text.splitlines(keepends=True))
        columns = list(zip(*rows)) or [()] * len(names)
        expect_totals({name: sum(map(int, column)) for name, column in zip(names, columns)
                       if name in profile.totals}, profile.totals)


def expect_printed(text: bytes, profile: Profile) -> None:
    for name, total in profile.counts.items():
        if f"{total:,}".encode() not in text:
            raise Bad(f"does not show the {total:,} of {name}")


def expect_page(path: Path) -> None:
    if not path.read_bytes().rstrip().endswith(b"</html>"):
        raise Bad("no whole page")


def expect_totals(found: dict[str, int], expected: dict[str, int]) -> None:
    for name, total in expected.items():
        if found.get(name, 0) != total:
            raise Bad(f"{found.get(name, 0):,} {name}, not {total:,}")
