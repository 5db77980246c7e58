#!/usr/bin/env python3
"""Runs a program under Cachegrind and under assay with the same caches and compares the counts.

Every function must agree on every event, exactly: that is what the freestanding programs in
tests/programs are for. Of a program with libc, whose stack and heap lie elsewhere under another
profiler, name the functions to compare; only references are then compared, not misses.

Exits with 0 if all agree, 1 if not, 77 if there is nothing to compare.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from support import SKIPPED, installed, profile, read_events, run

# I1, D1, LL. The small ones make the order in which instruction and data references reach LL
# matter, and lines of different sizes make straddling differ from level to level.
GEOMETRIES = {
    "usual": ("32768,8,64", "49152,12,64", "33554432,16,64"),
    "small": ("1024,2,64", "2048,4,64", "8192,4,64"),
    "direct": ("512,1,64", "512,1,64", "1024,1,64"),
    "lines": ("1024,2,32", "1024,2,128", "4096,4,64"),
    "narrow": ("256,2,32", "512,4,64", "1024,2,32"),
}
REFERENCES = {"Ir", "Dr", "Dw"}
# How many differences to print for one geometry.
MOST = 20
# Valgrind from 3.17 on makes one branch of the two of "a && b", where it meets them in one piece
# (VEX/priv/guest_generic_bb_to_IR.c): pieces of one instruction have none of these.
EACH_BRANCH = "--vex-guest-max-insns=1"
# Cachegrind's name for whatever calls main, and for what stands in its place.
ENTRY = "(below main)"


def cachegrind(program: list[str], options: list[str], out: Path):
    return run(["valgrind", "-q", "--tool=cachegrind", EACH_BRANCH, *options, f"--cachegrind-out-file={out}",
                *program])


def differences(theirs, ours, functions: list[str]) -> list[str]:
    """Lines of a table: function, event, Cachegrind's count, ours."""
    if theirs.events != ours.events:
        return [f"events differ: {theirs.events} and {ours.events}"]
    if "_start" in ours.functions:
        ours.functions[ENTRY] = ours.functions.pop("_start")
    names = functions or sorted(theirs.functions.keys() | ours.functions.keys())
    found = []
    for name in names:
        if name not in theirs.functions or name not in ours.functions:
            missing_in = "assay" if name in theirs.functions else "cachegrind"
            found.append(f"{name:24} is missing in {missing_in}'s file")
            continue
        for event, their, our in zip(theirs.events, theirs.functions[name], ours.functions[name]):
            if their != our and (not functions or event in REFERENCES):
                found.append(f"{name:24} {event:5} {their:12} {our:12} {our - their:+d}")
    return found


def simulation(name: str) -> list[str]:
    """The options for that geometry; with the usual caches branches are predicted, too."""
    caches = [f"--{cache}={value}" for cache, value in zip(("I1", "D1", "LL"), GEOMETRIES[name])]
    return ["--cache-sim=yes", f"--branch-sim={'yes' if name == 'usual' else 'no'}", *caches]


def compare(program, simulated, functions, options) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder) / "cachegrind.out", Path(folder) / "assay.out"
        peer = cachegrind(program, simulated, theirs)
        mine = profile(program, "--quiet", *simulated, *options, out=ours)
        if peer.returncode == SKIPPED:
            sys.exit(SKIPPED)
        if (peer.returncode, peer.stdout) != (mine.returncode, mine.stdout):
            return [f"the program ended with {mine.returncode} and wrote {mine.stdout!r},",
                    f"not {peer.returncode} and {peer.stdout!r}: {mine.stderr.strip()}"]
        return differences(read_events(theirs), read_events(ours), functions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--function", action="append", default=[], help="compare only this one")
    parser.add_argument("--geometry", choices=GEOMETRIES, action="append")
    parser.add_argument("--assay-option", action="append", default=[])
    parser.add_argument("program", nargs="+")
    args = parser.parse_args()
    if not installed("valgrind"):
        print("valgrind is not installed")
        sys.exit(SKIPPED)
    failed = False
    for name in args.geometry or GEOMETRIES:
        found = compare(args.program, simulation(name), args.function, args.assay_option)
        failed = failed or bool(found)
        print(f"{' '.join(GEOMETRIES[name])}: " + ("differs" if found else "equal"))
        if found:
            print(f"  {'function':24} event   cachegrind        assay")
        for line in found[:MOST]:
            print("  " + line)
        if len(found) > MOST:
            print(f"  and {len(found) - MOST} more")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
