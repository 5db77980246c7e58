"""Says what is wrong with a run under assay."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from case import Case
from events_file import Profile, added, read_profile
from execution import Outcome, verdict
from programs import is_steady
from settings import REFERENCE, STRETCH, Setting, Variant

# How far instructions may be off, as a part of all. What threads, pipes and clocks do differs from
# run to run. Of other programs they are exact even with --sample, but for rounding where a row has
# another event first.
BOUND, STEADY_BOUND = 0.005, 0.0001
# effective_address takes samples of irregular strides, unless another profiler has all references
# recorded.
ESTIMATES = ("StrC", "StrF", "StrI")
# classic takes each basic block by itself, and bbv cuts some where an interval ends.
BY_BLOCK = ("Same", "Top")
WROTE = re.compile(r"wrote (?:\S+(?: and \S+ of \d+ parts)?|\d+ profiles, and \S+ for all of them); "
                   r"read it with: assay summary \S+")
NOT_SAMPLED = (
    "struct_layout: layouts need all references of the run: there is no advice with --sample",
    "reuse: no reuse distances with --sample: they reach from one burst to another",
    "working_set: no working sets with --sample: bursts show only a part of each interval")
NO_BURST = re.compile(r"no burst of --sample was reached in (\d+) instructions")


@dataclass
class Reference:
    """What the first run of a program has told, for the later ones to be the same."""

    files: int = 0
    instructions: int = 0
    # By profiler, with its options, and event.
    totals: dict[tuple[str, str, str], int] = field(default_factory=dict)


@dataclass
class Run:
    case: Case
    setting: Setting
    variant: Variant
    out: Path  # the folder of what it has written

    def judge(self, alone: Outcome, under: Outcome | None) -> tuple[list[str], list[Profile]]:
        """What is wrong before any file is compared, and the files that can be read."""
        found = verdict(self.case, alone, under)
        if under is None:
            return [found], []
        problems = [] if found == "same" else [found]
        problems += unexpected(under.stderr, alone.stderr, self.variant)
        profiles, unreadable = self.profiles()
        return problems + unreadable, profiles

    def profiles(self) -> tuple[list[Profile], list[str]]:
        """The events files, and what is wrong with those that cannot be read or are not whole."""
        profiles, problems = [], []
        for path in sorted(self.out.glob("events.*")):
            try:
                profiles.append(read_profile(path))
            except ValueError as why:
                problems.append(str(why))
        for profile in profiles:
            problems += [f"{profile.path.name} is incomplete: {why}" for why in profile.incomplete
                         if not too_short(why, self.variant)]
        return profiles, problems

    def compare(self, profiles: list[Profile], reference: Reference) -> list[str]:
        """What differs from earlier runs. The first one makes the reference."""
        if self.setting == REFERENCE and not self.variant.sample and not reference.files:
            reference.files = len(profiles)
            reference.instructions = added(profiles).get("Ir", 0)
        problems = self.empty_reports() + self.wrong_totals(profiles, reference)
        if not profiles or len(profiles) != reference.files:
            problems.append(f"{len(profiles)} events files, not {reference.files or 'one or more'}")
        return problems

    def empty_reports(self) -> list[str]:
        return [f"{path.name} is empty" for path in sorted(self.out.iterdir())
                if path.is_file() and path.stat().st_size == 0
                and not path.name.startswith("pc.")]  # there may be no interval

    def wrong_totals(self, profiles: list[Profile], reference: Reference) -> list[str]:
        if self.variant.sample and any(profile.incomplete for profile in profiles):
            return []  # shorter than a stretch
        problems = []
        profilers = {key: name for one in profiles for key, name in one.profilers.items()}
        for event, total in added(profiles).items():
            profiler = profilers.get(event, "")
            options = self.setting.options.get(profiler, "")
            kind = event.rpartition(".")[2]
            if kind == "Ir" and "--rep=iterations" not in options:
                problems += beyond(event, total, reference.instructions,
                                   STEADY_BOUND if is_steady(self.case) else BOUND)
            if self.is_repeatable(kind):
                expected = reference.totals.setdefault((profiler, options, kind), total)
                problems += beyond(event, total, expected,
                                   STEADY_BOUND if kind in BY_BLOCK else 0)
        return problems

    def is_repeatable(self, event: str) -> bool:
        """Whether all runs must count the same."""
        return (is_steady(self.case) and not self.variant.sample and not self.setting.wholesale
                and event not in ESTIMATES)

    def vectors(self) -> list[Path]:
        """bbv's files with at least one interval."""
        return [path for path in sorted(self.out.glob("vectors.*"))
                if b"\nT" in b"\n" + path.read_bytes()]


def beyond(event: str, total: int, expected: int, bound: float) -> list[str]:
    if abs(total - expected) <= bound * expected:
        return []
    return [f"{event} {total:,}, not {expected:,}"]


def unexpected(stderr: bytes, native: bytes, variant: Variant) -> list[str]:
    """Lines of assay's that should not be there, and what differs in the program's own."""
    problems, own = [], []
    for line in stderr.decode(errors="replace").splitlines():
        if line.startswith("assay: "):
            said = line.removeprefix("assay: ")
            if variant.sample and said in NOT_SAMPLED:
                continue
            if not WROTE.fullmatch(said) and not too_short(said, variant):
                problems.append(line)
        elif not re.match(r"==\d+==", line):
            own.append(line)
    if own != native.decode(errors="replace").splitlines():
        problems.append(f"stderr has other lines than alone: {own[:3]}")
    return problems


def too_short(said: str, variant: Variant) -> bool:
    """Whether a run says rightly that it had no burst: one lies anywhere in a stretch."""
    found = NO_BURST.match(said)
    return bool(variant.sample and found and int(found[1]) < 2 * STRETCH[variant.sample])
