"""The programs that the benchmark runs, and their inputs.

Every input is generated from a fixed seed, so two machines measure the same work. Inputs are
kept in the work folder and made only once.
"""

import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workload:
    name: str
    argv: tuple[str, ...]
    stdin: Path | None = None
    note: str = ""

    def missing(self) -> str:
        """Why the workload cannot run here, or nothing."""
        return "" if shutil.which(self.argv[0]) else f"{self.argv[0]} is not installed"


def workloads(folder: Path) -> list[Workload]:
    """All workloads, in the order of the report; generates inputs that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)

    def made(name, generate):
        path = folder / name
        if not path.exists():
            partial = folder / (name + ".partial")
            generate(partial)
            partial.rename(path)
        return path

    text = made("text", _text)
    lines = made("lines", _lines)
    source = made("program.i", _c_program)
    queries = made("queries.sql", _queries)
    short_py = made("short.py", _python_short)
    long_py = made("long.py", _python_long)
    perl = made("words.pl", _perl)
    scene = made("scene.pov", _scene)
    listing = made("listing", _big_folder)
    compute = made("compute", _compute)
    sources = made("sources", _sources)
    return [
        Workload("bzip2", ("/usr/bin/bzip2", "-9", "-c", str(text)), note="4 MB text"),
        Workload("xz", ("/usr/bin/xz", "-T1", "-3", "-c", str(text)), note="4 MB text"),
        Workload("cc1", (_cc1(), "-quiet", "-O2", "-fpreprocessed", str(source), "-o", "-"),
                 note="5,000 lines of C"),
        Workload("sort", ("/usr/bin/sort", "--parallel=1", "-S", "200M", str(lines)),
                 note="1 M lines"),
        Workload("sqlite3", ("/usr/bin/sqlite3", ":memory:"), queries, note="in memory"),
        Workload("python-short", ("/usr/bin/python3", str(short_py)), note="start-up dominates"),
        Workload("python-long", ("/usr/bin/python3", str(long_py))),
        Workload("perl", ("/usr/bin/perl", str(perl), str(text)), note="words of the text"),
        Workload("povray", ("/usr/bin/povray", f"+I{scene}", "+W80", "+H60", "-D", "-GA", "+WT1",
                            "+FB", "+O-"), note="80 × 60 pixels; threads"),
        Workload("ls", ("/usr/bin/ls", "-l", "--time-style=full-iso", str(listing)),
                 note="5,000 files"),
        Workload("true", ("/usr/bin/true",)),
        Workload("make", ("/usr/bin/make", "-B", "-s", "-j2", "-C", str(sources)),
                 note="eight small files; some 25 processes"),
        Workload("xz-threads", ("/usr/bin/xz", "-T2", "--block-size=1MiB", "-3", "-c", str(text)),
                 note="two threads"),
        Workload("sort-threads", ("/usr/bin/sort", "--parallel=2", "-S", "200M", str(lines)),
                 note="two threads"),
        Workload("compute-1", (str(compute), "1"), note="one thread of pure computation"),
        Workload("compute-2", (str(compute), "2"), note="two of them"),
    ]


def _cc1() -> str:
    try:
        found = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                               check=True)
        return found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "cc1"


def _sources(path: Path) -> None:
    """Eight small files of C, and their makefile."""
    path.mkdir()
    names = [f"part{number}" for number in range(8)]
    for name in names:
        (path / f"{name}.c").write_text(
            f"#include <stddef.h>\nint {name}(const int* from, size_t count) {{\n"
            "    int sum = 0;\n    for (size_t i = 0; i < count; ++i) sum += from[i];\n"
            "    return sum;\n}\n")
    objects = " ".join(f"{name}.o" for name in names)
    (path / "Makefile").write_text(f"all: {objects}\n%.o: %.c\n\tgcc -O1 -c $< -o $@\n")


def _compute(path: Path) -> None:
    """Each thread sorts and sums an array of its own that fits in its cache."""
    source = path.with_suffix(".c")
    source.write_text(r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *compute(void *result) {
    unsigned values[1024], sum = 0, state = 1;
    for (int round = 0; round < 300; ++round) {
        for (int i = 0; i < 1024; ++i) values[i] = state = state * 1664525u + 1013904223u;
        for (int i = 1; i < 1024; ++i) {
            unsigned value = values[i];
            int at = i;
            for (; at > 0 && values[at - 1] > value; --at) values[at] = values[at - 1];
            values[at] = value;
        }
        sum += values[round % 1024];
    }
    *(unsigned *)result = sum;
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[64];
    unsigned results[64];
    for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, compute, &results[i]);
    for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
    printf("%u\n", results[0]);
    return 0;
}
""")
    subprocess.run(["gcc", "-O2", "-pthread", "-o", str(path), str(source)], check=True)


def _text(path: Path) -> None:
    """Words with the frequencies of natural language (by rank, as Zipf found), in sentences."""
    rng = random.Random(1)
    letters = "etaoinshrdlcumwfgypbvkjxqz"
    weights = [13, 9, 8, 8, 7, 7, 6, 6, 6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    words = ["".join(rng.choices(letters, weights, k=rng.randint(2, 10))) for _ in range(8000)]
    frequency = [1.0 / rank for rank in range(1, len(words) + 1)]
    size = 0
    with path.open("w") as out:
        while size < 4_000_000:
            sentence = " ".join(rng.choices(words, frequency, k=rng.randint(4, 18)))
            size += out.write(sentence.capitalize() + ".\n")


def _lines(path: Path) -> None:
    rng = random.Random(2)
    with path.open("w") as out:
        out.writelines(f"{rng.getrandbits(64):016x}\n" for _ in range(1_000_000))


def _c_program(path: Path) -> None:
    """5,000 lines: tables and declarations, as headers bring them, then functions."""
    rng = random.Random(3)
    operators = ["+", "-", "*", "^", "&", "|"]
    lines = ["struct record { int key; long total; unsigned char tag[16]; };",
             "extern int observe(int, long);", "extern struct record *records(int);"]
    for table in range(100):
        values = [", ".join(str(rng.randrange(100000)) for _ in range(10)) for _ in range(30)]
        lines += [f"extern const int table_{table}[300];", f"const int table_{table}[300] = {{",
                  *(f"    {row}," for row in values), "};"]
    function = 0
    while len(lines) < 5000 - 20:
        name = f"compute_{function}"
        callee = f"compute_{rng.randrange(function)}" if function else "observe"
        constants = [rng.randrange(1, 1000) for _ in range(6)]
        chosen = [rng.choice(operators) for _ in range(4)]
        lines += [
            f"__attribute__((noinline)) int {name}(int a, long b) {{",
            "    struct record *r = records(a);",
            f"    long sum = table_{constants[0] % 100}[a & 255];",
            f"    for (int i = 0; i < {constants[1] % 64 + 4}; ++i) {{",
            "        struct record *p = &r[(i ^ a) & 7];",
            f"        p->key += (a {chosen[0]} i) {chosen[1]} {constants[2]};",
            f"        p->total = (p->total << 3) {chosen[2]} (b {chosen[3]} p->key);",
            "        p->tag[i & 15] ^= (unsigned char)p->total;",
            f"        switch ((p->key + i) % {constants[3] % 5 + 4}) {{",
            f"        case 0: sum += p->total / {constants[4]}; break;",
            f"        case 1: sum -= p->tag[{constants[5] % 16}]; break;",
            "        case 2: sum ^= b; break;",
            f"        case 3: if (a > {constants[0]}) return (int)sum; break;",
            "        default: ++sum;",
            "        }",
            "    }",
            f"    if (sum & 1) sum += {callee}((int)sum, b - 1);",
            "    return observe((int)sum, r[a & 7].total);",
            "}",
        ]
        function += 1
    path.write_text("\n".join(lines) + "\n")


def _queries(path: Path) -> None:
    rng = random.Random(4)
    with path.open("w") as out:
        out.write("CREATE TABLE item(id INTEGER PRIMARY KEY, owner INT, price INT, name TEXT);\n"
                  "CREATE TABLE owner(id INTEGER PRIMARY KEY, city TEXT);\nBEGIN;\n")
        for owner in range(500):
            out.write(f"INSERT INTO owner VALUES({owner},'city{rng.randrange(40)}');\n")
        for item in range(12000):
            out.write(f"INSERT INTO item VALUES({item},{rng.randrange(500)},"
                      f"{rng.randrange(10000)},'item {rng.getrandbits(40):x}');\n")
        out.write("COMMIT;\nCREATE INDEX by_owner ON item(owner);\n"
                  "SELECT city, count(*), sum(price), max(name) FROM item JOIN owner"
                  " ON owner.id = item.owner GROUP BY city ORDER BY 3 DESC;\n"
                  "SELECT count(*) FROM item WHERE name LIKE '%a1%';\n"
                  "SELECT owner, avg(price) FROM item GROUP BY owner ORDER BY 2 LIMIT 20;\n"
                  "UPDATE item SET price = price * 2 WHERE owner % 3 = 0;\n"
                  "DELETE FROM item WHERE price < 1000;\n"
                  "SELECT count(*), sum(price) FROM item;\n")
        for _ in range(500):
            out.write(f"SELECT sum(price) FROM item WHERE owner = {rng.randrange(500)};\n")


_PYTHON = """\
import json, re

def primes(limit):
    sieve = bytearray([1]) * limit
    for n in range(2, int(limit ** 0.5) + 1):
        if sieve[n]:
            sieve[n * n::n] = bytes(len(range(n * n, limit, n)))
    return [n for n in range(2, limit) if sieve[n]]

def collatz(n):
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n & 1 else n >> 1
        steps += 1
    return steps

found = primes({limit})
longest = max(range(1, {limit}), key=collatz)
words = re.findall(r"[0-9]+", json.dumps(found))
table = {{}}
for word in words:
    table.setdefault(word[-2:], []).append(int(word))
print(len(found), longest, sorted((len(v), k) for k, v in table.items())[:3])
"""


def _python_short(path: Path) -> None:
    path.write_text(_PYTHON.format(limit=9500))


def _python_long(path: Path) -> None:
    path.write_text(_PYTHON.format(limit=95000))


def _perl(path: Path) -> None:
    path.write_text("""\
use strict;
my (%seen, $longest);
while (<>) {
    for my $word (split) {
        $word =~ s/[^a-z]//gi;
        $seen{lc $word}++;
    }
    $longest = $_ if !defined $longest or length > length $longest;
    last if $. >= 20000;
}
my @top = sort { $seen{$b} <=> $seen{$a} || $a cmp $b } keys %seen;
print "$_ $seen{$_}\\n" for @top[0 .. 19];
print $longest;
""")


def _scene(path: Path) -> None:
    rng = random.Random(5)
    balls = "\n".join(
        f"sphere {{ <{rng.uniform(-3, 3):.3f}, {rng.uniform(0, 3):.3f}, {rng.uniform(0, 6):.3f}>,"
        f" {rng.uniform(.2, .6):.3f} pigment {{ rgb <{rng.random():.2f}, {rng.random():.2f},"
        f" {rng.random():.2f}> }} finish {{ reflection 0.3 phong 0.8 }} }}" for _ in range(40))
    path.write_text("#version 3.7;\nglobal_settings { assumed_gamma 1 }\n"
                    "camera { location <0, 2, -6> look_at <0, 1, 2> }\n"
                    "light_source { <10, 15, -10> rgb 1 }\n"
                    "plane { y, -0.5 pigment { checker rgb 0.9 rgb 0.2 } }\n" + balls + "\n")


def _big_folder(path: Path) -> None:
    path.mkdir(exist_ok=True)
    for number in range(5000):
        (path / f"file-{number * 7919 % 5000:04d}.txt").touch()
