"""What the matrix needs to know of an events file, read without assay's own tools."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Profile:
    path: Path
    totals: dict[str, int]  # by event, in the file's order
    profilers: dict[str, str]  # which one counts the event
    incomplete: list[str]

    @property
    def counts(self) -> dict[str, int]:
        return {name: total for name, total in self.totals.items() if total}


def read_profile(path: Path) -> Profile:
    text = path.read_text(errors="replace")
    events = _line(text, "events", path).split()
    summary = [int(word) for word in _line(text, "summary", path).split()]
    if len(events) != len(summary):
        raise ValueError(f"{path.name} has totals of {len(summary)} events, not {len(events)}")
    profilers = dict(re.findall(r"^fl=#! event (\S+) .*?profiler=(\S+)", text, re.MULTILINE))
    incomplete = re.findall(r"^fl=#! incomplete (.*)", text, re.MULTILINE)
    return Profile(path, dict(zip(events, summary)), profilers, incomplete)


def _line(text: str, name: str, path: Path) -> str:
    found = re.search(rf"^{name}: (.*)", text, re.MULTILINE)
    if not found:
        raise ValueError(f"{path.name} has no line \"{name}:\" among its {len(text)} bytes")
    return found[1]


def added(profiles: list[Profile]) -> dict[str, int]:
    """The totals of a run's processes together."""
    sums: dict[str, int] = {}
    for profile in profiles:
        for name, total in profile.totals.items():
            sums[name] = sums.get(name, 0) + total
    return sums
