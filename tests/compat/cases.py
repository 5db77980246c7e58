"""Small programs that must behave under assay as they do alone, and how to run each."""

import shutil
import subprocess
from pathlib import Path

from case import Case

HOSTED = ("blocked_signals", "descriptors", "endings", "faulting_strings", "gs_segment",
          "interrupted", "interrupted_calls", "kernel", "large_data", "proc_files", "signal_frames",
          "shown_state", "signals", "jumps", "processes", "relatives", "surroundings", "threads", "thread_ends",
          "thread_signals", "tracing", "generated_code", "mapped_code", "executable_stack", "openmp", "thrown")

# Addresses are random natively.
NOT_COMPARABLE = {"surroundings addresses", "surroundings addresses_of_threads"}
# They differ, or are refused (end_to_end/test_kernel.py).
NOT_COMPARABLE |= {f"kernel {name}" for name in (
    "in_the_way", "mapped_over_driver", "moved_over_driver", "denied")}
NOT_COMPARABLE.add("signal_frames other_segment")
NOT_COMPARABLE |= {f"tracing {name}" for name in ("traced", "tracer", "stepped")}


# Features with such components, as the kernel lists them.
HIDDEN_STATE = {"mpx", "amx_tile", "apx"}


def processor_features() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


def own_cases(programs: Path) -> list[Case]:
    """The test programs of tests/programs, each case of each."""
    found = []
    for program in HOSTED:
        path = programs / program
        if not path.exists():  # openmp, with a compiler that has none
            continue
        names = subprocess.run([path], capture_output=True, text=True, check=True).stdout.split()
        found += [Case(f"{program} {name}", (str(path), name)) for name in names
                  if f"{program} {name}" not in NOT_COMPARABLE]
    # Its other cases are refused (end_to_end/test_failures.py).
    found.append(Case("segments others", (str(programs / "segments"), "others")))
    # Its case "leaves" tells on which core it ran.
    names = ["saved_state", "state_fault", "signal_frame", "protection_keys", "interrupt_return",
             "undefined_flags", "transaction", "tiles", "more_registers",
             "alignment_check", "alignment_kept"]
    # These print components and the sizes of frames. The driver hides some components.
    if not HIDDEN_STATE & processor_features():
        names += ["enabled", "vector", "frame_words", "permissions"]
    found += [Case(f"processor {name}", (str(programs / "processor"), name)) for name in names]
    found += [Case(name, (str(programs / name),)) for name in (
        "exceptions", "work", "work_static", "unusual", "frames", "repeat", "x87",
        "atomics", "avx", "sse", "bits", "select")]
    return found


def shell_cases(inputs: Path) -> list[Case]:
    """What a shell would do around a program."""
    cat, echo = "/bin/cat", "/bin/echo"
    return [
        Case("stdin closed", (cat,), closed=(0,)),
        Case("stdout closed", (echo, "nobody", "reads"), closed=(1,)),
        Case("stderr closed", (cat, "/nonexistent"), closed=(2,)),
        Case("all closed", (echo, "x"), closed=(0, 1, 2)),
        Case("script", (str(inputs / "script.sh"), "one", "two words")),
        Case("script with an argument", (str(inputs / "script.awk"),), inputs / "text"),
        Case("script through env", (str(inputs / "script.py"), "x")),
        Case("program by name", ("echo", "found", "on", "the", "path")),
        Case("empty argument", (echo, "", "a b", "*")),
        Case("shell", ("/bin/sh", "-c", "for i in 1 2 3; do echo $i | cat; done; exit 9")),
        Case("bash", ("/bin/bash", "-c", "x=(a b c); echo ${#x[@]} ${x[-1]}; kill -TERM $$")),
    ]


def system_cases(inputs: Path) -> list[Case]:
    """Programs of an ordinary Debian."""
    text, packed = str(inputs / "text"), inputs / "packed"
    script = inputs / "queries.sql"
    busybox = "/bin/busybox"
    compiler = _tool("cc1")
    return [
        Case("true", ("/bin/true",)),
        Case("false", ("/bin/false",)),
        Case("cat", ("/bin/cat", text)),
        Case("ls -lR", ("/bin/ls", "-lR", "--time-style=full-iso", "/usr/share/doc/bash")),
        Case("ls of nothing", ("/bin/ls", "/nonexistent")),
        Case("grep", ("/bin/grep", "-nE", "(an|er)[a-m]+t", text)),
        Case("sed", ("/bin/sed", "-E", "s/([a-z])([a-z]+)/\\2\\1ay/g", text)),
        Case("mawk", ("/usr/bin/mawk", "{n[length($1)]++} END {for (i = 0; i < 20; i++)"
                      " printf \"%d %d %.3f\\n\", i, n[i], sin(n[i])}", text)),
        Case("gawk", ("/usr/bin/gawk", "{s += length($0)} END {print s, NR, log(s)}", text)),
        Case("sort", ("/usr/bin/sort", "--parallel=1", text)),
        Case("wc", ("/usr/bin/wc", text)),
        Case("md5sum", ("/usr/bin/md5sum", text)),
        Case("tar", ("/bin/tar", "cf", "-", "-C", str(inputs), "text", "script.sh")),
        Case("date", ("/bin/date", "-u", "-d", "@1700000000")),
        Case("find", ("/usr/bin/find", "/usr/share/doc/bash", "-type", "f")),
        Case("xargs", ("/usr/bin/xargs", "-n", "3", "echo"), inputs / "names"),
        Case("make", ("/usr/bin/make", "-f", str(inputs / "Makefile"))),
        Case("bzip2", ("/usr/bin/bzip2", "-9kc", text)),
        Case("bunzip2", ("/usr/bin/bunzip2", "-kc", f"{packed}.bz2")),
        Case("gzip", ("/usr/bin/gzip", "-9nc", text)),
        Case("gunzip", ("/usr/bin/gzip", "-dc", f"{packed}.gz")),
        Case("gzip of a broken file", ("/usr/bin/gzip", "-tv", text)),
        Case("xz", ("/usr/bin/xz", "-T1", "-3", "-kc", text)),
        Case("unxz", ("/usr/bin/xz", "-T1", "-dkc", f"{packed}.xz")),
        Case("zstd", ("/usr/bin/zstd", "--single-thread", "--no-asyncio", "-qkc", text)),
        Case("bc", ("/usr/bin/bc", "-ql"), inputs / "sums.bc"),
        Case("sqlite3", ("/usr/bin/sqlite3", ":memory:"), script),
        Case("sqlite3 on a file", ("/usr/bin/sqlite3", "made.db"), script),
        Case("perl", ("/usr/bin/perl", "-ne", "$n{lc $_}++ for /\\w+/g; END { print \"$_ $n{$_}\\n\""
                      " for (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0..20] }", text)),
        Case("python3", ("/usr/bin/python3", "-c", "import json, zlib, re, hashlib\n"
                         f"text = open('{text}', 'rb').read()\n"
                         "print(zlib.crc32(text), hashlib.sha256(text).hexdigest())\n"
                         "print(json.dumps(sorted(set(re.findall(rb'\\\\w+', text)))[:5], default=str))\n"
                         "raise SystemExit(5)")),
        Case("python3 traceback", ("/usr/bin/python3", "-c", "{}['missing']")),
        Case("python3 subprocess", ("/usr/bin/python3", "-c", "import subprocess\n"
                                    "print(subprocess.run(['echo', 'x'], capture_output=True))")),
        Case("busybox", (busybox, "sh", "-c", "busybox seq 5 | busybox sort -r; busybox uname")),
        Case("busybox md5sum", (busybox, "md5sum", text)),
        Case("openssl dgst", ("/usr/bin/openssl", "dgst", "-sha3-512", text)),
        Case("openssl enc", ("/usr/bin/openssl", "enc", "-aes-256-cbc", "-K", "00" * 32, "-iv",
                             "01" * 16, "-in", text)),
        # It tells times.
        Case("openssl speed", ("/usr/bin/openssl", "speed", "-seconds", "1", "-bytes", "16384",
                               "-evp", "aes-128-gcm"), compared=(), slow=True),
        Case("cc1", (compiler, "-quiet", "-O2", "-fpreprocessed", str(inputs / "unit.i"), "-o",
                     "unit.s"), slow=True),
        Case("cc1 error", (compiler, "-quiet", str(inputs / "broken.i"), "-o", "unit.s")),
        Case("as", (_tool("as"), "-o", "unit.o", str(inputs / "unit.s"))),
        Case("ld", (_tool("ld"), "-static", "-o", "linked", str(inputs / "unit.o"))),
        Case("gcc", ("/usr/bin/gcc", "-O1", "-c", str(inputs / "unit.i"), "-o", "unit.o"),
             slow=True),
        # They translate programs themselves, and place them at addresses of their choice.
        Case("valgrind", ("/usr/bin/valgrind", "-q", "--tool=none", "/bin/echo", "x"), slow=True),
        Case("qemu", ("/usr/bin/qemu-x86_64", "/bin/echo", "x"), slow=True),
        Case("objdump", ("/usr/bin/objdump", "-dC", str(inputs / "unit.o"))),
        Case("readelf", ("/usr/bin/readelf", "-aW", "/bin/true")),
        Case("git", ("/usr/bin/git", "--no-pager", "diff", "--no-index", "--stat", text,
                     str(inputs / "names"))),
        Case("povray", ("/usr/bin/povray", f"+I{inputs / 'scene.pov'}", "+W32", "+H24", "-D", "-GA",
                        "+WT1", "+FB", "+Oscene.bmp", "-V"), slow=True),
    ]


def _tool(name: str) -> str:
    try:
        found = subprocess.run(["gcc", f"-print-prog-name={name}"], capture_output=True, text=True,
                               check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return name
    return shutil.which(found) or found
