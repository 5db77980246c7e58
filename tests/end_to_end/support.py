"""What the end-to-end tests share: where things are, running them, reading events files."""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ASSAY_BUILD", ROOT / "build"))
ASSAY = Path(os.environ.get("ASSAY", BUILD / "assay"))
PROGRAMS = BUILD / "tests" / "programs"
PLUGINS = BUILD / "tests" / "plugins"

SKIPPED = 77  # the exit status that meson takes for "skipped"

# Meson names the folders of all libraries that it has built. Users' loaders do not search these.
os.environ.pop("LD_LIBRARY_PATH", None)

# Ignored behind nohup(1), and in the background of a shell: the tests' own programs would inherit it.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

GEOMETRY = ["--I1=32768,8,64", "--D1=49152,12,64", "--LL=33554432,16,64"]


class TestResult(unittest.TextTestResult):
    """Also says why a test is skipped."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.stream.writeln(f" {test.id().removeprefix('__main__.')} is skipped: {reason}")


unittest.TextTestRunner.resultclass = TestResult


def run(argv, timeout=300, **more) -> subprocess.CompletedProcess:
    """Runs a command to its end, with its output as text."""
    require(argv[0])
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    for stream in ("stdout", "stderr"):
        more.setdefault(stream, subprocess.PIPE)
    return subprocess.run([str(word) for word in argv], timeout=timeout, text=True,
                          errors="replace", check=False, **more)


def profile(program, *options, plugin="cache", out="/dev/null", **more):
    """Runs a program, given as a list of words, under assay."""
    require(program[0])
    return run([ASSAY, f"--plugin={plugin}", f"--out={out}", *options, "--", *program], **more)


def failure_status(words) -> int:
    """What a command exits with if it fails: assay diff as diff(1) does."""
    return 2 if "diff" in words else 125


def terminal_text(leader: int) -> str:
    """What is written to a terminal, of which this is the other end, until nobody has it open."""
    text = b""
    try:
        while piece := os.read(leader, 65536):
            text += piece
    except OSError:  # EIO: the last has closed it
        pass
    os.close(leader)
    return text.decode()


# The Debian packages of programs that tests need and that assay itself does not.
PACKAGES = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu, libc6-dev-arm64-cross",
            **{f"{name}-g++": f"g++-{name}" for name in ("aarch64-linux-gnu", "riscv64-linux-gnu")},
            **{f"{name}-gcc": f"gcc-{name}" for name in
               ("arm-linux-gnueabihf", "i686-linux-gnu", "powerpc64le-linux-gnu",
                "riscv64-linux-gnu", "s390x-linux-gnu")},
            **{f"qemu-{name}": "qemu-user" for name in
               ("arm", "i386", "ppc64le", "riscv64", "s390x")},
            "bzip2": "bzip2", "callgrind_annotate": "valgrind", "cg_annotate": "valgrind",
            "cg_diff": "valgrind", "cg_merge": "valgrind", "clang": "clang", "cmake": "cmake",
            "erl": "erlang-base", "erlc": "erlang-base", "fish": "fish", "g++": "g++", "gcc": "gcc",
            "gdb": "gdb", "git": "git", "go": "golang-go", "groff": "groff",
            "java": "default-jre-headless", "javac": "default-jdk-headless", "jq": "jq",
            "ld.lld": "lld", "less": "less", "luajit": "luajit", "make": "make", "man": "man-db",
            "meson": "meson",
            "mpicc": "libopenmpi-dev", "mpirun": "openmpi-bin", "node": "nodejs",
            "objcopy": "binutils", "pgrep": "procps", "pkg-config": "pkg-config",
            "qemu-aarch64": "qemu-user", "qemu-system-aarch64": "qemu-system-arm",
            "qemu-system-x86_64": "qemu-system-x86",
            "qemu-system-arm": "qemu-system-arm",
            "qemu-system-riscv64": "qemu-system-misc", "qemu-x86_64": "qemu-user",
            "readelf": "binutils", "sqlite3": "sqlite3", "strace": "strace",
            "tmux": "tmux", "valgrind": "valgrind", "xz": "xz-utils", "zsh": "zsh",
            "zstd": "zstd"}


def installed(*tools) -> bool:
    return all(shutil.which(tool) for tool in tools)


def packages_of(*tools) -> str:
    """What to say where a tool is missing."""
    return "needs " + ", ".join(dict.fromkeys(PACKAGES[tool] for tool in tools))


def needs(*tools):
    """Skips a test, or a class of tests, where one of the programs is not installed."""
    return unittest.skipUnless(installed(*tools), packages_of(*tools))


def require(program) -> None:
    """Skips the test that runs this if the program is one of PACKAGES and is not installed."""
    name = Path(program).name
    if name in PACKAGES and not shutil.which(program):
        raise unittest.SkipTest(packages_of(name))


def allows_base_instructions() -> bool:
    """Whether the kernel says that programs may write the bases of fs and gs (AT_HWCAP2). Where it
    does not, they may work alone all the same, as in virtual machines, until another process runs;
    and what assay does in their place needs arch_prctl(2) (tests/machines)."""
    at_hwcap2, fs_gs_base = 26, 2
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype = ctypes.c_ulong
    return bool(getauxval(ctypes.c_ulong(at_hwcap2)) & fs_gs_base)


def temporary_folder(test) -> Path:
    """A folder that lives as long as the test case."""
    folder = tempfile.mkdtemp(prefix="assay-test-")
    test.addCleanup(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def temporary_folder_of_class(tests) -> Path:
    """A folder that lives as long as a class of test cases, for its setUpClass."""
    folder = tempfile.mkdtemp(prefix="assay-test-")
    tests.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@dataclass
class EventsFile:
    """A profile in Cachegrind's format. `remarks` are the lines beyond it, from `#!` on."""

    descriptions: list[str] = field(default_factory=list)
    command: str = ""
    events: list[str] = field(default_factory=list)
    functions: dict[str, list[int]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    summary: list[int] = field(default_factory=list)

    def totals(self) -> list[int]:
        return [sum(column) for column in zip(*self.functions.values())]


def with_cycles(file: EventsFile) -> EventsFile:
    """The file as tools read it: with the event Cy first if it says how to calculate it."""
    formula = next((line.split(" = ")[1] for line in file.remarks
                    if line.startswith('#! derived "Cy"')), None)
    if formula is None:
        return file

    def row(counts):
        names = dict(zip(file.events, counts))
        return [eval(formula, {"__builtins__": {}}, names), *counts]  # Ir + 10 * (I1mr + D1mr)

    functions = {name: row(counts) for name, counts in file.functions.items()}
    return EventsFile(file.descriptions, file.command, ["Cy", *file.events], functions,
                      file.remarks, row(file.summary))


def read_events(path) -> EventsFile:
    found = EventsFile()
    function = None
    for line in Path(path).read_text(errors="replace").splitlines():
        if line.startswith("desc:"):
            found.descriptions.append(line[5:].strip())
        elif line.startswith("cmd:"):
            found.command = line[4:].strip()
        elif line.startswith("events:"):
            found.events = line[7:].split()
        elif line.startswith("fl=#!"):
            found.remarks.append(line[3:])
        elif line.startswith("#"):
            pass
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith(("fl=", "fi=", "fe=")):
            function = None
        elif line.startswith("summary:"):
            found.summary = [int(word) for word in line[8:].split()]
        elif line:
            if function is None:
                raise ValueError(f"{path}: counts without a function: {line}")
            counts = [int(word) for word in line.split()[1:]]
            counts += [0] * (len(found.events) - len(counts))  # a short line ends in zeros
            before = found.functions.setdefault(function, [0] * len(found.events))
            found.functions[function] = [a + b for a, b in zip(before, counts)]
    return found
