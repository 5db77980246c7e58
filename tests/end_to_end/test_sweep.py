#!/usr/bin/env python3
"""assay sweep: the numbers of single runs, for every combination; what is finished is kept, whatever
ends the sweep; what is wrong is said before anything runs."""

import csv
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support
from support import ASSAY, PLUGINS, PROGRAMS, ROOT, profile, read_events, run, terminal_text

try:
    import jsonschema
except ImportError:
    jsonschema = None

WORK = PROGRAMS / "work"
OTHERS = ["--I1=32768,8,64", "--LL=8388608,16,64"]
SIZES = "--D1=16K,8,64..64K,8,64"
THREE = ["16K,8,64", "32K,8,64", "64K,8,64"]

# Each run adds a line to the file `runs`; from the third on, runs wait for the file `go`.
WAITING = """echo run >> runs; n=0
while read -r line; do n=$((n + 1)); done < runs
while [ $n -gt 2 ] && [ ! -e go ]; do sleep 0.05; done
"""
# The second run fails.
FAILING = """echo run >> runs; n=0
while read -r line; do n=$((n + 1)); done < runs
echo this is run $n
[ $n != 2 ] || exit 3
"""


def table(text) -> list[dict]:
    """The rows of the text table, by the names of the columns."""
    lines = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    return [dict(zip(lines[0], row)) for row in lines[1:]]


def number(text) -> int:
    return int(text.replace(",", ""))


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def words(self, *options, plugin="cache", program=(WORK,)):
        return [ASSAY, "sweep", f"--plugin={plugin}", *options, "--", *program]

    def sweep(self, *options, **more):
        known = {name: more.pop(name) for name in ("plugin", "program") if name in more}
        return run(self.words(*options, **known), cwd=self.folder, **more)

    def shell(self, script):
        return {"program": ["sh", "-c", script]}

    def runs(self) -> int:
        path = self.folder / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def wait_for_runs(self, count):
        deadline = time.monotonic() + 300
        while self.runs() < count:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def refused(self, reason, *options, **more):
        result = self.sweep(*options, **more)
        self.assertEqual((result.returncode, result.stdout), (125, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(reason, result.stderr)
        return result


class Numbers(Sweep):
    def test_each_point_is_a_single_run(self):
        result = self.sweep(*OTHERS, SIZES, "--rep=once,iterations", "-o", "sizes")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = table(result.stdout)
        self.assertEqual([(row["D1"], row["rep"]) for row in rows],
                         [(size, rep) for size in THREE for rep in ("once", "iterations")])
        for index, row in enumerate(rows):
            out = self.folder / "single"
            profile([WORK], *OTHERS, f"--D1={row['D1']}", f"--rep={row['rep']}", out=out)
            single = read_events(out)
            self.assertEqual([number(row[event]) for event in single.events], single.summary)
            kept = read_events(self.folder / "sizes" / "points" / str(index + 1) / "assay.out")
            self.assertEqual((kept.functions, kept.events), (single.functions, single.events))
            rate = 100 * (single.summary[4] + single.summary[7]) / (single.summary[3] + single.summary[6])
            self.assertEqual(row["D1 miss rate"], f"{rate:.2f}%")
        misses = [number(row["D1mr"]) for row in rows]
        self.assertGreater(misses[0], misses[-1])

    def test_values_can_be_listed_in_several_ways(self):
        tables = set()
        for index, words in enumerate(([SIZES], ["--D1=16K,8,64 32K,8,64;64K,8,64"],
                                       [f"--D1={size}" for size in [*THREE, THREE[0]]])):
            result = self.sweep(*OTHERS, *words, "-o", f"folder{index}")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            tables.add(result.stdout)
        self.assertEqual(len(tables), 1)

    def test_machines_and_profilers_have_columns_of_their_own(self):
        (self.folder / "one.yaml").write_text(
            "machine: one\ncaches:\n  L1: {level: 1, size: 32K, ways: 8}\n")
        result = self.sweep("--machine=zen2,one.yaml")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        zen2, one = table(result.stdout)
        self.assertEqual((zen2["machine"], one["machine"]), ("zen2", "one.yaml"))
        self.assertEqual(zen2["Ir"], one["Ir"])
        self.assertIn("-", one.values())
        result = self.sweep(*OTHERS, "--branch-sim=yes,no", "-o", "branches", "--show=Bcm,Ir")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        yes, no = table(result.stdout)
        self.assertEqual((list(yes), no["Bcm"]), (["branch-sim", "Bcm", "Ir"], "-"))
        self.assertGreater(number(yes["Bcm"]), 0)

    def test_processes_are_added_up(self):
        program = ["sh", "-c", f"{WORK} > /dev/null; {WORK} > /dev/null"]
        result = self.sweep("--cache-sim=no", program=program)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        alone = profile([WORK], "--cache-sim=no", out=self.folder / "alone")
        self.assertEqual(alone.returncode, 0)
        total = number(table(result.stdout)[0]["Ir"])
        self.assertGreater(total, 2 * read_events(self.folder / "alone").summary[0])
        files = [path.name for path in (self.folder / "assay.sweep/points/1").iterdir()]
        self.assertEqual(len(files), 4, files)  # sh, its children, and the index

    def test_fields_of_a_machine(self):
        """Each key of --set has its own values, in a run of its own."""
        machine = self.folder / "m.yaml"
        machine.write_text("caches:\n  D1: {size: 32K, ways: 8}\n")
        rows = table(self.sweep(f"--machine={machine}", "--set=D1.size=16K..32K", "--set=D1.ways=4",
                                "--set=D1.replacement=lru,random").stdout)
        self.assertEqual([(row["D1.size"], row["D1.replacement"]) for row in rows],
                         [("16K", "lru"), ("16K", "random"), ("32K", "lru"), ("32K", "random")])
        alone = self.folder / "alone"
        ran = profile([WORK], "-q", f"--machine={machine}", "--set=D1.ways=4", "--set=D1.size=16K",
                      "--set=D1.replacement=random", out=alone)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        events = read_events(alone)
        self.assertEqual(number(rows[1]["D1mr"]), events.totals()[events.events.index("D1mr")])
        for wrong, message in ((["--set=D1"], "--set=D1: write KEY=VALUES"),
                               (["--set=D1.ways=4,x"], 'ways: "x"'),
                               (["--set=D3.ways=4,8"], 'the machine has no "D3"')):
            refused = run(self.words(f"--machine={machine}", f"--out={self.folder / 'no'}", *wrong))
            self.assertEqual(refused.returncode, 125)
            self.assertIn(message, refused.stderr)

    def test_several_traces(self):
        traces = []
        for name, program in (("work", WORK), ("true", "true")):
            traces.append(self.folder / f"{name}.trace")
            recorded = run([ASSAY, "record", "-q", "-o", traces[-1], "--", program])
            self.assertEqual(recorded.returncode, 0, recorded.stderr)
        swept = run([ASSAY, "sweep", "-q", "--plugin=cache", SIZES, f"--out={self.folder / 'sweep'}",
                     *traces])
        self.assertEqual((swept.returncode, swept.stderr), (0, ""))
        rows = table(swept.stdout)
        self.assertEqual([(row["trace"], row["D1"]) for row in rows],
                         [(str(trace), size) for trace in traces for size in THREE])
        for row in rows:
            alone = self.folder / "alone"
            replayed = run([ASSAY, "replay", "-q", "--plugin=cache", f"--D1={row['D1']}",
                            f"--out={alone}", row["trace"]])
            self.assertEqual(replayed.returncode, 0, replayed.stderr)
            events = read_events(alone)
            self.assertEqual(number(row["D1mr"]), events.totals()[events.events.index("D1mr")])
        refused = run([ASSAY, "sweep", "--plugin=cache", f"--out={self.folder / 'no'}", traces[0], WORK])
        self.assertEqual(refused.returncode, 125)
        self.assertIn("takes no arguments", refused.stderr)

    def test_formats(self):
        words = [*OTHERS, SIZES, "--rep=once,iterations", "-q"]
        rows = table(self.sweep(*words).stdout)
        document = json.loads(self.sweep(*words, "--format=json").stdout)
        if jsonschema:
            jsonschema.validate(document, json.loads((ROOT / "docs/reference/sweep-schema.json").read_text()))
        self.assertEqual(document, json.loads((self.folder / "assay.sweep/sweep.json").read_text()))
        self.assertEqual(document["options"][0], {"name": "D1", "values": THREE,
                                                  "sizes": [16384, 32768, 65536]})
        lines = list(csv.DictReader(io.StringIO(self.sweep(*words, "--format=csv").stdout)))
        for row, line, point in zip(rows, lines, document["points"], strict=True):
            self.assertEqual((row["D1"], row["rep"]), (line["D1"], line["rep"]))
            self.assertEqual(point["options"], {"D1": row["D1"], "rep": row["rep"]})
            self.assertEqual(number(row["D1mr"]), int(line["D1mr"]))
            self.assertEqual(number(row["D1mr"]), point["counts"]["D1mr"])
            self.assertEqual(float(line["D1 miss rate"]), point["derived"]["D1 miss rate"])
            self.assertTrue((self.folder / "assay.sweep" / point["file"]).exists())
        page = (self.folder / "assay.sweep/sweep.html").read_text()
        self.assertNotIn("http://", page.replace("http://www.w3.org/2000/svg", ""))

    def test_show_and_status(self):
        result = self.sweep(SIZES, *OTHERS, "--show=D1mr,D1 miss rate", "--status=3",
                            program=["sh", "-c", "exit 3"])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(list(table(result.stdout)[0]), ["D1", "D1mr", "D1 miss rate"])
        again = self.sweep(SIZES, *OTHERS, "--show=D1mw", "--status=3",
                           program=["sh", "-c", "exit 3"])
        self.assertEqual((again.returncode, again.stderr), (
            0, "assay: 3 of 3 points were finished before; they are in assay.sweep\n"))
        unknown = self.sweep(SIZES, *OTHERS, "--show=D1mm", "--status=3", "-q",
                             program=["sh", "-c", "exit 3"])
        self.assertEqual(unknown.returncode, 125)
        self.assertIn("--show: no point has 'D1mm'", unknown.stderr)


def wait_until(condition):
    deadline = time.monotonic() + 300
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing has happened for five minutes")
        time.sleep(0.01)


class Trace(Sweep):
    """A trace is replayed once for all points."""

    def record(self, *program, options=()):
        recorded = run([ASSAY, "record", "-o", "trace", *options, "--", *program], cwd=self.folder)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)

    def sweep_trace(self, plugin, *options):
        return run([ASSAY, "sweep", f"--plugin={plugin}", *options, "-o", "of-trace", "trace"],
                   cwd=self.folder)

    def log(self, point) -> list[str]:
        return (self.folder / f"of-trace/points/{point}.log").read_text().splitlines()

    def check_points(self, points, plugin, *options):
        """Each has the events files that its command alone leaves."""
        swept = self.sweep_trace(plugin, *options)
        self.assertEqual((swept.returncode, swept.stderr), (0, ""))
        folders = sorted(path for path in (self.folder / "of-trace/points").iterdir()
                         if path.is_dir())
        self.assertEqual(len(folders), points)
        for folder in folders:
            place = self.folder / "alone"
            place.mkdir()
            words = shlex.split(self.log(folder.name)[0][len("$ "):])
            words = [f"--out={place}/assay.out" if word.startswith("--out=") else word
                     for word in words]
            self.assertEqual(run(words, cwd=self.folder).returncode, 0)
            self.assertEqual(sorted(path.name for path in folder.iterdir()),
                             sorted(path.name for path in place.iterdir()))
            for path in folder.glob("assay.out*"):
                self.assertEqual(path.read_bytes(), (place / path.name).read_bytes(),
                                 shlex.join(words))
            shutil.rmtree(place)
        shutil.rmtree(self.folder / "of-trace")

    def test_numbers_of_runs(self):
        program = PROGRAMS / "matrix"
        self.record(program)
        replayed = self.sweep_trace("cache", *OTHERS, SIZES)
        of_program = self.sweep(*OTHERS, SIZES, program=[program])
        self.assertEqual((replayed.returncode, replayed.stdout, replayed.stderr),
                         (0, of_program.stdout, ""))
        self.assertIn(" replay --plugin=cache ", self.log(1)[0])

    def test_files_of_single_replays(self):
        self.record(WORK)
        self.check_points(8, "cache", "--I1=16K,4,64 32K,8,64", "--D1=16K,4,64 16K,8,32",
                          "--LL=1M,16,64 64K,4,64")
        self.check_points(6, "branch", "--predictor=cachegrind,gshare",
                          "--indirect-bits=6..8+1")
        self.check_points(3, "bbv,cache", "--interval-size=1000,2000,5000",
                          "--bb-out-file=bb.{point}")
        self.check_points(2, "cache", "--machine=zen2,generic")
        self.check_points(2, "used_bytes,reuse", "--cache=1M,16,64;64K,4,64")

    def test_in_parts(self):
        self.record(WORK)
        self.check_points(3, "cache", *OTHERS, SIZES, "-j", "2")

    def test_processes(self):
        self.record("sh", "-c", f"{WORK}; exec {WORK}")
        self.check_points(3, "cache", *OTHERS, SIZES)

    def test_simulation_points(self):
        (self.folder / "points").write_text("1 0\n6 1\n")
        (self.folder / "weights").write_text("0.25 0\n0.75 1\n")
        self.record(PROGRAMS / "phased", "1", options=["--simpoints=points,weights",
                                                       "--interval-size=10k"])
        self.check_points(3, "cache", *OTHERS, SIZES)

    def test_what_a_trace_does_not_have(self):
        self.record(WORK)
        swept = self.sweep_trace("classic", "--values=loads;stores")
        self.assertEqual(swept.returncode, 1, swept.stderr)
        self.assertIn("2 of 2 points have failed", swept.stderr)
        for point in (1, 2):
            self.assertTrue([line for line in self.log(point) if line.startswith(
                "assay: the trace does not have values that are ") and "--capture=" in line])

    def test_a_point_that_is_killed(self):
        """Its process is no reason for the driver to wait: the others go on."""
        seen = [], time.monotonic()

        def points():
            """Those that stay: others are asked first what they want, and end at once."""
            nonlocal seen
            children = [sweep.pid]
            for _ in range(2):
                children = [int(child) for pid in children[:1] for child in
                            Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
            if children != seen[0]:
                seen = children, time.monotonic()
            return children if len(children) == 3 and time.monotonic() > seen[1] + 0.3 else []

        self.record("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done")
        sweep = subprocess.Popen([ASSAY, "sweep", "--plugin=cache", *OTHERS, SIZES, "-o",
                                  "of-trace", "trace"], cwd=self.folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(points)
        os.kill(seen[0][1], signal.SIGKILL)
        _, said = sweep.communicate(timeout=300)
        self.assertEqual(sweep.returncode, 1, said)
        self.assertIn("point 2 of 3 (--D1=32K,8,64) has failed: its exit status is 125", said)
        self.assertIn("1 of 3 points have failed", said)
        again = self.sweep_trace("cache", *OTHERS, SIZES)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(table(again.stdout)), 3)


class Kept(Sweep):
    def check_rest(self, ran):
        """Two points were finished, and another was running, when the sweep ended."""
        self.assertEqual(self.runs(), ran)
        (self.folder / "go").touch()
        words = self.words(*OTHERS, SIZES, "--rep=once,iterations", "--trace-children=no", "-j", "1",
                           **self.shell(WAITING))
        result = run(words, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (
            0, "assay: 2 of 6 points were finished before; they are in assay.sweep\n"))
        self.assertEqual(self.runs(), ran + 4)
        self.assertEqual(len(table(result.stdout)), 6)
        self.assertEqual([path.name for path in sorted((self.folder / "assay.sweep/points").iterdir())
                          if path.is_dir()], [str(point) for point in range(1, 7)])
        again = run(words, cwd=self.folder)
        self.assertEqual((again.returncode, again.stdout, self.runs()), (0, result.stdout, ran + 4))

    def start(self):
        words = self.words(*OTHERS, SIZES, "--rep=once,iterations", "--trace-children=no", "-j", "1",
                           **self.shell(WAITING))
        process = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)  # if the test fails
        self.wait_for_runs(3)
        return process

    def test_after_ctrl_c(self):
        for number_of_signal in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number_of_signal):
                self.setUp()
                process = self.start()
                process.send_signal(number_of_signal)
                out, errors = process.communicate(timeout=300)
                self.assertEqual((process.returncode, out), (-number_of_signal, ""))
                self.assertEqual(errors, "assay: interrupted: 2 of 6 points are finished; the same "
                                         "command continues with the others\n")
                self.check_rest(3)

    def test_after_kill(self):
        process = self.start()
        process.kill()
        process.communicate(timeout=300)
        self.check_rest(3)

    def test_one_sweep_at_a_time(self):
        process = self.start()
        self.refused("another assay sweep is using this folder", *OTHERS, SIZES, "--rep=once,iterations",
                     "--trace-children=no", "-j", "1", **self.shell(WAITING))
        process.terminate()
        process.communicate(timeout=300)

    def test_damaged_point_is_run_again(self):
        self.sweep(*OTHERS, SIZES, "--trace-children=no", **self.shell("echo run >> runs"))
        file = self.folder / "assay.sweep/points/2/assay.out"
        file.write_text(file.read_text()[:-20])
        result = self.sweep(*OTHERS, SIZES, "--trace-children=no", **self.shell("echo run >> runs"))
        self.assertEqual((result.returncode, self.runs()), (0, 4))
        self.assertIn("point 2 of 3 (--D1=32K,8,64) must run again", result.stderr)


class Refused(Sweep):
    def test_another_sweep_in_the_folder(self):
        program = self.folder / "program"
        program.write_bytes(WORK.read_bytes())
        program.chmod(0o755)
        first = self.sweep(*OTHERS, SIZES, "-o", "here", program=["./program"])
        self.assertEqual(first.returncode, 0, first.stderr)
        for options, words in (([SIZES], ["./program"]), ([*OTHERS, SIZES], ["./program", "x"]),
                               ([*OTHERS, "--D1=16K,8,64"], ["./program"])):
            result = self.refused("belongs to another sweep", *options, "-o", "here", program=words)
            self.assertIn("begun in " + str(self.folder), result.stderr)
            self.assertIn("choose another folder with -o", result.stderr)
        with program.open("ab") as file:
            file.write(b"\0")
        self.refused(f"{program} has changed since the sweep began", *OTHERS, SIZES, "-o", "here",
                     program=["./program"])

    def test_a_policy_that_has_changed(self):
        """What a machine file names counts as the machine file does, whatever its times say."""
        library = self.folder / "policy.so"
        library.write_bytes((PLUGINS / "own_policy.so").read_bytes())
        (self.folder / "own.yaml").write_text(
            "machine: own\ncaches:\n  L1: {level: 1, size: 32K, ways: 8, replacement: ./policy.so}\n")
        for _ in range(2):
            result = self.sweep("--machine=own.yaml,generic", "-o", "own")
            self.assertEqual(result.returncode, 0, result.stderr)
        times = library.stat()
        library.write_bytes(library.read_bytes() + b"\0")
        os.utime(library, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.refused(f"{library} has changed since the sweep began", "--machine=own.yaml,generic", "-o", "own")

    def test_wrong_values(self):
        for options, reason in (
                (["--D1=16K,8,64..100K,8,64"], "16K does not become 100K by doubling"),
                (["--D1=16K,8,64 16K,7,64"], "16K,7,64"), (["--d1=16K,8,64"], "did you mean --D1"),
                (["--machine=zen2,there_is_none"], "there_is_none"), (["--rep=once,,x"], "a value is empty"),
                (["--rep=once,often"], "often"), (["--jobs=0"], "--jobs"), (["--format=pdf"], "pdf"),
                (["--D1"], "--D1 needs a value")):
            self.refused(reason, *options, **self.shell("echo run >> runs"))
        self.assertEqual(self.runs(), 0)
        self.refused("every point would write this file", "--interval-size=10k,20k", "--bb-out-file=bb",
                     plugin="bbv")
        self.refused("no profiler", plugin="")
        missing = self.sweep(program=["./no_such_program"])
        self.assertEqual((missing.returncode, missing.stderr), (
            127, "assay: cannot run ./no_such_program: No such file or directory\n"))
        self.assertIn("no program to run", run([ASSAY, "sweep", "--plugin=cache"]).stderr)

    def test_point_that_fails(self):
        options = (*OTHERS, SIZES, "--trace-children=no", "-j1")
        result = self.sweep(*options, **self.shell(FAILING))
        self.assertEqual(result.returncode, 1)
        failure, summary = result.stderr.splitlines()
        log = self.folder / "assay.sweep/points/2.log"
        self.assertRegex(failure, r"point 2 of 3 \(--D1=32K,8,64\) has failed: its exit status is 3; "
                                  rf"see {log}; command: .* --D1=32K,8,64 .* -- sh -c ")
        self.assertEqual(summary, "assay: 1 of 3 points have failed; the same command runs them again")
        self.assertIn("this is run 2", log.read_text())
        rows = table(result.stdout)
        self.assertEqual((len(rows), set(rows[1].values())), (3, {"32K,8,64", "-"}))
        again = self.sweep(*options, **self.shell(FAILING))
        self.assertEqual((again.returncode, self.runs()), (0, 4))
        self.assertNotIn("-", table(again.stdout)[1].values())

    def test_profiler_that_crashes(self):
        result = self.sweep(plugin=PLUGINS / "crash.so", program=["true"],
                            env={**os.environ, "ASSAY_CRASH_IN": "vp_prof_init"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("point 1 of 1 has failed: its exit status is 125", result.stderr)


class Terminal(Sweep):
    def test_progress(self):
        leader, follower = pty.openpty()
        process = subprocess.Popen(self.words(*OTHERS, SIZES, "-j1"), cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        text = terminal_text(leader)
        self.assertEqual(process.wait(60), 0)
        self.assertIn("assay: 0 of 3 points", text)
        self.assertRegex(text, "assay: 2 of 3 points, less than a minute left")
        self.assertTrue(text.endswith("\r\033[K"), text)

    def test_output_files_of_profilers(self):
        result = self.sweep("--interval-size=100k,200k", "--bb-out-file={point}.bb", plugin="bbv")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        first, second = ((self.folder / f"{point}.bb").read_text() for point in (1, 2))
        self.assertGreater(first.count("\nT"), second.count("\nT"))


if __name__ == "__main__":
    unittest.main()
