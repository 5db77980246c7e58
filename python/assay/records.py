"""Records of a program as NumPy arrays."""

import ctypes
from pathlib import Path

import numpy as np

# plugins/python/rows.h has the same layout.
RECORD = np.dtype([
    ("instruction", "u8"),  # its number in the thread, from 1; 0 if blocks are not captured
    ("pc", "u8"),
    ("address", "u8"),  # of a reference; of a branch, where the program goes on
    ("bytes", "u4"),    # of a reference; of a block its instructions; of a branch 1 if it is taken
    ("thread", "u2"),   # from 1
    ("kind", "u1"),     # of KINDS
    ("image", "u1"),    # number of the program in the trace, from 1
])

KINDS = {"fetch": 0, "read": 1, "write": 2, "modify": 3, "count": 4, "call": 5, "target": 6, "return": 7,
         "stack": 8, "signal": 9, "branch": 14, "burst": 18, "system-call": 24, "result": 25,
         "block": 27, "left": 28}


def _mask(kinds):
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"there is no kind {unknown[0]!r}: use {', '.join(KINDS)}")
    return sum(1 << KINDS[kind] for kind in kinds)


def _library():
    library = ctypes.CDLL(str(Path(__file__).with_name("reader.so")))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    number, numbers = ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)
    for name, result, arguments in (
            ("open", pointer, [text]),
            ("close", None, [pointer]),
            ("problem", text, []),
            ("image", ctypes.c_int, [pointer, number, numbers, numbers]),
            ("next", ctypes.c_int64, [pointer, pointer, ctypes.c_int64, ctypes.c_uint64, number])):
        function = getattr(library, "assay_reader_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Trace:
    """The records of a trace file, in arrays of the type RECORD. Use trace()."""

    def __init__(self, path, kinds=("read", "write", "modify", "block"), thread=None, records=1 << 20):
        self._reader = None
        self._mask, self._thread, self._room = _mask(kinds), thread or 0, records
        self._c = _library()
        self._reader = self._c.assay_reader_open(bytes(Path(path)))
        if not self._reader:
            raise OSError(self._problem())

    def __iter__(self):
        return self

    def __next__(self):
        rows = np.empty(self._room, RECORD)
        count = self._c.assay_reader_next(self._reader, rows.ctypes.data, self._room, self._mask,
                                          self._thread)
        if count < 0:
            raise OSError(self._problem())
        if count == 0:
            raise StopIteration
        # A copy, so that a few rows do not keep the memory of many.
        return rows if count == self._room else rows[:count].copy()

    def _problem(self):
        return self._c.assay_reader_problem().decode(errors="replace")

    @property
    def images(self):
        """Process id and number of the programs, as in the column "image"."""
        found, pid, number = [], ctypes.c_uint32(), ctypes.c_uint32()
        while self._c.assay_reader_image(self._reader, len(found) + 1, ctypes.byref(pid),
                                         ctypes.byref(number)) == 0:
            found.append((pid.value, number.value))
        return found

    def __del__(self):
        if self._reader:
            self._c.assay_reader_close(self._reader)


def trace(path, kinds=("read", "write", "modify", "block"), thread=None, records=1 << 20):
    """Iterates over the records of a file of `assay record`, in arrays of at most `records` rows.

    `kinds` chooses from KINDS, and `thread` one thread, from 1. Records of one thread are in order;
    those of several threads alternate as `assay trace` lists them. Programs follow one another."""
    return Trace(path, kinds, thread, records)
