"""The runtimes of languages."""

from pathlib import Path

from case import Case

PROGRAMS = Path(__file__).resolve().parent / "programs"


def runtime_cases() -> list[Case]:
    """Languages whose runtimes have threads and compilers of their own."""
    java = ("/usr/bin/java", "-Xshare:auto", "-Xmx256m")
    javac = ("/usr/bin/javac", "-J-Xmx256m", "-d", ".", str(PROGRAMS / "NullChecks.java"))
    go = {"HOME": "/nonexistent", "GOCACHE": "/nonexistent"}
    return [
        Case("node computing", ("/usr/bin/node", str(PROGRAMS / "compute.js")), slow=True),
        Case("node modules", ("/usr/bin/node", str(PROGRAMS / "modules.js")), slow=True),
        Case("node without its JIT", ("/usr/bin/node", "--jitless", str(PROGRAMS / "modules.js"),
                                      "no wasm"), slow=True),
        Case("javac", javac, slow=True),
        Case("java", (*java, str(PROGRAMS / "NullChecks.java")), slow=True),
        Case("java interpreting", (*java, "-Xint", str(PROGRAMS / "NullChecks.java")), slow=True),
        Case("java collecting in parallel", (*java, "-XX:+UseParallelGC", "-XX:ParallelGCThreads=3",
                                             str(PROGRAMS / "NullChecks.java")), slow=True),
        Case("go build and run", ("/bin/bash", str(PROGRAMS / "go.sh"), str(PROGRAMS), "build"),
             environment=go, needs=("go",), compared=("stdout", "stderr"), slow=True),
        Case("wine", ("/bin/bash", str(PROGRAMS / "wine.sh"), str(PROGRAMS / "windows.c")),
             needs=("/usr/lib/wine/wine64", "x86_64-w64-mingw32-gcc"), places_itself=True,
             compared=("stdout",), slow=True),
        Case("go program", ("/bin/bash", str(PROGRAMS / "go.sh"), str(PROGRAMS), "run"),
             environment=go, needs=("go",), compared=("stdout", "stderr"), places_itself=True,
             slow=True),
    ]


def language_cases() -> list[Case]:
    """Other languages' runtimes: stacks, collectors, signals and code generators of their own."""
    folder = PROGRAMS / "languages"

    def interpreted(source: str, *command: str) -> Case:
        return Case(f"{Path(command[0]).name} {source}", (*command, str(folder / source)), slow=True)

    def compiled(compiler: str, source: str, *more: str) -> Case:
        return Case(f"{compiler} {source}",
                    ("/bin/bash", str(folder / "compiled.sh"), str(folder / source)),
                    needs=(compiler, *more), places_itself=True, compared=("stdout", "stderr"), slow=True)

    jit = ("-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=32M", "-d",
           "opcache.jit=tracing")
    return [
        interpreted("conditions.lisp", "/usr/bin/sbcl", "--script"),
        interpreted("processes.erl", "/usr/bin/escript"),
        interpreted("continuations.rkt", "/usr/bin/racket"),
        interpreted("continuations.scm", "/usr/bin/guile", "--no-auto-compile"),
        interpreted("search.pl", "/usr/bin/swipl", "-q"),
        interpreted("vectors.R", "/usr/bin/Rscript"),
        interpreted("fibers.rb", "/usr/bin/ruby"),
        interpreted("generators.php", "/usr/bin/php", *jit),
        interpreted("dictionaries.tcl", "/usr/bin/tclsh"),
        Case("pypy3", ("/usr/bin/pypy3", "-c", "print(sum(i * i % 101 for i in range(300000)))"),
             slow=True),
        compiled("rustc", "threads.rs"),
        compiled("ghc", "sparks.hs"),
        compiled("ocamlopt", "overflow.ml"),
        compiled("mcs", "Null.cs", "mono"),
        compiled("gfortran", "matrices.f90"),
        compiled("gnatmake", "tasks.adb"),
        compiled("ldc2", "collected.d"),
    ]
