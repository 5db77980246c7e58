"""Runs a Python program with names of its functions for profilers, in CPython 3.9 to 3.11.

python3 python_names.py SCRIPT | -m MODULE | -c CODE [ARGUMENTS]

Python 3.12 and later have the option -X perf instead. python_names.c says how this works."""

import ctypes
import io
import os
import sys
import types
import zipimport


def fail(message):
    print(f"python_names.py: {message}", file=sys.stderr)
    sys.exit(125)


def install(folder):
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.implementation.name != "cpython" or not (3, 9) <= sys.version_info < (3, 12):
        instead = "; use python3 -X perf instead" if sys.version_info >= (3, 12) else ""
        fail(f"needs CPython 3.9 to 3.11, but this is {sys.implementation.name} {version}{instead}")
    try:
        library = ctypes.PyDLL(os.path.join(folder, "python_names.so"))
    except OSError as error:
        fail(error)
    library.python_names_install.argtypes = [ctypes.c_int, ctypes.py_object]
    library.python_names_install.restype = ctypes.c_char_p
    library.python_names_after_fork.restype = None
    problem = library.python_names_install(sys.version_info[1], lambda: None)
    if problem:
        fail(f"{problem.decode()} (CPython {version})")
    os.register_at_fork(after_in_child=library.python_names_after_fork)


def is_archive(path):
    try:
        zipimport.zipimporter(path)
    except zipimport.ZipImportError:
        return False
    return True


def read_code(path):
    try:
        with io.open_code(path) as file:
            return compile(file.read(), path, "exec")
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] "
              f"{error.strerror}", file=sys.stderr)
        sys.exit(2)


def run(words, folder):
    """Runs the program as python3 does, in a new module __main__."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    # With python3 -I or -P, the folder of a script is not in sys.path.
    has_folder = os.path.realpath(sys.path[0]) == folder
    if has_folder:
        del sys.path[0]
    first = words[0]
    sys.argv = [first] + words[2:] if first in ("-c", "-m") else words
    if first == "-c":
        sys.path[:0] = [""] if has_folder else []
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
    elif first == "-m":
        sys.path[:0] = [os.getcwd()] if has_folder else []
        import runpy
        runpy._run_module_as_main(words[1])
    elif os.path.isdir(first) or is_archive(first):
        import runpy
        sys.path.insert(0, os.path.abspath(first))
        runpy._run_module_as_main("__main__", alter_argv=False)
    else:
        sys.path[:0] = [os.path.dirname(os.path.realpath(first))] if has_folder else []
        main.__file__ = os.path.abspath(first)
        exec(read_code(main.__file__), main.__dict__)


def main():
    words = sys.argv[1:]
    if not words or words[0] in ("-c", "-m") and len(words) == 1 or \
            words[0].startswith("-") and words[0] not in ("-c", "-m"):
        fail("usage: python3 python_names.py SCRIPT | -m MODULE | -c CODE [ARGUMENTS]")
    folder = os.path.dirname(os.path.realpath(__file__))
    install(folder)
    run(words, folder)


main()
