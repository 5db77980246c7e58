"""The bbv profiler against exp-bbv, and assay simpoint on what it writes."""

import gzip
import itertools
import re
import shutil
import subprocess
import unittest

from support import ASSAY, PROGRAMS, needs, profile, read_events, run, temporary_folder

# Valgrind does not know all instructions of the other freestanding programs.
FREESTANDING = {"matrix": (997, 20_000), "recursion": (997,),
                "repeat": (1, 2, 3, 997, 20_000), "sort": (20_000,), "strings": (1, 2, 3, 997),
                "switch": (997,), "x87": (997,)}


def vectors(text: str) -> list[dict[int, int]]:
    """By SimPoint 3.2's rules, and nothing else: T, pairs, three blanks behind each."""
    found = []
    for line in text.splitlines():
        if line.startswith("T"):
            assert re.fullmatch(r"T(:\d+:\d+   )+", line), line[:200]
            pairs = re.findall(r":(\d+):(\d+)", line)
            found.append({int(block): int(count) for block, count in pairs})
            assert len(found[-1]) == len(pairs), "a block occurs twice"
        else:
            assert line == "" or line.startswith("# "), line[:200]
    return found


def totals(text: str) -> str:
    """What stands behind the vectors."""
    return text[text.index("\n\n# Thread"):]


def lines(text: str) -> list[int]:
    return [sum(vector.values()) for vector in vectors(text)]


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)

    def bbv(self, program, *options, out="/dev/null", plugin="bbv", name="bb"):
        ended = profile(program, f"--bb-out-file={self.folder}/{name}", "--quiet", *options,
                        plugin=plugin, out=out)
        self.assertEqual(ended.stderr, "")
        return ended

    def text(self, name="bb") -> str:
        return (self.folder / name).read_text()


@needs("valgrind")
class LikeExpBbv(Files):
    def test_totals_that_exp_bbv_lacks(self):
        """tests/programs/freestanding/prefixed.S"""
        program = PROGRAMS / "prefixed"
        theirs = run(["valgrind", "--tool=exp-bbv", "--instr-count-only=yes", program]).stderr
        ours = profile([program], "--instr-count-only=yes", plugin="bbv", out="/dev/null").stderr
        for text, reps, fldcw in ((theirs, 1, 1), (ours, 11, 4)):
            found = dict(re.findall(r"(Total instructions|Total reps|Unique reps|Total fldcw).*: (\d+)",
                                    text))
            self.assertEqual(found, {"Total instructions": "11", "Total reps": str(reps),
                                     "Unique reps": "1", "Total fldcw": str(fldcw)})

    def test_freestanding_programs(self):
        for name, lengths in FREESTANDING.items():
            program = PROGRAMS / name
            for length in lengths:
                with self.subTest(name, length=length):
                    theirs = self.folder / "theirs"
                    run(["valgrind", "-q", "--tool=exp-bbv", f"--interval-size={length}",
                         f"--bb-out-file={theirs}", program])
                    self.bbv([program], f"--interval-size={length}")
                    self.assertEqual(lines(self.text()), lines(theirs.read_text()))
                    self.assertEqual(totals(self.text()), totals(theirs.read_text()))

    def test_names_of_functions(self):
        program = PROGRAMS / "sort"
        run(["valgrind", "-q", "--tool=exp-bbv", "--interval-size=1000",
             f"--pc-out-file={self.folder}/theirs", f"--bb-out-file={self.folder}/x", program])
        self.bbv([program], "--interval-size=1000", f"--pc-out-file={self.folder}/ours")
        rule = re.compile(r"F:(\d+):([0-9a-f]+):(.*)")
        theirs, ours = ({int(line[2], 16): line[3] for line in map(rule.fullmatch, text.splitlines())}
                        for text in (self.text("theirs"), self.text("ours")))
        self.assertGreater(len(ours), 10)
        shared = theirs.keys() & ours.keys()
        self.assertGreater(len(shared), 10)
        for pc in shared:
            self.assertEqual(ours[pc].replace("_start", "(below main)"), theirs[pc])


class Intervals(Files):
    def test_boundaries_are_exact_however_the_program_runs(self):
        """Signals, faults, code that changes: a long interval is what several short ones are."""
        for program in ("work",), ("exceptions",), ("signals", "fault_and_retry"):
            sums = {}
            for length in (1000, 50_000):
                for stress in ("no", "yes"):
                    self.bbv([PROGRAMS / program[0], *program[1:]], f"--interval-size={length}",
                             f"--stress={stress}")
                    sums[length, stress] = lines(self.text())
                    first, *later = sums[length, stress]
                    self.assertIn(first - length, (1, 2))
                    beyond = {end - number * length for number, end in
                              enumerate(itertools.accumulate([first, *later]), 1)}
                    # One more if it ended with a repeated string instruction.
                    self.assertLessEqual(beyond, {1, 2, 3})
                self.assertEqual(sums[length, "no"], sums[length, "yes"])

    def test_totals_are_those_of_the_events(self):
        out = self.folder / "out"
        self.bbv([PROGRAMS / "work"], "--interval-size=5000", out=out)
        told = int(re.search(r"Total instructions: (\d+)", self.text())[1])
        self.assertEqual(read_events(out).summary, [told])

    def test_same_counts_as_another_profiler(self):
        out = self.folder / "out"
        self.bbv([PROGRAMS / "sort"], "--interval-size=5000", "--cache-sim=no", plugin="bbv,cache",
                 out=out)
        events = read_events(out)
        ir, other = events.events.index("Ir"), events.events.index("cache.Ir")
        for counts in events.functions.values():
            self.assertEqual(counts[ir], counts[other])

    def test_threads_and_programs_do_not_share_files(self):
        self.bbv([PROGRAMS / "processes", "replaced"], "--interval-size=1000")
        names = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual([name for name in names if name.startswith("bb")], ["bb", "bb.image2"])

    def test_programs_do_not_share_files_that_nobody_named(self):
        profile([PROGRAMS / "processes", "replaced"], "--interval-size=1000", plugin="bbv",
                cwd=self.folder)
        names = sorted(path.name for path in self.folder.iterdir())
        first, second = [name for name in names if name.startswith("bb.out")]
        self.assertRegex(first, r"^bb\.out\.\d+$")
        self.assertEqual(second, first + ".image2")

    def test_threads_have_files_of_their_own(self):
        out = temporary_folder(self) / "out"
        self.bbv([PROGRAMS / "threads", "mutex"], "--interval-size=1000", out=out)
        files = sorted(path.name for path in self.folder.iterdir())
        every = 0
        self.assertIn("bb", files)
        self.assertIn("bb.2", files)
        for file in files:
            number = int(file.split(".")[1]) if "." in file else 1
            self.assertIn(f"# Thread {number}\n", self.text(file))
            told = int(re.search(r"Total instructions: (\d+)", self.text(file))[1])
            self.assertEqual(told // 1000, int(re.search(r"Total intervals: (\d+)",
                                                         self.text(file))[1]))
            counted = sum(lines(self.text(file)))
            self.assertLessEqual(counted, told)
            self.assertLess(told - counted, 1001)
            every += told
        self.assertEqual(read_events(out).summary, [every])

    def test_parts_of_a_program(self):
        out = self.folder / "out"
        for options in (("--from-instruction=5000", "--to-instruction=1000000"),
                        ("--toggle=sift",), ("--toggle=sift", "--stress=yes")):
            with self.subTest(options=options):
                self.bbv([PROGRAMS / "sort"], "--interval-size=10000", *options, out=out)
                first, *later = lines(self.text())
                self.assertEqual((first, set(later)), (10_001, {10_000}))
                told = int(re.search(r"Total instructions: (\d+)", self.text())[1])
                self.assertEqual(read_events(out).summary, [told])
                self.assertLess(told - first - sum(later), 10_000)

    def test_children_begin_anew(self):
        script = "/bin/true; /bin/true"
        self.bbv(["/bin/sh", "-c", script], "--interval-size=1000", name="bb.%p")
        files = list(self.folder.glob("bb.*"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            first, *later = lines(file.read_text()) or [1001]
            self.assertIn(first, (1001, 1002))
            self.assertLessEqual(set(later), {999, 1000, 1001})

    def test_only_totals(self):
        self.bbv([PROGRAMS / "sort"], "--interval-size=5000", "--instr-count-only=yes")
        self.assertEqual(vectors(self.text()), [])
        self.assertIn("Total intervals: 976", self.text())

    def test_compressed_files(self):
        program = [PROGRAMS / "sort"]
        self.bbv(program, "--interval-size=5000")
        self.bbv(program, "--interval-size=5000", name="bb.gz")
        self.assertEqual(gzip.decompress((self.folder / "bb.gz").read_bytes()).decode(), self.text())
        if shutil.which("zstd"):
            self.bbv(program, "--interval-size=5000", name="bb.zst")
            unpacked = subprocess.run(["zstd", "-dcq", self.folder / "bb.zst"],
                                      capture_output=True, check=True).stdout
            self.assertEqual(unpacked.decode(), self.text())

    def test_length_in_thousands(self):
        self.bbv([PROGRAMS / "sort"], "--interval-size=5000")
        written = vectors(self.text())
        for length in ("5k", "5K"):
            self.bbv([PROGRAMS / "sort"], f"--interval-size={length}")
            self.assertEqual(vectors(self.text()), written)
        for length in ("5T", "1e6", "99999999999G", ""):
            ended = profile(["true"], f"--interval-size={length}", plugin="bbv")
            self.assertEqual(ended.returncode, 125)
            self.assertEqual(ended.stderr, f'assay: --interval-size: "{length}" is not a whole number '
                                           "below 2^64, as 4000000, 4000k or 4M\n")

    def test_two_lengths_and_no_length_are_refused(self):
        ended = profile(["true"], "--interval-size=0", plugin="bbv")
        self.assertEqual(ended.returncode, 125)
        self.assertEqual(ended.stderr, "assay: bbv: --interval-size=0: use a number of instructions "
                                       "from 1 to 2^62\n")
        for option in ("--bb-out-file=", "--pc-out-file="):
            ended = profile(["true"], option, plugin="bbv")
            self.assertEqual(ended.returncode, 125)
            self.assertEqual(ended.stderr, f"assay: bbv: {option}: use the name of a file\n")

    def test_files_that_cannot_be_written_cost_the_profiler(self):
        ended = profile([PROGRAMS / "sort"], "--bb-out-file=/dev/full", plugin="bbv")
        self.assertEqual(ended.returncode, 125)
        self.assertIn("cannot write /dev/full: No space left on device", ended.stderr)


class Merging(Files):
    def merge(self, *words, status=0):
        ended = run([ASSAY, "merge", "-o", self.folder / "all", *words])
        self.assertEqual(ended.returncode, status, ended.stderr)
        return ended.stderr

    def by_address(self, vectors_name, addresses_name) -> list[dict[str, int]]:
        addresses = dict(re.findall(r"^F:(\d+):(.*)$", self.text(addresses_name), re.MULTILINE))
        return [{addresses[str(block)]: count for block, count in vector.items()}
                for vector in vectors(self.text(vectors_name))]

    def test_threads_of_a_run(self):
        self.bbv([PROGRAMS / "threads", "mutex"], "--interval-size=1000")
        self.merge("--one-run", self.folder / "bb", self.folder / "bb.2")
        self.assertEqual(vectors(self.text("all")),
                         vectors(self.text("bb")) + vectors(self.text("bb.2")))
        first = len(vectors(self.text("bb")))
        self.assertIn(f"/bb: intervals 0 to {first - 1}\n", self.text("all"))
        self.assertIn(f"/bb.2: intervals {first} to ", self.text("all"))

    def test_runs_that_number_blocks_differently(self):
        events = []
        for number, name in enumerate(("sort", "switch", "sort")):
            events.append(self.folder / f"events{number}")
            self.bbv([PROGRAMS / name], "--interval-size=5000",
                     f"--pc-out-file={self.folder}/pc{number}", name=f"bb{number}", out=events[-1])
        pcs = [f"--pc-file={self.folder}/pc{number}" for number in range(3)]
        bbs = [self.folder / f"bb{number}" for number in range(3)]
        self.merge(*pcs, f"--pc-out-file={self.folder}/pc", *bbs)
        apart = [self.by_address(f"bb{number}", f"pc{number}") for number in range(3)]
        self.assertEqual(self.by_address("all", "pc"), sum(apart, []))
        merged = vectors(self.text("all"))
        self.assertEqual(merged[:len(apart[0])], merged[-len(apart[0]):])
        self.assertEqual(run([ASSAY, "simpoint", self.folder / "all"]).returncode, 0)
        self.merge(*events)
        named = [text for text in read_events(self.folder / "all").descriptions
                 if text.startswith("block ")]
        self.assertEqual(named, [f"block {what}: {self.folder}/{name}{number}" for number in
                                 range(3) for what, name in (("vectors", "bb"),
                                                             ("addresses", "pc"))])

    def test_what_cannot_be_merged(self):
        bb, pc, other = (self.folder / name for name in ("a.bb", "a.pc", "other"))
        bb.write_text("T:1:5   :2:7   \n")
        other.write_text("desc: a\ncmd: ./t\nevents: Ir\nfl=a\nfn=f\n1 1\nsummary: 1\n")
        for words, text, error in (
                ([bb, bb], "", "give --one-run"),
                (["--one-run", bb, other], "", "merge them separately"),
                (["--one-run", other], "", "are for block vectors"),
                ([f"--pc-file={pc}", bb, bb], "", "1 for 2 files"),
                ([f"--pc-file={pc}", bb], "F:1:400:f\n", "a.pc has no address of block 2"),
                ([f"--pc-file={pc}", bb], "F:1:400:f\nF:1:401:f\n", "a.pc:2: the block occurs twice"),
                ([f"--pc-file={pc}", bb], "F:1:xyz:f\n", "a.pc:1: expected F:NUMBER:ADDRESS"),
                ([f"--pc-file={pc}", bb], "F:99999999999:4:f\n", "a.pc:1: expected F:NUMBER")):
            with self.subTest(words=words, text=text):
                pc.write_text(text)
                self.assertIn(error, self.merge(*words, status=125))
                self.assertFalse((self.folder / "all").exists())


class SimPoint(Files):
    def simpoint(self, *words):
        return run([ASSAY, "simpoint", *words])

    def test_phases_of_a_program(self):
        self.bbv([PROGRAMS / "sort"], "--interval-size=20000", name="bb.gz")
        told = self.simpoint(self.folder / "bb.gz")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        strip = told.stdout.splitlines()[0]
        self.assertRegex(strip, r"^[A-Za-z]{80}$")
        self.assertIn("stand for 100.0% of the instructions", told.stdout)
        points = [tuple(map(int, line.split())) for line in self.text("bb.simpts").splitlines()]
        weights = [line.split() for line in self.text("bb.weights").splitlines()]
        self.assertEqual([cluster for _, cluster in points], list(range(len(points))))
        self.assertEqual([int(cluster) for _, cluster in weights], list(range(len(points))))
        self.assertAlmostEqual(sum(float(weight) for weight, _ in weights), 1, places=4)
        for interval, _ in points:
            self.assertLess(interval, 244)
        self.assertEqual(self.simpoint(self.folder / "bb.gz").stdout, told.stdout)

    def test_phases_known_on_paper(self):
        """tests/programs/freestanding/phased.S, whatever the random numbers."""
        for arguments, strip, weights in (
                ([], "A" * 20, "1 0\n"),
                (["1"], "AAAAABBBBB" * 2, "0.5 0\n0.5 1\n"),
                (["1", "2"], "AAA" + "B" * 10 + "C" * 7, "0.15 0\n0.5 1\n0.35 2\n")):
            self.bbv([PROGRAMS / "phased", *arguments], "--interval-size=10000")
            for seed in range(5):
                with self.subTest(strip, seed=seed):
                    told = self.simpoint(f"--seed={seed}", self.folder / "bb")
                    self.assertEqual(told.stdout.splitlines()[0], strip)
                    found = [line.split() for line in self.text("bb.weights").splitlines()]
                    self.assertEqual("".join(f"{float(weight):.3g} {phase}\n"
                                             for weight, phase in found), weights)
                    for line in self.text("bb.simpts").splitlines():
                        interval, phase = map(int, line.split())
                        self.assertEqual(strip[interval], "ABC"[phase])

    def test_labels_and_names_of_files(self):
        file = self.folder / "bb"
        file.write_text("T:1:10   \nT:2:10   \nT:1:9   :3:1   \nT:2:10   \nT:2:10   \n")
        told = self.simpoint("--k=2", f"--save-labels={self.folder}/labels",
                             f"--save-simpoints={self.folder}/points",
                             f"--save-weights={self.folder}/weights", file)
        self.assertEqual(told.stderr, "")
        self.assertEqual(told.stdout.splitlines()[0], "ABABB")
        self.assertEqual(self.text("labels"), "0\n1\n0\n1\n1\n")
        self.assertIn(self.text("points"), ("0 0\n1 1\n", "2 0\n1 1\n"))
        self.assertEqual(self.text("weights"), "0.4 0\n0.6 1\n")
        self.assertFalse((self.folder / "bb.simpts").exists())
        self.assertFalse((self.folder / "bb.labels").exists())
        self.assertEqual(self.simpoint("--k=2", file).returncode, 0)
        self.assertEqual(self.text("bb.labels"), self.text("labels"))

    def test_rare_phases_can_be_left_out(self):
        file = self.folder / "bb"
        file.write_text("T:1:10   \n" * 9 + "T:2:10   \n")
        told = self.simpoint("--k=2", "--coverage=0.9", file)
        self.assertIn("1 of 10 intervals stand for 90.0% of the instructions", told.stdout)
        self.assertEqual(self.text("bb.weights"), "1 0\n")

    def test_how_many_phases(self):
        """Of four kinds of intervals."""
        file = self.folder / "bb"
        file.write_text("".join(f"T:{kind}:{90 + i}   :{10 + kind}:{10 - i}   \n"
                                for kind in range(1, 5) for i in range(5)))
        for options, found in (((), 4), (("--maxK=3",), 3), (("--k=2",), 2), (("--dim=2",), 4),
                               (("--bic-threshold=0",), 1)):
            with self.subTest(options):
                told = self.simpoint(*options, file)
                self.assertEqual(len(set(told.stdout.splitlines()[0])), found, told.stdout)

    def test_equal_intervals_and_what_is_no_number(self):
        file = self.folder / "bb"
        file.write_text("T:1:20   :2:13   \n" * 5)
        self.assertIn("The phases explain 100.0%", self.simpoint(file).stdout)
        for option in ("--bic-threshold=nan", "--coverage=nan"):
            told = self.simpoint(option, file)
            self.assertEqual(told.returncode, 125)
            self.assertIn('"nan" is not a number from 0 to 1', told.stderr)

    def test_other_files_are_refused(self):
        file = self.folder / "bb"
        for content, why in (("events: Ir\n", "2: no line begins with T"),
                             ("T:1:10   \nT:1:1", "2: the file ends within an interval"),
                             ("# Thread 1\n", " no intervals")):
            file.write_text(content)
            told = self.simpoint(file)
            self.assertEqual(told.returncode, 125)
            self.assertTrue(told.stderr.startswith(f"assay: {file}:{why}"), told.stderr)


if __name__ == "__main__":
    unittest.main()
