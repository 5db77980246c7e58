#!/usr/bin/env python3
"""Traces of DynamoRIO's drmemtrace. The tests write such files as its trace_entry.h describes them."""

import collections
import csv
import gzip
import io
import struct
import unittest
import zipfile

import support
from support import ASSAY, PROGRAMS, read_events, run

READ, WRITE, PREFETCH = 0, 1, 3
INSTR, JUMP, INDIRECT_JUMP, CONDITIONAL, CALL, INDIRECT_CALL, RETURN = range(10, 17)
THREAD, THREAD_EXIT, PID, HEADER, FOOTER, MARKER, NO_FETCH = 22, 23, 24, 25, 26, 28, 29
ENCODING, TAKEN, UNTAKEN = 47, 48, 49
KERNEL_EVENT, TIMESTAMP, CPU, FILE_TYPE, VERSION = 0, 2, 3, 9, 12
CHUNK_FOOTER, ORDINAL, TARGET, UNSCHEDULE = 21, 22, 29, 38
X86, ENCODED, SYNTHETIC = 0x40, 0x200, 0x20000


class File:
    """The records of a thread."""

    def __init__(self, thread=100, version=6, kind=X86 | ENCODED, process=7):
        self.chunks = [bytearray()]
        self.known = set()
        self.add(HEADER, 0, version)
        self.mark(VERSION, version)
        self.mark(FILE_TYPE, kind)
        self.add(THREAD, 0, thread)
        self.add(PID, 0, process)
        self.thread = thread

    def add(self, kind, size, value):
        self.chunks[-1] += struct.pack("<HHQ", kind, size, value & 0xffffffffffffffff)
        return self

    def mark(self, kind, value):
        return self.add(MARKER, kind, value)

    def instr(self, pc, code, kind=INSTR, *references):
        """`code`: the bytes, or their number. A reference is (kind, address, bytes)."""
        if isinstance(code, bytes):
            if pc not in self.known:
                for at in range(0, len(code), 8):
                    part = code[at:at + 8]
                    self.chunks[-1] += struct.pack("<HH8s", ENCODING, len(part), part)
            self.known.add(pc)
            code = len(code)
        self.add(kind, code, pc)
        for what, address, size in references:
            self.add(what, size, address)
        return self

    def end_chunk(self):
        self.mark(CHUNK_FOOTER, len(self.chunks) - 1)
        self.chunks.append(bytearray())
        self.known.clear()
        self.mark(ORDINAL, 1)

    def end(self):
        self.add(THREAD_EXIT, 0, self.thread)
        return self.add(FOOTER, 0, 0)

    def bytes(self):
        return b"".join(self.chunks)

    def write(self, path):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for number, chunk in enumerate(self.chunks):
                    archive.writestr(f"chunk.{number:04}", chunk)
        elif path.suffix == ".gz":
            path.write_bytes(gzip.compress(self.bytes()))
        else:
            path.write_bytes(self.bytes())
        return path


class Code:
    """The bytes of a program without a base address."""

    def __init__(self, path):
        self.content = path.read_bytes()
        start, = struct.unpack_from("<Q", self.content, 32)
        size, count = struct.unpack_from("<HH", self.content, 54)
        headers = (struct.unpack_from("<IIQQQQ", self.content, start + i * size) for i in range(count))
        self.segments = [(address, offset, length) for kind, _, offset, address, _, length in headers
                         if kind == 1]

    def at(self, pc, size):
        [offset] = [pc - address + offset for address, offset, length in self.segments
                    if address <= pc < address + length]
        return self.content[offset:offset + size]


def kind_of(disassembly, pc, size, following):
    operation = disassembly.removeprefix("bnd ").split()[0]
    indirect = "*" in disassembly
    if operation.startswith("ret"):
        return RETURN
    if operation.startswith("call"):
        return INDIRECT_CALL if indirect else CALL
    if operation.startswith("jmp"):
        return INDIRECT_JUMP if indirect else JUMP
    if operation.startswith(("j", "loop")):
        return UNTAKEN if following == pc + size else TAKEN
    return INSTR


class Imports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recordings = support.temporary_folder_of_class(cls)
        cls.listed = {}  # by recording

    def setUp(self):
        self.folder = support.temporary_folder(self)
        self.made = self.folder / "made.trace"

    def good(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def trace(self, *words):
        return run([ASSAY, "trace", *words])

    def imported(self, path, said=""):
        result = self.trace("--import=drmemtrace", path, "-o", self.made)
        self.assertEqual((result.returncode, result.stderr), (0, said))
        self.assertIn(" is consistent: ", self.good(self.trace("--check", self.made)))
        return self.made

    def rows(self, *words, of):
        return list(csv.DictReader(io.StringIO(self.good(self.trace("--format=csv", *words, of)))))

    def replay(self, path, *options):
        out = self.folder / "events"
        self.good(run([ASSAY, "replay", f"--out={out}", "-q", *options, path]))
        events = read_events(out)
        return dict(zip(events.events, events.summary))

    # --- Recordings of assay as drmemtrace would write them.

    def recorded(self, program):
        """A recording, and its rows. Each program is recorded once."""
        recording = self.recordings / program.name
        if recording not in self.listed:
            self.good(run([ASSAY, "record", "-q", "-o", recording, "--", program]))
            self.listed[recording] = self.rows("--instructions", "--kind=all", of=recording)
        return recording, self.listed[recording]

    def converted(self, program, version=6, kind=X86 | ENCODED):
        """A recording, and a file with the same instructions and references."""
        recording, rows = self.recorded(program)
        code = Code(program)
        instructions = [row for row in rows if row["kind"] == "instr"]
        others = collections.defaultdict(list)
        for row in rows:
            others[row["instruction"]].append(row)
        file = File(version=version, kind=kind)
        file.mark(TIMESTAMP, 1000).mark(CPU, 2)
        for number, row in enumerate(instructions):
            pc, size = int(row["pc"], 16), int(row["bytes"])
            is_last = number + 1 == len(instructions)
            following = 0 if is_last else int(instructions[number + 1]["pc"], 16)
            branch = kind_of(row["disassembly"], pc, size, following)
            if version >= 5 and branch in (INDIRECT_JUMP, INDIRECT_CALL, RETURN):
                file.mark(TARGET, following)
            if version < 5 and branch in (TAKEN, UNTAKEN):
                branch = CONDITIONAL
            text = code.at(pc, size) if kind & ENCODED else size
            repeated = row["disassembly"].startswith("rep")
            references = []
            for reference in others[row["instruction"]]:
                address, bytes_ = int(reference["address"] or "0", 16), int(reference["bytes"] or 0)
                if reference["kind"] in ("read", "modify"):
                    references.append((READ, address, bytes_))
                if reference["kind"] in ("write", "modify"):
                    references.append((WRITE, address, bytes_))
                if reference["kind"] == "address":
                    references.append((PREFETCH, address, 64))
            in_iteration = 1
            if repeated and len(references) > 1 and len({kind for kind, _, _ in references}) == 2:
                in_iteration = 2
            elif repeated and "cmps" in row["disassembly"]:
                in_iteration = 2
            first = references[:in_iteration] if repeated else references
            file.instr(pc, text, branch, *first)
            for i in range(in_iteration, len(references), in_iteration) if repeated else ():
                file.instr(pc, size, NO_FETCH, *references[i:i + in_iteration])
            if number % 20000 == 19999:
                file.end_chunk()
        return recording, file.end()

    def check_equal(self, program, *options, **more):
        recording, file = self.converted(PROGRAMS / program, **more)
        made = self.imported(file.write(self.folder / "file.trace.zip"))
        for words in options:
            self.assertEqual(self.replay(made, *words), self.replay(recording, *words), words)
        return made

    CACHE = ["--plugin=cache", "--I1=4096,2,64", "--D1=4096,2,64", "--LL=65536,4,64"]

    def test_equals_the_recording(self):
        for program in ("branches", "modify"):
            with self.subTest(program):
                self.check_equal(program, self.CACHE, ["--plugin=branch"],
                                 ["--plugin=opcode_mix"], ["--plugin=cache", "--machine=zen4"])

    def test_repeated_instructions(self):
        """A comparison that rcx ended counts one branch less, because no record tells that it did."""
        recording, file = self.converted(PROGRAMS / "repeat")
        made = self.imported(file.write(self.folder / "file.trace"))
        self.assertEqual(self.replay(made, *self.CACHE), self.replay(recording, *self.CACHE))
        counts = [self.replay(path, "--plugin=branch") for path in (recording, made)]
        rows = self.rows("--instructions", of=made)
        compared = sum(row["kind"] == "instr" and row["disassembly"].startswith(("repe ", "repne "))
                       for row in rows)
        self.assertTrue(0 < counts[0]["Bc"] - counts[1]["Bc"] < compared)

    def test_prefetches(self):
        self.check_equal("line_operations", ["--plugin=cache", "--machine=zen4"])

    def test_without_encodings(self):
        for version, kind in ((3, X86), (6, X86), (6, X86 | ENCODED | SYNTHETIC)):
            with self.subTest(version=version):
                self.check_equal("branches", self.CACHE, ["--plugin=branch"], version=version, kind=kind)


    # --- Records one by one.

    def instructions(self, *words, of=None):
        """Thread, address, and references."""
        rows = self.rows("--instructions", *words, of=of or self.made)
        return [(int(row["thread"]), row["kind"], int(row["address"] or row["pc"], 16)) for row in rows]

    def test_threads_in_the_order_of_their_times(self):
        folder = self.folder / "drmemtrace.dir"
        inner = folder / "trace"
        inner.mkdir(parents=True)
        one, two = File(thread=11), File(thread=22)
        one.mark(TIMESTAMP, 50).instr(0x1000, b"\x90").mark(TIMESTAMP, 200).instr(0x2000, b"\x90")
        two.mark(TIMESTAMP, 100).instr(0x3000, b"\x90").instr(0x3001, b"\x90")
        two.mark(TIMESTAMP, 300).instr(0x4000, b"\x90")
        one.end().write(inner / "b.trace.gz")
        two.end().write(inner / "a.trace.zip")
        for name in ("serial_schedule.bin.gz", "cpu_schedule.bin.zip", "modules.log"):
            (inner / name).write_bytes(b"no trace")
        self.imported(folder)
        self.assertEqual(self.instructions(), [
            (1, "instr", 0x1000), (2, "instr", 0x3000), (2, "instr", 0x3001), (1, "instr", 0x2000),
            (2, "instr", 0x4000)])
        self.assertEqual(self.replay(self.made, "--plugin=cache")["Ir"], 5)

    def test_outcome_of_an_interrupted_branch(self):
        """A signal handler is not the target of the branch before it."""
        jump = b"\x74\x10"  # je .+18
        for version, taken in ((4, 0), (4, 1), (6, 0), (6, 1)):
            file = File(version=version)
            kind = CONDITIONAL if version == 4 else TAKEN if taken else UNTAKEN
            after = 0x1012 if taken else 0x1002
            for _ in range(3):
                file.instr(0x1000, jump, kind)
                file.mark(TIMESTAMP, 10).mark(KERNEL_EVENT, after)
                file.instr(0x9000, b"\xc3", RETURN, (READ, 0x7000, 8)).instr(after, b"\x90")
            self.imported(file.end().write(self.folder / "file.trace"))
            exported = self.folder / "exported"
            self.good(self.trace("--format=champsim", "-o", exported, self.made))
            records = exported.read_bytes()
            found = [records[at + 9] for at in range(0, len(records), 64) if records[at] == 0
                     and records[at + 1] == 0x10]
            self.assertEqual(found, [taken] * 3, (version, taken))

    def test_references(self):
        file = File()
        file.instr(0x1000, b"\x48\x01\x07", INSTR, (READ, 0x5000, 8), (WRITE, 0x5000, 8))  # add
        file.instr(0x1003, b"\x48\xa5", INSTR, (READ, 0x6000, 8), (WRITE, 0x6000, 8))  # movs
        self.imported(file.end().write(self.folder / "file.trace"))
        self.assertEqual([row[1:] for row in self.instructions()], [
            ("instr", 0x1000), ("modify", 0x5000), ("instr", 0x1003), ("read", 0x6000),
            ("write", 0x6000)])

    def test_many_records(self):
        """Of several chunks of the trace."""
        file = File().instr(0x1000, b"\x48\x01\x07", INSTR, (READ, 0x5000, 8), (WRITE, 0x5000, 8))
        file.instr(0x1003, b"\x74\xfb", TAKEN)
        body = File().instr(0x1000, 3, INSTR, (READ, 0x5000, 8), (WRITE, 0x5000, 8))
        body = body.instr(0x1003, 2, TAKEN).bytes()[-48:]
        file.chunks[-1] += body * 1200000
        self.imported(file.end().write(self.folder / "file.trace"))
        counts = self.replay(self.made, "--plugin=cache,branch")
        self.assertEqual((counts["Ir"], counts["Dr"], counts["Bc"]), (2400002, 1200001, 1200001))

    def test_changed_code(self):
        file = File()
        file.instr(0x1000, b"\x90")
        file.known.clear()
        file.instr(0x1000, b"\xfc")
        self.imported(file.end().write(self.folder / "file.trace"))
        self.assertEqual([row["disassembly"] for row in self.rows("--instructions", of=self.made)],
                         ["nop", "cld"])

    def test_other_processors(self):
        file = File(kind=0x08 | ENCODED)
        file.instr(0x1000, bytes.fromhex("200040f9"), INSTR, (READ, 0x5000, 8))  # ldr x0, [x1]
        file.instr(0x1004, bytes.fromhex("c0035fd6"), RETURN)
        self.imported(file.end().write(self.folder / "file.trace"))
        self.assertEqual([row["disassembly"].split() for row in
                          self.rows("--instructions", "--kind=block", of=self.made)],
                         [["ldr", "x0,", "[x1]"], ["ret"]])

    def test_instructions_only(self):
        file = File(kind=X86 | 0x04)
        self.imported(file.instr(0x1000, 4).end().write(self.folder / "file.trace"))
        result = run([ASSAY, "replay", "--plugin=cache", self.made])
        self.assertEqual(result.returncode, 125)
        self.assertIn("references", result.stderr)

    def test_what_is_left_out_is_told(self):
        path = self.folder / "file.trace"
        file = File(kind=X86).instr(0x1000, 3, INSTR, (PREFETCH, 0x5000, 64)).mark(UNSCHEDULE, 0)
        self.imported(file.end().write(path), f"""\
assay: {path}: left out 1 record of prefetches and flushes, which need encodings of x86-64
assay: {path}: left out 1 record of type {UNSCHEDULE}, an unknown marker
""")

    def test_bad_input(self):
        good = File().instr(0x1000, b"\x90").end().bytes()
        zipped = File().instr(0x1000, b"\x90").end().write(self.folder / "good.zip").read_bytes()
        for content, said in (
                (b"", "is empty"), (good[:-6], "cut short: 6 bytes follow record 8"),
                (good[:-12], "no footer"), (good + good[:12], "record 10: a record follows the footer"),
                (b"x" * 120, "record 1: type 30840"), (zipped[:-30], "zip"),
                (zipped[:60] + b"xx" + zipped[62:], "zip"),
                (File(version=7).bytes(), "version 7"), (File(kind=0x80).bytes(), "filtered"),
                (File(kind=0x20).bytes(), "32-bit"), (File(kind=1 << 40).bytes(), "unknown"),
                (File(kind=ENCODED).instr(0x1000, b"\x90").bytes(), "unknown instruction set"),
                (File().add(99, 0, 0).bytes(), "record 6: type 99"),
                (File().add(17, 1, 0).bytes(), "record 6: type 17"),
                (File().instr(0x1000, 1).bytes(), "record 6: no encoding of the instruction at 0x1000"),
                (File().instr(0x1000, b"\x90" * 16).bytes(), "16 bytes"),
                (File().add(ENCODING, 2, 0).instr(0x1000, b"\x90").bytes(), "encoding of 3 bytes"),
                (File().add(READ, 4, 0x5000).bytes(), "a reference before any instruction"),
                (File().instr(0x1000, b"\x90", INSTR, (READ, 1, 0)).bytes(), "0 bytes"),
                (File().mark(8, 0).bytes(), "marker 8"), (File().end().bytes(), "no instructions")):
            path = self.folder / "bad"
            path.write_bytes(content)
            result = self.trace("--import=drmemtrace", path, "-o", self.made)
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (125, 1), result.stderr)
            self.assertIn(said, result.stderr)
            self.assertIn(str(path), result.stderr)
            self.assertFalse(self.made.exists(), said)

    def test_files_that_do_not_belong_together(self):
        for other, said in ((File(thread=2, process=8), "process 8"), (File(thread=2, kind=X86), "file type"),
                            (File(thread=1), "thread 1 is also in another file")):
            folder = self.folder / said.replace(" ", "-")
            folder.mkdir()
            File(thread=1).instr(0x1000, b"\x90").end().write(folder / "a.trace")
            code = 1 if said == "file type" else b"\x90"
            other.instr(0x1000, code).end().write(folder / "b.trace")
            result = self.trace("--import=drmemtrace", folder, "-o", self.made)
            self.assertEqual(result.returncode, 125)
            self.assertIn(said, result.stderr)


if __name__ == "__main__":
    unittest.main()
