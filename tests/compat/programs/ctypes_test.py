"""Foreign functions: calls by value and reference, and callbacks, for which libffi makes code."""

import ctypes
import ctypes.util
import threading


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double), ("y", ctypes.c_int64)]


class Quotient(ctypes.Structure):
    _fields_ = [("quotient", ctypes.c_int), ("remainder", ctypes.c_int)]


def main() -> None:
    libc, libm = ctypes.CDLL(None), ctypes.CDLL(ctypes.util.find_library("m"))
    libm.pow.restype, libm.pow.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    libc.div.restype = Quotient
    result = libc.div(17, 5)
    print(libm.pow(2.0, 0.5), libc.abs(-5), result.quotient, result.remainder)

    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                               ctypes.POINTER(ctypes.c_int))
    calls = []

    def backwards(left, right):
        calls.append(1)
        return right[0] - left[0]

    values = (ctypes.c_int * 200)(*[i * 7919 % 1000 for i in range(200)])
    libc.qsort(values, len(values), ctypes.sizeof(ctypes.c_int), compare(backwards))
    print(list(values[:10]), len(calls))

    # Many closures at once, more than a page of them, of several types.
    by_value = ctypes.CFUNCTYPE(ctypes.c_double, Point, ctypes.c_float)
    closures = [by_value(lambda point, scale, i=i: point.x * scale + point.y + i)
                for i in range(300)]
    print(sum(closure(Point(1.5, 2), 2.0) for closure in closures))
    del closures[::2]
    print(sum(closure(Point(0.5, 1), 4.0) for closure in closures))

    totals = []

    def in_thread():
        own = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda number: number + 1)
        totals.append(sum(own(i) for i in range(1000)))

    threads = [threading.Thread(target=in_thread) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(totals)


main()
