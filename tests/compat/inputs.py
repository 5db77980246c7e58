"""The files that the cases read."""

import random
import shutil
import subprocess
from pathlib import Path


def make_inputs(folder: Path, lines: int = 4000) -> None:
    """Texts, scripts and queries. `lines`: of the text."""
    folder.mkdir(parents=True)
    rng = random.Random(11)
    words = ["".join(rng.choices("etaoinshrdlcu", k=rng.randint(2, 9))) for _ in range(2000)]
    text = folder / "text"
    text.write_text("".join(" ".join(rng.choices(words, k=rng.randint(3, 12))) + ".\n"
                            for _ in range(lines)))
    (folder / "names").write_text("\n".join(words[:100]) + "\n")
    # Long enough that compressors and sort share it among threads.
    (folder / "numbers").write_text("".join(f"{rng.getrandbits(40):x}\n" for _ in range(300_000)))
    for ending, packer in (("bz2", "bzip2"), ("gz", "gzip"), ("xz", "xz")):
        if shutil.which(packer):
            packed = subprocess.run([packer, "-c", text], capture_output=True, check=True).stdout
            (folder / f"packed.{ending}").write_bytes(packed)
    _script(folder / "script.sh", "#!/bin/sh\necho \"$# arguments: $1, $2\" >&2\nexit 3\n")
    _script(folder / "script.awk", "#!/usr/bin/mawk -f\nEND { print NR }\n")
    _script(folder / "script.py", "#!/usr/bin/env python3\nimport sys\nprint(len(sys.argv))\n")
    (folder / "Makefile").write_text("all: a b\na b:\n\techo made $@ > $@.made\n")
    (folder / "sums.bc").write_text("scale=60; 4*a(1); e(1); 2^1000; sqrt(2)\n")
    (folder / "queries.sql").write_text(
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);\nBEGIN;\n"
        + "".join(f"INSERT INTO t VALUES({i},'{words[i % 2000]}',{rng.random():.6f});\n"
                  for i in range(2000))
        + "COMMIT;\nSELECT substr(b,1,1) AS x, count(*), round(avg(c),4) FROM t GROUP BY x;\n"
          "SELECT nothing FROM nowhere;\n")
    (folder / "scene.pov").write_text(
        "#version 3.7;\nglobal_settings { assumed_gamma 1 }\ncamera { location <0,1,-4> look_at 0 }\n"
        "light_source { <5,8,-9> rgb 1 }\nsphere { 0, 1 pigment { rgb <1,0.4,0.2> } "
        "finish { phong 1 reflection 0.2 } }\nplane { y,-1 pigment { checker rgb 1 rgb 0 } }\n")
    (folder / "broken.i").write_text("int main(void) { return undeclared }\n")
    # Sorts more than its cache holds, with auxiliary threads.
    (folder / "threads.sql").write_text(
        "PRAGMA threads=4; PRAGMA cache_size=50; PRAGMA temp_store=FILE;\n"
        "CREATE TABLE t(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 40000) INSERT INTO t SELECT hex(i * 7919 % 40009) || zeroblob(40) FROM n;\n"
        "CREATE INDEX x ON t(a); PRAGMA integrity_check; SELECT count(DISTINCT a), max(a) FROM t;\n")


def make_programs(folder: Path) -> None:
    """Programs and sources, which the cases of the matrix do not need."""
    (folder / "main.c").write_text("long step_0(long, long);\nint printf(const char*, ...);\n"
                                   "__attribute__((weak)) long step_0(long a, long b) "
                                   "{ return a + b; }\n"
                                   "int main(void) { return !printf(\"%ld\\n\", step_0(1, 9)); }\n")
    _compiled(folder)
    _sanitized(folder)
    _project(folder / "project")


def _sanitized(folder: Path) -> None:
    """tests/compat/programs/sanitized.c for each sanitizer that the compiler has."""
    source = Path(__file__).resolve().parent / "programs" / "sanitized.c"
    if not shutil.which("gcc"):
        return
    for sanitizer in ("address", "leak", "thread", "undefined"):
        subprocess.run(["gcc", "-O1", "-g", f"-fsanitize={sanitizer}", "-pthread", source, "-o",
                        folder / f"sanitized-{sanitizer}"], check=False, capture_output=True)


def _project(folder: Path) -> None:
    """Some units in C with a header in common, for tests/compat/programs/project.mk."""
    folder.mkdir()
    parts = range(12)
    (folder / "parts.h").write_text("".join(f"long part_{i}(long);\n" for i in parts))
    for i in parts:
        (folder / f"part_{i}.c").write_text(
            f'#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include "parts.h"\n'
            f"long part_{i}(long n) {{ long s = {i}; while (n-- > 0) s = s * 31 + n % {i + 2}; "
            f"return s; }}\n")
    (folder / "main.c").write_text(
        '#include <stdio.h>\n#include "parts.h"\nint main(void) { '
        + "".join(f'printf("%lx\\n", part_{i}({i} * 10)); ' for i in parts) + "return 0; }\n")


def _compiled(folder: Path) -> None:
    """A preprocessed unit, its assembly and its object."""
    source = folder / "unit.c"
    source.write_text("".join(
        f"long step_{i}(long a, long b) {{ long s = {i}; for (long k = a; k < b; ++k) "
        f"{{ if (k % {i % 7 + 2} == 0) s += k * {i}; else s ^= k << {i % 13}; }} return s; }}\n"
        for i in range(150)) + "__attribute__((weak)) long _start(void) { return step_0(1, 2); }\n")
    if shutil.which("gcc"):
        for flag, name in (("-E", "unit.i"), ("-S", "unit.s"), ("-c", "unit.o")):
            subprocess.run(["gcc", "-O1", "-fno-pie", flag, source, "-o", folder / name], check=True)


def _script(path: Path, content: str) -> None:
    path.write_text(content)
    path.chmod(0o755)
