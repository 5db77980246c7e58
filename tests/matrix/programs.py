"""The programs of the matrix: mostly the compatibility table's. They end soon, and are
long enough for some bursts of a sampled run."""

from dataclasses import replace
from pathlib import Path

from case import Case
from cases import system_cases

# What is counted of them depends on nothing else: no threads, no pipes, no clock.
STEADY = ("true", "bzip2", "sqlite3", "perl")


def programs(inputs: Path, build: Path) -> list[Case]:
    known = {case.name: case for case in system_cases(inputs)}
    text = str(inputs / "text")
    found = [known[name] for name in (*STEADY, "python3")] + [
        Case("xz -T2", ("/usr/bin/xz", "-T2", "-0", "--block-size=64KiB", "-kc", text)),
        Case("phases threads", (str(build / "tests" / "programs" / "phases"), "threads")),
        Case("pipeline", ("/bin/sh", "-c", "for i in 1 2; do tr -s ' ' '\\n' < \"$0\" | sort"
                          " | uniq -c | sort -rn | tail -2; done; (exit 3)", text)),
    ]
    # Debug information is decompressed once; Perl's hashes are the same in each run.
    environment = {"XDG_CACHE_HOME": str(inputs.parent / "debug-cache"), "PERL_HASH_SEED": "0"}
    # assay speaks on stderr; what the program says there, judge.py compares.
    return [replace(case, compared=("stdout", "files"), environment=environment)
            for case in found]


def is_steady(case: Case) -> bool:
    return case.name in STEADY
