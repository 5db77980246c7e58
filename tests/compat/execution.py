"""Runs a case, cleans up after it, and says whether two runs were the same."""

import ctypes
import fnmatch
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from case import ENVIRONMENT, Case


@dataclass
class Outcome:
    status: int
    stdout: bytes
    stderr: bytes
    files: dict[str, bytes]
    left: int  # processes that were still there at the end
    seconds: float


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent is gone, so that none is
    lost from sight: prctl(2), PR_SET_CHILD_SUBREAPER."""
    set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def execute(case: Case, prefix: list[str], folder: Path, timeout: float) -> Outcome | None:
    """Runs the case in an empty folder; nothing if it does not end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    under = folder.with_name("under")
    words = " ".join(f"'{word}'" for word in prefix)
    under.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    under.chmod(0o755)
    environment = {**ENVIRONMENT, "UNDER": str(under)} if case.places_itself else ENVIRONMENT

    def close():
        for descriptor in case.closed:
            os.close(descriptor)

    started = time.monotonic()
    with open(case.stdin or os.devnull, "rb") as stdin:
        process = subprocess.Popen(
            [*([] if case.places_itself else prefix), *case.argv], cwd=folder,
            env={**environment, **case.environment}, stdin=stdin, close_fds=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=close if case.closed else None)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end_descendants()
            process.communicate()
            return None
    seconds = time.monotonic() - started
    left = wait_for_descendants(2)
    return Outcome(process.returncode, stdout, stderr, collected_files(case, folder), left, seconds)


def collected_files(case: Case, folder: Path) -> dict[str, bytes]:
    if "files" not in case.compared:
        return {}
    names = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}
    return {name: path.read_bytes() for name, path in names.items()
            if stat.S_ISREG(path.lstat().st_mode)
            and any(fnmatch.fnmatch(name, pattern) for pattern in case.files)}


def descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # proc(5): the name stands in parentheses and may contain some itself.
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended meanwhile
        if state != "Z":
            children.setdefault(int(parent), []).append(int(folder.name))
    found = list(children.get(os.getpid(), []))
    for process in found:
        found += children.get(process, [])
    return found


def wait_for_descendants(seconds: float) -> int:
    """Waits for what is about to end anyway, ends the others, and says how many they were."""
    deadline = time.monotonic() + seconds
    while (left := descendants()) and time.monotonic() < deadline:
        time.sleep(0.01)
    end_descendants()
    return len(left)


def end_descendants() -> None:
    while left := descendants():
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)
    reap()


def reap() -> None:
    """Collects adopted children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass  # there is none any more


def verdict(case: Case, alone: Outcome, under: Outcome | None) -> str:
    """What differs, or "same"."""
    if under is None:
        return "does not end"
    if under.status != alone.status:
        words = under.stderr.decode(errors="replace").strip().splitlines()
        return f"status {under.status}, not {alone.status}" + (f": {words[-1][:200]}" if words
                                                                else "")
    for what in case.compared:
        if getattr(under, what) != getattr(alone, what):
            return f"{what} differs: {difference(getattr(alone, what), getattr(under, what))}"
    if under.left > alone.left:
        return f"leaves {under.left} processes, not {alone.left}"
    return "same"


def refusal(case: Case, _alone: Outcome, under: Outcome | None) -> str:
    """Whether assay has said why it does not run the program: "same" if so."""
    if under is None:
        return "does not end"
    lines = under.stderr.decode(errors="replace").splitlines()
    # It may stand behind what a debugger has not ended a line with.
    said = [line[line.index("assay: "):] for line in lines if "assay: " in line]
    # The status is a debugger's own, where it is its child that is refused.
    if under.status != 0 and len(said) == 1 and re.search(case.refused, said[0]):
        return "same"
    return f"status {under.status}, not refused by name: {' / '.join(lines)[:200]}"


def difference(expected, found) -> str:
    """The first place where two outputs part."""
    if isinstance(expected, dict):
        names = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
        return ", ".join(names)[:200]
    ours, theirs = found.splitlines(), expected.splitlines()
    for number, (line, wanted) in enumerate(zip(ours, theirs), 1):
        if line != wanted:
            return f"line {number}: {line[:80]!r}, not {wanted[:80]!r}"
    return f"{len(ours)} lines, not {len(theirs)}" + (f": {ours[-1][:80]!r}" if ours else "")
