#!/usr/bin/env python3
"""assay trace: what is in a trace, and traces of other programs."""

import collections
import csv
import gzip
import io
import json
import lzma
import os
import pty
import shutil
import struct
import subprocess
import unittest

import support
from support import ASSAY, PROGRAMS, ROOT, read_events, run

GEOMETRY = ["--I1=4096,2,64", "--D1=4096,2,64", "--LL=65536,4,64"]
HEAD = "thread  instruction             pc kind           address bytes  object:function (file:line)"


def record(out, *program):
    """`program`: options can come before it, with "--" between."""
    words = program if "--" in program else ("--", *program)
    result = run([ASSAY, "record", "-q", "-o", out, *words])
    assert result.returncode == 0, result.stderr
    return out


def trace(*words, **more):
    return run([ASSAY, "trace", *words], **more)


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = support.temporary_folder_of_class(cls)
        cls.program = cls.shared / "work"
        shutil.copy(PROGRAMS / "work", cls.program)
        cls.trace = record(cls.shared / "work.trace", cls.program)

    def good(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def refused(self, result, *words):
        self.assertEqual(result.returncode, 125, result.stdout[:200])
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(str(word), result.stderr)

    def rows(self, *words, of=None):
        return list(csv.DictReader(io.StringIO(
            self.good(trace("--format=csv", *words, of or self.trace)))))

    def summary(self, of=None):
        return [json.loads(line) for line in
                self.good(trace("--summary", "--format=json", of or self.trace)).splitlines()]

    def replay(self, path, *options, plugin="cache"):
        out = self.shared / "events"
        geometry = GEOMETRY if plugin == "cache" else []
        self.good(run([ASSAY, "replay", f"--plugin={plugin}", f"--out={out}", "-q", *geometry,
                       *options, path]))
        events = read_events(out)
        return dict(zip(events.events, events.summary))


class Shown(Traces):
    def test_summary_counts_what_is_listed(self):
        [found] = self.summary()
        listed = self.good(trace("--kind=block,read,write,modify", self.trace))
        kinds = collections.Counter(line[35:42].rstrip() for line in listed.splitlines()[1:])
        self.assertEqual((found["blocks"], found["reads"], found["writes"], found["modifies"]),
                         tuple(kinds[kind] for kind in ("block", "read", "write", "modify")))
        self.assertEqual(found["instructions"], self.replay(self.trace)["Ir"])
        self.assertEqual((found["command"], found["threads"], found["end"], found["complete"]),
                         (str(self.program), 1, "ended", True))
        self.assertEqual(found["bytes"], self.trace.stat().st_size - 16)
        self.assertIn("complete                                 yes",
                      self.good(trace("--summary", self.trace)))

    def test_functions_and_lines(self):
        rows = self.rows("--function=^sum_cells$", "--kind=block")
        self.assertTrue(rows)
        self.assertEqual({row["function"] for row in rows}, {"sum_cells"})
        self.assertEqual({row["object"] for row in rows}, {str(self.program)})
        self.assertTrue(all(row["file"].endswith("work.c") and int(row["line"]) for row in rows))

    def test_instructions_are_disassembled(self):
        rows = self.rows("--instructions", "--from-instruction=5000", "--to-instruction=5999")
        numbers = [int(row["instruction"]) for row in rows if row["kind"] == "instr"]
        self.assertEqual(numbers, list(range(5000, 6000)))
        self.assertTrue(all(row["disassembly"] for row in rows))
        references = [(row["instruction"], row["pc"], row["kind"], row["address"])
                      for row in rows if row["kind"] != "instr"]
        self.assertEqual(references, [
            (row["instruction"], row["pc"], row["kind"], row["address"])
            for row in self.rows("--kind=read,write,modify", "--from-instruction=5000",
                                 "--to-instruction=5999")])
        self.assertGreater(len(references), 100)

    def test_range_is_a_piece_of_all(self):
        inside = [row for row in self.rows("--from-instruction=2990000", "--to-instruction=3010000")
                  if 3000000 <= int(row["instruction"]) <= 3000500]
        piece = self.rows("--from-instruction=3000000", "--to-instruction=3000500")
        # The block in which the range begins is told, too.
        self.assertEqual(piece[-len(inside):], inside)
        self.assertLessEqual(len(piece), len(inside) + 1)

    def test_addresses(self):
        writes = self.rows("--kind=write", "--to-instruction=20000")
        address = writes[len(writes) // 2]["address"][2:]
        found = self.rows(f"--address={address}-{address}", "--to-instruction=20000")
        self.assertTrue(found)
        for row in found:
            low = int(row["address"], 16)
            self.assertTrue(low <= int(address, 16) < low + int(row["bytes"]), row)

    def test_text_and_json_are_the_same_records(self):
        words = ("--from-instruction=1", "--to-instruction=300", self.trace)
        text = self.good(trace(*words)).splitlines()
        objects = [json.loads(line)
                   for line in self.good(trace("--format=json", *words)).splitlines()]
        self.assertEqual(text[0], HEAD)
        self.assertEqual(len(text) - 1, len(objects))
        for line, row in zip(text[1:], objects):
            self.assertEqual(line.split()[:4], [str(row["thread"]), str(row["instruction"]),
                                                row["pc"][2:], row["kind"]])

    def test_threads_and_processes(self):
        path = record(self.shared / "threads.trace", PROGRAMS / "threads", "mutex")
        [found] = self.summary(path)
        self.assertGreater(found["threads"], 1)
        self.assertEqual({row["thread"] for row in self.rows("--thread=2", of=path)}, {"2"})
        shell = record(self.shared / "shell.trace", "sh", "-c", "/bin/true; exec /bin/true")
        images = [(found["pid"], found["image"]) for found in self.summary(shell)]
        self.assertEqual(len(images), 3, images)
        last = images[-1]
        rows = self.rows(f"--pid={last[0]}", f"--image={last[1]}", "--to-instruction=9", of=shell)
        self.assertEqual({(row["pid"], row["image"]) for row in rows}, {tuple(map(str, last))})
        self.refused(trace("--pid=1", shell), shell, "no such process", "--summary")

    def test_objects_that_have_changed(self):
        program = self.shared / "changing"
        shutil.copy(PROGRAMS / "work", program)
        path = record(self.shared / "changing.trace", program)
        for change in (lambda: shutil.copy(PROGRAMS / "threads", program), program.unlink):
            change()
            shown = trace("--kind=block", "--format=csv", "--to-instruction=200000", path)
            self.assertEqual(shown.returncode, 0)
            [line] = shown.stderr.splitlines()
            self.assertIn(str(program), line)
            self.assertNotIn("sum_cells", shown.stdout)
            self.assertIn("ld-linux-x86-64.so.2", shown.stdout)

    def test_terminal_gets_the_summary(self):
        leader, follower = pty.openpty()
        with subprocess.Popen([ASSAY, "trace", self.trace], stdout=follower) as shown:
            os.close(follower)
            text = support.terminal_text(leader)
        self.assertEqual(shown.returncode, 0)
        self.assertRegex(text, r"instructions +[\d,]+\r\n")
        self.assertNotIn("kind", text)

    def test_who_reads_no_further(self):
        result = run(["bash", "-c", '"$0" trace "$1" | head -1; echo ${PIPESTATUS[0]}', ASSAY,
                      self.trace])
        self.assertEqual((result.stdout, result.stderr), (f"{HEAD}\n141\n", ""))
        full = run(["sh", "-c", 'exec "$0" trace "$1" > /dev/full', ASSAY, self.trace])
        self.refused(full, "standard output")

    def test_what_is_damaged(self):
        cut = self.shared / "cut.trace"
        cut.write_bytes(self.trace.read_bytes()[:-200])
        shown = trace("--summary", "--format=json", cut)
        self.assertEqual(shown.returncode, 125)
        self.assertIn(str(cut), shown.stderr)
        self.assertFalse(json.loads(shown.stdout)["complete"])
        self.refused(trace(PROGRAMS / "work"), PROGRAMS / "work", "no trace")
        self.refused(trace(self.shared / "none"), "none")

    def test_check(self):
        [found] = self.summary()
        said = self.good(trace("--check", self.trace))
        self.assertEqual(said.count("\n"), 1)
        self.assertTrue(said.startswith(f"{self.trace} is consistent: 1 program, 1 thread, "
                                        f"{found['instructions']:,} instructions in {found['blocks']:,} blocks, "
                                        f"{found['reads'] + found['writes'] + found['modifies']:,} references, "),
                        said)
        self.assertNotIn("not checked", said)
        for old in (ROOT / "tests" / "golden").glob("*.trace"):  # of version 1
            self.assertIn(" is consistent: ", self.good(trace("--check", old)))
        blocks = record(self.shared / "blocks.trace", "--capture=branches", "--", PROGRAMS / "matrix")
        self.assertIn("jumps are not checked", self.good(trace("--check", blocks)))

    def test_check_finds_damage(self):
        """tests/unit/trace_check_test.cpp has damage of all kinds."""
        [golden] = (ROOT / "tests" / "golden").glob("callers.trace")
        content = bytearray(golden.read_bytes())
        at, header = 16, struct.Struct("<4sIIIIIQQQIIII")
        while (fields := header.unpack_from(content, at))[1] != 4:  # TRACE_CHUNK_RECORDS
            at += header.size + fields[10]
        struct.pack_into("<Q", content, at + 32, fields[7] + 1)  # one more instruction
        checksum = 2166136261
        for byte in content[at:at + 60]:
            checksum = (checksum ^ byte) * 16777619 & 0xffffffff
        struct.pack_into("<I", content, at + 60, checksum)
        damaged = self.shared / "damaged.trace"
        damaged.write_bytes(content)
        self.refused(trace("--check", damaged), f"{damaged}: process ", "wrong counts: 1; the first: in thread 1",
                     f"{fields[7]} instructions", f"the headers say {fields[7] + 1}")

    def test_wrong_options(self):
        for option in ("--summary", "--instructions", "--format=csv", "--kind=read", "--thread=1"):
            self.refused(trace("--check", option, self.trace), "--check reads whole programs")
        for option, said in (("--kind=wirte", "write"), ("--address=5", "LOW-HIGH"),
                             ("--address=5-4", "--address"), ("--thread=x", "--thread=x"),
                             ("--from-instruction=0", "--from-instruction=0"),
                             ("--function=(", "--function"), ("--import=din", "-o")):
            self.refused(trace(option, self.trace), said)
        self.refused(trace("--format=din", "--kind=read", self.trace), "--kind")


class Exchanged(Traces):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Of its own code, without libc: no locked and no repeated instructions.
        cls.small = record(cls.shared / "small.trace", PROGRAMS / "branches")

    def export(self, kind):
        path = self.shared / f"exported.{kind}"
        self.good(trace(f"--format={kind}", "-o", path, self.small))
        return path

    def imported(self, kind, path, *options):
        made = self.shared / f"imported.{kind}"
        self.good(trace(f"--import={kind}", *options, path, "-o", made))
        self.assertIn(" is consistent: ", self.good(trace("--check", made)))
        [found] = self.summary(made)
        self.assertTrue(found["complete"])
        return made

    def test_lackey_loses_nothing(self):
        made = self.imported("lackey", self.export("lackey"))
        self.assertEqual(self.replay(made), self.replay(self.small))
        again = self.shared / "again.lackey"
        self.good(trace("--format=lackey", "-o", again, made))
        self.assertEqual(again.read_text(), self.export("lackey").read_text())

    def test_counts_are_those_of_the_run(self):
        out = self.shared / "live"
        live = run([ASSAY, "--plugin=cache", "-q", f"--out={out}", *GEOMETRY, "--",
                    PROGRAMS / "branches"])
        self.assertEqual(live.returncode, 0, live.stderr)
        made = self.imported("lackey", self.export("lackey"))
        self.assertEqual(list(self.replay(made).values()), read_events(out).summary)

    def test_din(self):
        """A modification is a read and a write, and a reference is one byte."""
        made = self.replay(self.imported("din", self.export("din")))
        original = self.replay(self.small)
        [found] = self.summary(self.small)
        self.assertEqual(made["Ir"], original["Ir"])
        self.assertEqual(made["Dr"], found["reads"] + found["modifies"])
        self.assertEqual(made["Dw"], found["writes"] + found["modifies"])

    def test_champsim(self):
        path = self.export("champsim")
        self.assertEqual(path.stat().st_size % 64, 0)
        made = self.imported("champsim", path)
        [found] = self.summary(self.small)
        original, counts = self.replay(self.small), self.replay(made)
        self.assertEqual(counts["Ir"], original["Ir"])
        self.assertEqual(counts["Dr"], found["reads"] + found["modifies"])
        self.assertEqual(counts["Dw"], found["writes"])
        before, after = (self.replay(path, plugin="branch") for path in (self.small, made))
        self.assertGreater(before["Bc"], 100)
        self.assertEqual((after["Bc"], after["Bi"]), (before["Bc"], before["Bi"]))
        self.assertEqual((after["Bcm"], after["Bim"]), (before["Bcm"], before["Bim"]))

    def test_registers_of_champsim(self):
        """By rsp 6, flags 25 and rip 26, kinds of branches are told."""
        path = self.shared / "work.champsim"
        self.good(trace("--format=champsim", "--to-instruction=20000", "-o", path, self.trace))
        records = path.read_bytes()
        rows = self.rows("--instructions", "--to-instruction=20000", "--kind=block")
        seen = collections.Counter()
        at = 0
        for number, row in enumerate(rows):
            if row["disassembly"].startswith("rep"):  # a record for each iteration
                while records[at:at + 8] == struct.pack("<Q", int(row["pc"], 16)):
                    at += 64
                continue
            ip, branch, taken = struct.unpack_from("<QBB", records, at)
            written, read = set(records[at + 10:at + 12]), set(records[at + 12:at + 16])
            at += 64
            word = row["disassembly"].split()[0]
            self.assertEqual(ip, int(row["pc"], 16), row)
            if word in ("retq", "ret"):
                self.assertEqual((branch, taken, 26 in read, {6, 26} <= written, 6 in read),
                                 (1, 1, False, True, True), row)
            elif word in ("callq", "call"):
                self.assertEqual((branch, taken, {6, 26} <= read, {6, 26} == written),
                                 (1, 1, True, True), row)
            elif word in ("je", "jne", "ja", "jb", "jbe", "jae"):
                self.assertEqual((branch, {25, 26} <= read, 26 in written, 6 in read),
                                 (1, True, True, False), row)
                follows = int(row["pc"], 16) + int(row["bytes"])
                if number + 1 < len(rows):
                    self.assertEqual(taken, int(int(rows[number + 1]["pc"], 16) != follows), row)
            elif word in ("movq", "addq", "leaq"):
                self.assertEqual((branch, 26 in written), (0, False), row)
            seen[word] += 1
        self.assertEqual(at, len(records))
        for word in ("je", "jne", "movq", "addq"):
            self.assertGreater(seen[word], 10)
        self.assertGreater(seen["retq"] + seen["ret"], 2)

    def test_other_profilers_replay_them(self):
        made = self.imported("lackey", self.export("lackey"))
        for plugin in ("reuse", "working_set", "used_bytes"):
            before, after = (self.replay(path, plugin=plugin) for path in (self.small, made))
            self.assertTrue(any(before.values()), plugin)
            self.assertEqual(after, before, plugin)

    def test_many_references_of_an_instruction(self):
        path = self.shared / "hand.lackey"
        lines = ["==1== lackey", "I  400000,3", " L 1000,8", "I  400003,2"]
        lines += [f" {'LS'[i % 2]} {0x2000 + i // 2 * 64:x},8" for i in range(200)]
        lines += ["I  400003,2", " M 1000,8", "I  400000,3", " L 1000,8"]
        path.write_text("\n".join(lines) + "\n")
        found = self.replay(self.imported("lackey", path))
        self.assertEqual((found["Ir"], found["Dr"], found["Dw"]), (4, 103, 100))
        self.assertEqual((found["D1mr"], found["I1mr"]), (102, 1))

    def test_data_alone(self):
        path = self.shared / "hand.din.gz"
        with gzip.open(path, "wt") as text:
            text.write("0 1000 a comment\n1 0x2000\n\n0 1000\n")
        found = self.replay(self.imported("din", path, "--reference-bytes=8"))
        self.assertEqual((found["Ir"], found["Dr"], found["Dw"], found["D1mr"]), (3, 2, 1, 1))

    def test_escape_records_are_left_out(self):
        path, made = self.shared / "escape.din", self.shared / "escape.trace"
        path.write_text("2 400000\n0 1000\n3 0\n4 0\n1 1008\n")
        result = trace("--import=din", "-o", made, path)
        self.assertEqual(result.returncode, 0)
        self.assertIn("left out 2 escape records", result.stderr)
        found = self.replay(made)
        self.assertEqual((found["Ir"], found["Dr"], found["Dw"]), (1, 1, 1))

    def test_memref(self):
        path = self.export("memref")
        rows = list(csv.DictReader(io.StringIO(path.read_text())))
        shown = self.rows("--kind=read,write,modify", of=self.small)
        names = ("thread", "pc", "kind", "address", "bytes")
        self.assertEqual([tuple(row[name] for name in names) for row in rows],
                         [tuple(row[name] for name in names) for row in shown])

    def test_which_process_is_exported(self):
        shell = record(self.shared / "shell.trace", "sh", "-c", "/bin/true; exec /bin/true")
        shown = trace("--format=din", "-o", "/dev/null", shell)
        self.assertEqual(shown.returncode, 0)
        pid = self.summary(shell)[0]["pid"]
        self.assertIn(f"process {pid}, image 1, thread 1", shown.stderr)
        self.refused(trace("--format=din", "--thread=7", self.small), "thread 7")

    def test_parts_of_a_trace(self):
        """Adjacent parts add up to the whole, and are like recorded ones."""
        def cut(*options):
            path = self.shared / "part.trace"
            self.good(trace("--format=trace", "-o", path, *options, self.small))
            self.assertIn(" is consistent: ", self.good(trace("--check", path)))
            return path
        def counts(of):
            return self.replay(of, plugin="cache,branch")
        whole = counts(self.small)
        self.assertEqual(counts(cut()), whole)
        middle = self.summary(self.small)[0]["instructions"] // 3
        parts = []
        for limits in ([f"--to-instruction={middle}"], [f"--from-instruction={middle + 1}"]):
            part = cut(*limits)
            parts.append(counts(part))
            of_part, of_whole = (self.good(trace("--format=json", "--kind=block", *options)).splitlines()
                                 for options in ([part], [*limits, self.small]))
            self.assertEqual(of_part[-1000:], of_whole[-1000:])
        self.assertEqual(parts[0]["Ir"] + parts[1]["Ir"], whole["Ir"])
        # The target of the last branch is not known.
        self.assertIn(whole["Bc"] - parts[0]["Bc"] - parts[1]["Bc"], (0, 1))
        # A part of a part has the numbers of the whole.
        part, again = cut(f"--from-instruction={middle + 1}"), self.shared / "again.trace"
        self.good(trace("--format=trace", f"--from-instruction={2 * middle}", "-o", again, part))
        self.assertEqual(self.rows("--kind=block", of=again),
                         self.rows("--kind=block", f"--from-instruction={2 * middle}", of=self.small))
        of_one = self.replay(cut("--function=^loop_of_60$"))
        self.assertTrue(0 < of_one["Ir"] < whole["Ir"])
        for options, said in ((["--kind=read"], "always has whole blocks"),
                              (["--from-instruction=999999999999"], "no instruction of the trace"),
                              ([], "name its file with -o")):
            words = ["-o", self.shared / "no.trace"] if options else []
            self.refused(trace("--format=trace", *words, *options, self.small), said)
            self.assertFalse((self.shared / "no.trace").exists())
        sampled = self.shared / "sampled.trace"
        self.good(run([ASSAY, "record", "-q", "--sample=1k/10k", "-o", sampled, "--", PROGRAMS / "work"]))
        self.refused(trace("--format=trace", "-o", self.shared / "no.trace", sampled), "only a part of the run")

    def test_compressed_by_xz(self):
        """As ChampSim's traces are; also of several streams."""
        lines = b"2 400000\n0 1000\n" * 50000
        made = self.shared / "xz.trace"
        for content in (lzma.compress(lines), lzma.compress(lines[:16]) + lzma.compress(lines[16:])):
            path = self.shared / "lines.din.xz"
            path.write_bytes(content)
            imported = trace("--import=din", path, "-o", made)
            self.assertEqual(imported.returncode, 0, imported.stderr)
            self.assertEqual(self.summary(made)[0]["reads"], 50000)

    def test_bad_input(self):
        made = self.shared / "bad.trace"
        for kind, content, said in (
                ("lackey", b"I  400000,3\n L 1000\n", ":2: ' L 1000'"),
                ("lackey", b"I  400000,3\nI  400003,99\n", ":2: "),
                ("lackey", b"2 400000\n", ":1: '2 400000'"),
                ("din", b"2 400000\n5 17\n", ":2: '5 17'"),
                ("din", b"2 400000\n0 xyz\n", ":2: '0 xyz'"),
                ("din", b"\xfd7zXZ\0rest of a file", "damaged xz data"),
                ("din", lzma.compress(b"2 400000\n" * 9999)[:-40], "xz"),
                ("champsim", b"\0" * 100, "cut short: 36 bytes follow record 1"),
                ("champsim", b"\0" * 64 + b"x" * 64, "record 2"),
                ("champsim", b"", "empty"), ("din", b"\n", "no instructions")):
            path = self.shared / "bad"
            path.write_bytes(content)
            self.refused(trace(f"--import={kind}", path, "-o", made), path, said)
            self.assertFalse(made.exists(), content)
        self.refused(trace("--import=din", path, "-o", path), "imported")
        self.refused(trace("--import=din", "/dev/stdin", "-o", made, stdin=None, input="2 1\n"),
                     "twice")


if __name__ == "__main__":
    unittest.main()
