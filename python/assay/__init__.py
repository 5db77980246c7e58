"""Profiles of assay as pandas data frames, traces as NumPy arrays, and profilers in Python.

    import assay
    profile = assay.run(["./program", "input"], plugin="cache")
    profile.functions.nlargest(5, "D1mr")

load() reads an events file, run() and sweep() start assay, trace() reads the records of a trace
file, and Profiler is the base of profilers that are written in Python.
"""

from .command import run, sweep
from .profile import Profile, compare, load
from .profiler import Profiler
from .records import KINDS, RECORD, Trace, trace
from .tool import Error, find

__all__ = ["Error", "KINDS", "Profile", "Profiler", "RECORD", "Trace", "compare", "find", "load", "run",
           "sweep", "trace"]
