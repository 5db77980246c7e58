"""Programs with several threads or processes, and those that generate code."""

from pathlib import Path

from case import Case

PROGRAMS = Path(__file__).resolve().parent / "programs"
PYTHON = "/usr/bin/python3"


def threaded_cases(inputs: Path) -> list[Case]:
    numbers = str(inputs / "numbers")
    return [
        Case("xz -T2", ("/usr/bin/xz", "-T2", "-0", "--block-size=256KiB", "-kc", numbers)),
        Case("unxz -T2", ("/usr/bin/xz", "-T2", "-dkc", str(inputs / "packed.xz"))),
        Case("pigz", ("/usr/bin/pigz", "-p3", "-nkc", numbers)),
        Case("zstd -T2", ("/usr/bin/zstd", "-T2", "-B512KiB", "-3", "-qkc", numbers)),
        Case("sort --parallel", ("/usr/bin/sort", "--parallel=3", "-S", "50M", numbers)),
        Case("sort and merge", ("/usr/bin/sort", "--parallel=2", "-S", "1M", "-T", ".", numbers)),
        Case("povray with threads", ("/usr/bin/povray", f"+I{inputs / 'scene.pov'}", "+W64", "+H48",
                                     "-D", "-GA", "+WT3", "+FB", "+Oscene.bmp", "-V"),
             compared=("files",), slow=True),
        Case("sqlite3 sorting in threads", ("/usr/bin/sqlite3", "made.db"), inputs / "threads.sql"),
        _python("threads"),
        _python("multiprocessing"),
        _python("ctypes"),
        _python("sqlite", ("stdout", "stderr")),  # the threads' rows come in any order
        Case("luajit", ("/usr/bin/luajit", str(PROGRAMS / "jit.lua"))),
        Case("luajit without its JIT", ("/usr/bin/luajit", "-joff", str(PROGRAMS / "jit.lua"))),
    ]


def _python(name: str, compared: tuple[str, ...] = ("stdout", "stderr", "files")) -> Case:
    return Case(f"python3 {name}", (PYTHON, str(PROGRAMS / f"{name}_test.py")), compared=compared)


def sanitized_cases(inputs: Path) -> list[Case]:
    """Programs that their compiler has put checks into; their reports tell process ids."""
    def case(sanitizer: str, *wanted: str) -> Case:
        return Case(" ".join((f"{sanitizer} sanitizer", *wanted)),
                    (str(inputs / f"sanitized-{sanitizer}"), *wanted), compared=("stdout",))
    return [case("address"), case("address", "leak"), case("address", "beyond"), case("leak"),
            case("leak", "leak"), case("thread", "race"), case("undefined", "race")]


def building_cases(inputs: Path, sources: Path) -> list[Case]:
    """Compilers that start programs, make, git, shells: many short processes."""
    unit, main = str(inputs / "unit.i"), str(inputs / "main.c")
    lua = sources / "lua5.4"
    return [
        Case("gcc with ld", ("/usr/bin/gcc", "-O1", "-pipe", main, unit, "-o", "program"),
             slow=True),
        Case("gcc with collect2 and LTO", ("/usr/bin/gcc", "-O1", "-flto=2", "-frandom-seed=1", main,
                                           "-o", "program")),
        Case("make -j2", ("/usr/bin/make", "-j2", "-s", "-f", str(PROGRAMS / "project.mk"),
                          f"SOURCES={inputs / 'project'}"), slow=True),
        Case("make -j2 of Lua", ("/bin/bash", str(PROGRAMS / "make_lua.sh"), str(lua)), slow=True,
             needs=(str(lua), "make", "gcc"), compared=("stdout", "stderr")),
        # An index holds times and inode numbers.
        Case("git", ("/bin/bash", str(PROGRAMS / "git.sh")), needs=("git",),
             compared=("stdout", "stderr")),
        # bash tells the ids of processes that were killed.
        Case("pipes and traps", ("/bin/bash", str(PROGRAMS / "pipes_and_traps.sh")),
             compared=("stdout", "files")),
        Case("dash with pipes and traps", ("/bin/dash", str(PROGRAMS / "traps.sh"))),
    ]


def server_cases() -> list[Case]:
    """Servers under assay, their clients and their supervision without."""
    def server(name: str, *needs: str, slow: bool = False) -> Case:
        return Case(name, ("/bin/bash", str(PROGRAMS / f"{name}.sh")), needs=needs, slow=slow,
                    places_itself=True, compared=("stdout",))
    return [
        server("redis", "redis-server", "redis-cli", "redis-benchmark"),
        server("nginx", "nginx", "ab", "curl"),
        server("postgres", "/usr/lib/postgresql", "setpriv", slow=True),
    ]


def media_cases(inputs: Path) -> list[Case]:
    """Encoders and browsers."""
    page = str(PROGRAMS / "page.html")
    encode = ("/usr/bin/ffmpeg", "-nostdin", "-v", "error", "-flags", "+bitexact", "-fflags",
              "+bitexact", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=2")
    return [
        Case("ffmpeg mpeg4", (*encode, "-threads", "2", "-c:v", "mpeg4", "-flags", "+bitexact",
                              "-f", "framemd5", "-"), slow=True),
        # With scene cuts, x264's frames depend on how its threads take turns.
        Case("ffmpeg x264", (*encode, "-threads", "3", "-c:v", "libx264", "-preset", "veryfast",
                             "-sc_threshold", "0", "-f", "framemd5", "-"), slow=True),
        # Their words tell times and addresses.
        *(Case(f"{browser} screenshot, {words} sandbox",
               ("/bin/bash", str(PROGRAMS / "screenshot.sh"), browser, sandbox, page),
               needs=(program,), compared=("files",), files=("shot.png",), slow=True)
          for browser, program in (("chromium", "chromium"), ("firefox", "firefox-esr"))
          for sandbox, words in (("yes", "in its"), ("no", "without"))),
    ]


def refused_cases() -> list[Case]:
    """Programs that would trace the driver instead of what they are told to trace."""
    return [
        Case("strace", ("/usr/bin/strace", "-o", "trace", "/bin/true"), refused="ptrace",
             compared=()),
        Case("gdb", ("/usr/bin/gdb", "-nx", "-batch", "-ex", "run", "/bin/true"), refused="ptrace",
             compared=(), slow=True),
    ]
