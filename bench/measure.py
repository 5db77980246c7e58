"""Runs one command and measures it as a whole: start-up, work, and writing of its output."""

import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

# The same few variables for every run, so that neither the user's settings nor the size of the
# environment block matter.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent",
               "PYTHONHASHSEED": "0"}


@dataclass(frozen=True)
class Run:
    seconds: float
    processor: float  # seconds of all processes that were waited for
    status: int  # as waitstatus_to_exitcode: negative for a signal
    digest: str  # of standard output


def _spawn(argv, stdin: Path | None, stdout: Path, stderr: Path) -> int:
    files = [(os.POSIX_SPAWN_OPEN, 0, str(stdin or "/dev/null"), os.O_RDONLY, 0)]
    for descriptor, path in ((1, stdout), (2, stderr)):
        files.append((os.POSIX_SPAWN_OPEN, descriptor, str(path),
                      os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
    return os.posix_spawnp(argv[0], argv, ENVIRONMENT, file_actions=files, setpgroup=0)


def run(argv, stdin: Path | None, stdout: Path, stderr: Path, timeout: float) -> Run:
    """Runs `argv` with its output in files. Ends it after `timeout` seconds."""
    before = os.times()
    start = time.perf_counter()
    pid = _spawn(argv, stdin, stdout, stderr)
    status = _wait(pid, start + timeout)
    seconds = time.perf_counter() - start
    processor = sum(os.times()[2:4]) - sum(before[2:4])
    with stdout.open("rb") as output:
        digest = hashlib.file_digest(output, "sha256").hexdigest()
    return Run(seconds, processor, os.waitstatus_to_exitcode(status), digest)


def _wait(pid: int, deadline: float) -> int:
    """Waits without polling while the process lives shorter than the deadline."""
    def expired(_signal, _frame):
        os.killpg(pid, signal.SIGKILL)

    previous = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, max(deadline - time.perf_counter(), 0.001))
    try:
        return os.waitpid(pid, 0)[1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def peak_memory(argv, stdin: Path | None, folder: Path, timeout: float) -> int:
    """Peak of the memory of all processes of a run, in bytes. Shared pages count once (PSS), so
    this samples /proc and slows the program down: never take the time of the same run."""
    pid = _spawn(argv, stdin, folder / "memory.out", folder / "memory.err")
    deadline = time.monotonic() + timeout
    peak = 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        peak = max(peak, sum(_pss(process) for process in _group(pid)))
        if time.monotonic() > deadline:
            os.killpg(pid, 9)
        time.sleep(0.005)
    os.waitpid(pid, 0)
    return peak


def _group(leader: int) -> list[int]:
    """The leader and its descendants."""
    found = [leader]
    for process in found:
        try:
            children = Path(f"/proc/{process}/task/{process}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in children.split()]
    return found


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # it ended in the meantime
    return 0
