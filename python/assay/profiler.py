"""Profilers that are written in Python."""

import array
import mmap
import os
import socket
import threading

import numpy as np

from .records import RECORD

# Of the instructions at the end: plugins/python/python.cpp has the same layout.
EXECUTED = np.dtype([("pc", "u8"), ("count", "u8"), ("bytes", "u4"), ("reserved", "u4")])
COUNTED = np.dtype([("pc", "u8"), ("weight", "u8"), ("event", "u4"), ("reserved", "u4")])
_ROOM = 65536 * RECORD.itemsize


class Profiler:
    """A profiler. Derive a class, and give it to run():

        class Far(assay.Profiler):
            events = {"Far": "references of more than a page away from the one before"}
            captures = ["references"]

            def process(self, records):
                addresses = records["address"].astype("i8")
                far = np.abs(np.diff(addresses)) > 4096
                self.count("Far", records["pc"][1:][far])

    `events` has a description for each event. `captures` chooses from references, fetches, blocks
    (which also number the instructions), branches, calls, system-calls, and counts (for finish()).
    Each process of the program has an object of its own, on a thread of its own."""

    events = {}
    captures = ["references"]

    def process(self, records):
        """Gets some thousand records of one thread in an array of the type RECORD, in order. The array
        is valid during the call: copy what is kept."""

    def finish(self, executed):
        """Called at the end. With the capture "counts", `executed` has `pc`, `bytes` and `count` of
        each instruction. Returns text for people, or None."""

    def count(self, event, pcs, weights=None):
        """Adds to an event at instructions: 1 for each element of `pcs`, or its weight."""
        number = list(self.events).index(event)
        pcs = np.atleast_1d(np.asarray(pcs, "u8"))
        if weights is None:
            pcs, weights = np.unique(pcs, return_counts=True)
        else:
            weights = np.broadcast_to(np.asarray(weights), pcs.shape)
        counted = np.zeros(len(pcs), COUNTED)
        counted["pc"], counted["weight"], counted["event"] = pcs, weights, number
        self._counted.append(counted)
        self._waiting += len(counted)
        if self._waiting > 1 << 20:
            self._add_up()

    def _add_up(self):
        """The counts, one for each instruction and event."""
        if not self._counted:
            return np.zeros(0, COUNTED)
        counted = np.concatenate(self._counted)
        order = np.lexsort((counted["event"], counted["pc"]))
        counted = counted[order]
        first = np.ones(len(counted), bool)
        first[1:] = (counted["pc"][1:] != counted["pc"][:-1]) | \
                    (counted["event"][1:] != counted["event"][:-1])
        sums = np.add.reduceat(counted["weight"], np.flatnonzero(first)) if len(counted) else []
        counted = counted[first]
        counted["weight"] = sums
        self._counted, self._waiting = [counted], 0
        return counted

    _waiting = 0


class Server:
    """Waits for the processes of a run, and gives each an object of the class."""

    def __init__(self, kind, path):
        self.path, self.problem, self._kind = path, None, kind
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(os.fspath(path))
        self._socket.listen()
        self._threads = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def _accept(self):
        while True:
            try:
                connection = self._socket.accept()[0]
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self):
        """All processes have ended."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._acceptor.join()
        for thread in self._threads:
            thread.join()

    def _serve(self, connection):
        with connection:
            try:
                self._talk(connection)
            except (BrokenPipeError, ConnectionResetError):
                pass
            except Exception as error:  # of the user's class
                self.problem = self.problem or error
                text = " ".join(f"{type(error).__name__}: {error}".split())
                try:
                    connection.sendall(f"fail {text}\n".encode())
                except OSError:
                    pass

    def _talk(self, connection):
        data, control = connection.recvmsg(1 << 16, socket.CMSG_SPACE(4))[:2]
        if not control:
            return
        file = array.array("i", control[0][2])[0]
        memory = mmap.mmap(file, _ROOM)
        os.close(file)
        lines = connection.makefile("rb")
        while not data.endswith(b"\n"):
            data += lines.readline()
        profiler = self._kind()
        profiler._counted = []
        said = [f"event {name}\ndescription {text}\n" for name, text in profiler.events.items()]
        said += [f"capture {name}\n" for name in profiler.captures]
        connection.sendall("".join([*said, "end\n"]).encode())
        executed = []
        for line in lines:
            word, _, number = line.decode().strip().partition(" ")
            if word == "rows":
                profiler.process(np.frombuffer(memory, RECORD, int(number)))
            elif word == "executed":
                executed.append(np.frombuffer(memory, EXECUTED, int(number)).copy())
            elif word == "finish":
                executed = np.concatenate(executed) if executed else np.zeros(0, EXECUTED)
                text = (profiler.finish(executed) or "").encode()
                counted = profiler._add_up()
                connection.sendall(b"samples %d\n" % len(counted) + counted.tobytes() +
                                   b"summary %d\n" % len(text) + text)
                return
            connection.sendall(b"ok\n")
