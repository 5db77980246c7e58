#!/usr/bin/env python3
"""Machines from a file: what they count on real programs, and what is wrong with files."""

import os
import unittest

import support
from support import PLUGINS, PROGRAMS, profile, read_events

POLICY = PLUGINS / "own_policy.so"
POLICY_2 = PLUGINS / "own_policy_2.so"

PLAIN = """
cores: {cores}
caches:
  I1: {{level: 1, holds: instructions, of: core, size: 32K, ways: 8{i1}}}
  D1: {{level: 1, holds: data, of: core, size: 32K, ways: 8{d1}}}
  LL: {{level: 2, of: machine, size: 1M, ways: 16{ll}}}
"""
SAME = ["--I1=32K,8,64", "--D1=32K,8,64", "--LL=1M,16,64"]
NINE = ["Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw"]


class Machines(unittest.TestCase):
    def setUp(self):
        self.folder = support.temporary_folder(self)

    def machine(self, text, name="machine.yaml"):
        path = self.folder / name
        path.write_text(text)
        return f"--machine={path}"

    def plain(self, cores="threads", i1="", d1="", ll=""):
        return self.machine(PLAIN.format(cores=cores, i1=i1, d1=d1, ll=ll))

    def events(self, words, *options):
        out = self.folder / "events"
        result = profile(words, *options, out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return read_events(out)

    def totals(self, words, *options):
        events = self.events(words, *options)
        return dict(zip(events.events, events.summary))

    def assay(self, *words):
        self.run_well([support.ASSAY, *words])

    def run_well(self, words):
        result = support.run(words)
        self.assertEqual(result.returncode, 0, result.stderr)

    def refused(self, option, *more):
        result = profile(["true"], option, *more)
        self.assertEqual(result.returncode, 125)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stderr

    def test_a_plain_machine(self):
        """The same as with --I1, --D1 and --LL, with cores too."""
        wanted = self.events([PROGRAMS / "work"], *SAME)
        for cores in ("threads", "1", "2"):
            found = self.events([PROGRAMS / "work"], self.plain(cores))
            self.assertEqual(found.events, NINE)
            self.assertEqual((found.summary, found.functions), (wanted.summary, wanted.functions))

    def test_every_column_as_without_a_machine(self):
        """Write-backs change no misses: nine columns of the whole machine's simulation."""
        for program in ("work", "matrix", "straddle", "repeat", "atomics"):
            with self.subTest(program=program):
                wanted = self.events([PROGRAMS / program], *SAME)
                found = self.events([PROGRAMS / program], self.plain(d1=", writes: back"))
                self.assertEqual(found.events, [*NINE, "D1wb"])
                self.assertEqual(found.summary[:9], wanted.summary)
                self.assertEqual({name: row[:9] for name, row in found.functions.items()},
                                 wanted.functions)

    def test_the_filter_loses_nothing(self):
        """What is recorded only where it can matter, and all references: the same, write by write."""
        coherent = "coherence: mesi\n" + PLAIN
        for program in ("work", "matrix", "straddle", "repeat", "scattered", "atomics", "list",
                        "series", "avx", "sort"):
            with self.subTest(program=program):
                def totals(*more):
                    return self.totals([PROGRAMS / program], self.machine(coherent.format(
                        cores=1, i1="", ll=", writes: back",
                        d1=", writes: back, prefetch: next-line, late: 100" + "".join(more))))
                # With `classify` all are recorded.
                found, wanted = totals(), totals(", classify: yes")
                self.assertEqual(found, {name: wanted[name] for name in found})

    def imported(self, records, machine):
        """What a machine counts of these records of lackey, all together."""
        lackey, trace, out = (self.folder / name for name in ("lackey", "trace", "out"))
        lackey.write_text("".join(f"{kind} {address:08x},4\n" for kind, address in records))
        trace.unlink(missing_ok=True)
        self.assay("trace", "--import=lackey", lackey, "-o", trace)
        self.assay("replay", "-q", "--plugin=cache", self.machine(machine), "-o", out, trace)
        events = read_events(out)
        return dict(zip(events.events, events.summary))

    def test_repeated_fetches(self):
        """Where a second fetch of the line that was fetched last can matter, it is seen."""
        one = "cores: 1\ncaches:\n"
        i1 = "  I1: {level: 1, holds: instructions, of: core, size: 32K, ways: 8%s}\n"
        d1 = "  D1: {level: 1, holds: data, of: core, size: 32K, ways: 8%s}\n"
        code, data = "I ", " L"
        # A loop in one line loads 800 others of its set of L2, which throw it out.
        loop = [each for k in range(800)
                for each in ((code, 0x1000), (data, 0x101000 + k * 0x8000))]
        found = self.imported(loop, one + i1 % "" + d1 % "" +
                              "  L2: {level: 2, of: core, size: 256K, ways: 8, inclusion: inclusive}\n")
        self.assertEqual((found["I1mr"], found["D1mr"]), (100, 800))
        # A first level of both: 9 lines in 8 ways.
        loop = [each for k in range(8000)
                for each in ((code, 0x1000), (data, 0x101000 + k % 8 * 0x1000))]
        found = self.imported(loop, one + "  L1: {level: 1, of: core, size: 32K, ways: 8}\n")
        self.assertEqual((found["I1mr"], found["D1mr"]), (1, 8000))
        # A hit changes what goes: of code as of data.
        for policy in ("srrip", "lfu"):
            both = one + i1 % f", replacement: {policy}" + d1 % f", replacement: {policy}"
            lines = [0x100000 + 0x1000 * way + 4 * again for _ in range(100)
                     for way in range(9) for again in range(2 if way == 0 else 1)]
            fetched = self.imported([(code, line) for line in lines], both)
            loaded = self.imported([each for line in lines for each in ((code, 0), (data, line))],
                                   both)
            self.assertEqual(fetched["I1mr"], loaded["D1mr"])
            self.assertLess(fetched["I1mr"], 802)

    def test_operations_on_lines(self):
        """Prefetches and flushes of the program: known answers, in a run and in a replay."""
        for more in ("", "tlbs:\n  DTLB: {level: 1, holds: data, entries: 64}\n"):
            machine = self.machine(PLAIN.format(cores=1, i1="", d1="", ll="") + more)
            trace, replayed = self.folder / "trace", self.folder / "replayed"
            trace.unlink(missing_ok=True)
            self.assay("record", "-q", "-o", trace, "--", PROGRAMS / "line_operations")
            self.assay("replay", "-q", "--plugin=cache", machine, "-o", replayed, trace)
            for events in (self.events([PROGRAMS / "line_operations"], machine),
                           read_events(replayed)):
                def misses(function, events=events):
                    row = dict(zip(events.events, events.functions[function]))
                    return row["D1mr"], row["DLmr"]
                self.assertEqual(misses("read_lines"), (256, 256))
                self.assertEqual(misses("read_prefetched"), (0, 0))
                self.assertEqual(misses("read_flushed"), (512, 512))
        for function, misses in (("read_prefetched", 256), ("read_flushed", 256)):  # as Cachegrind
            events = self.events([PROGRAMS / "line_operations"], *SAME)
            row = dict(zip(events.events, events.functions[function]))
            self.assertEqual(row["D1mr"], misses)

    def test_threads_of_one_core(self):
        """Each takes lines from the other: a replay counts as the run, whatever is recorded."""
        trace, replayed = self.folder / "trace", self.folder / "replayed"
        fair = "--schedule=fair:100"
        self.assay("record", "-q", fair, "-o", trace, "--", PROGRAMS / "threads")
        small = PLAIN.replace("32K, ways: 8", "1K, ways: 2")
        for d1 in ("", ", classify: yes"):
            machine = self.machine(small.format(cores=1, i1="", d1=d1, ll=""))
            run = self.totals([PROGRAMS / "threads"], machine, fair)
            self.assay("replay", "-q", "--plugin=cache", machine, "-o", replayed, trace)
            events = read_events(replayed)
            self.assertEqual(dict(zip(events.events, events.summary)), run)

    def test_processors(self):
        """What a thread does before the caches are asked is the same without one."""
        trace = self.folder / "trace"
        self.assay("record", "-q", "--schedule=fair:1000", "-o", trace, "--", PROGRAMS / "threads")
        d1 = ", writes: back, prefetch: [next-line, best-offset], late: 50, classify: yes"
        ll = ", writes: back, prefetch: stream"
        own = PLAIN.format(cores="threads", i1=", prefetch: next-line", d1=d1, ll=ll)
        coherent = "coherence: mesi\nsharing: no\n" + PLAIN.format(
            cores=2, i1="", d1=d1, ll=ll) + "  L3: {level: 3, of: machine, size: 4M, ways: 16}\n"
        for machine in ("--machine=zen4", "--machine=skylake-sp", "--machine=neoverse-n1",
                        self.machine(own), self.machine(coherent, "coherent.yaml")):
            def file(*words):
                out = self.folder / "replayed"
                self.run_well([*words, support.ASSAY, "replay", "-q", "--plugin=cache", machine,
                               "--contexts", "-o", out, trace])
                return out.read_text()
            with self.subTest(machine=machine):
                self.assertEqual(file("taskset", "-c", "0"), file())

    def test_contexts(self):
        option = self.plain(d1=", writes: back, prefetch: next-line")
        alone = self.totals([PROGRAMS / "matrix"], option)
        self.assertEqual(self.totals([PROGRAMS / "matrix"], option, "--contexts"), alone)

    def test_iterations(self):
        option = self.plain(d1=", writes: back")
        self.assertEqual(self.totals([PROGRAMS / "repeat"], option, "--rep=iterations")["Ir"],
                         self.totals([PROGRAMS / "repeat"], *SAME, "--rep=iterations")["Ir"])

    def test_next_line(self):
        """Rows are read one line behind the other: nearly each second miss is gone."""
        def misses(d1):
            events = self.events([PROGRAMS / "matrix"], self.plain(d1=d1))
            return events.functions["sum_by_rows"][events.events.index("D1mr")]
        lines = 192 * 192 * 8 // 64
        self.assertIn(misses(", classify: yes"), (lines, lines + 1))
        self.assertIn(misses(", prefetch: next-line"), range(1, 8))

    def test_late(self):
        """How many instructions lie between the prefetch of a line and its use is known: at least
        those from one line to the next. It is the same whatever is recorded, and in a replay."""
        lines = 64
        # By function: from so many instructions on, so many lines come late.
        wanted = {"walk_4": {4: lines - 1}, "walk_24": {24: lines - 1},
                  "walk_calls": {7: lines - 1}, "walk_string": {9: lines - 1},
                  "walk_branches": {6: lines // 2, 9: lines - 1}}
        trace = self.folder / "trace"
        self.assay("record", "-q", "-o", trace, "--", PROGRAMS / "stream")

        def check(events, late):
            for function, limits in wanted.items():
                with self.subTest(function=function, late=late):
                    row = dict(zip(events.events, events.functions[function]))
                    self.assertEqual(row["D1pfu"], lines - 1)
                    self.assertEqual(row["D1pfl"], max(
                        (many for limit, many in limits.items() if limit <= late), default=0))
        for late in (1, 3, 4, 5, 6, 7, 8, 9, 23, 24, 1000):
            d1 = f", writes: back, prefetch: next-line, late: {late}"
            check(self.events([PROGRAMS / "stream"], self.plain(d1=d1)), late)
            if late not in (4, 8):
                continue
            replayed = self.folder / "replayed"
            self.assay("replay", "-q", "--plugin=cache", self.plain(d1=d1), "-o", replayed, trace)
            check(read_events(replayed), late)
            for more in ("classify: yes", "replacement: srrip"):
                check(self.events([PROGRAMS / "stream"], self.plain(d1=f"{d1}, {more}")), late)
            check(self.events([PROGRAMS / "stream"], self.plain(cores=2, d1=d1), "--contexts"), late)

    def test_late_in_replays(self):
        d1 = ", writes: back, prefetch: [next-line, stride], late: 50"
        for program in ("sort", "faulting_strings", "threads"):
            trace, replayed, found = (self.folder / name for name in ("trace", "replayed", "found"))
            schedule = ["--schedule=fair:1000", "--cpu=x86-64-v2"]
            self.assay("record", "-q", *schedule, "-o", trace, "--", PROGRAMS / program)
            machine = self.plain(cores=2, i1=", prefetch: next-line, late: 20", d1=d1)
            self.assay("replay", "-q", "--plugin=cache", machine, "-o", replayed, trace)
            result = profile([PROGRAMS / program], machine, *schedule, out=found)
            self.assertEqual(result.returncode, 0, result.stderr)
            replay, run = read_events(replayed), read_events(found)
            self.assertEqual(replay.events, run.events)
            self.assertEqual(replay.functions, run.functions)
            self.assertGreater(run.summary[run.events.index("D1pfl")], 0)

    def test_pages(self):
        def translated(page):
            return self.totals([PROGRAMS / "matrix"], self.machine(
                PLAIN.format(cores=1, i1="", d1="", ll="") + f"page: {page}\n"
                "tlbs:\n  DTLB: {level: 1, holds: data, entries: 16}\n  STLB: {level: 2, "
                "entries: 64, ways: 4}\n"))
        small, large = translated("4K"), translated("2M")
        self.assertGreater(small["DTLBm"], 192 * 192 // 3)  # down the columns, two rows for a page
        self.assertLess(large["DTLBm"], 8)
        self.assertEqual(small["Walks"], small["STLBm"])

    def test_buffers_alone(self):
        """They count the same as with caches beside them."""
        tlbs = ("tlbs:\n  ITLB: {level: 1, holds: instructions, entries: 8}\n"
                "  DTLB: {level: 1, holds: data, entries: 16, replacement: random}\n  STLB: {level: 2, entries: 64}\n")
        alone = self.totals([PROGRAMS / "matrix"], self.machine(tlbs))
        beside = self.totals([PROGRAMS / "matrix"], self.machine(
            PLAIN.format(cores=1, i1="", d1="", ll="") + tlbs))
        self.assertEqual(list(alone), ["Ir", "Dr", "Dw", "ITLBm", "DTLBm", "STLBm", "Walks"])
        self.assertEqual(alone, {event: beside[event] for event in alone})
        self.assertGreater(alone["DTLBm"], 1000)

    def of_walks(self, path):
        """What an events file counts in each function of huge_pages that walks."""
        events = read_events(path)
        return {function: dict(zip(events.events, counts))
                for function, counts in events.functions.items() if function.startswith("walk_")}

    def check_walks(self, walks, advised=4):
        """Of 4 units of 2M, or 2,048 pages of 4K. With 64 entries of 4K, the stack's page is one more."""
        small = 2048 + 1 if advised == 0 else 0
        for name in ("advised", "moved", "break", "static"):
            with self.subTest(name=name):
                self.assertEqual(walks[f"walk_{name}"]["D2Mm"], advised)
                self.assertIn(walks[f"walk_{name}"]["D4Km"], (small, small + 1))
        self.assertEqual(walks["walk_advised_again"]["D2Mm"], 0)
        self.assertEqual(walks["walk_advised_again"]["Walks"], small)
        self.assertEqual((walks["walk_plain"]["D4Km"], walks["walk_plain"]["D2Mm"]), (2048 + 1, 0))
        # Two of four units are advised as a whole.
        self.assertEqual(walks["walk_partly"]["D2Mm"], advised // 2)
        self.assertEqual(walks["walk_partly"]["D4Km"], 1024 + 1 if advised else small)
        # What one thread has mapped is known before another one refers to it.
        self.assertEqual(walks["walk_in_thread"]["D2Mm"], 40 * advised)
        self.assertLessEqual(walks["walk_in_thread"]["D4Km"], 40 * (small or 2))

    def test_pages_as_mapped(self):
        """Huge pages where the program asks for them: known answers, in a run and in replays."""
        def machine(transparent):
            return self.machine(
                PLAIN.format(cores="threads", i1="", d1="", ll="") +
                f"page: mapped\ntransparent: {transparent}\ntlbs:\n"
                "  D4K: {level: 1, holds: data, entries: 64, pages: 4K}\n"
                "  D2M: {level: 1, holds: data, entries: 32, pages: 2M}\n")
        out = self.folder / "events.%p"
        def files():
            found = sorted(self.folder.glob("events.*"), key=lambda file: file.stat().st_size)
            self.assertEqual(len(found), 2)
            return [self.of_walks(file) for file in found]
        for schedule in ([], ["--schedule=fair:1000"]):
            result = profile([PROGRAMS / "huge_pages"], machine("madvise"), *schedule, out=out)
            self.assertEqual(result.returncode, 0, result.stderr)
            child, walks = files()
            self.check_walks(walks)
            # The child of a fork has its parent's memory, and empty buffers.
            self.assertEqual(child["walk_in_child"]["D2Mm"], 4)
            for file in self.folder.glob("events.*"):
                file.unlink()
        result = profile([PROGRAMS / "huge_pages"], machine("never"), "--trace-children=no", out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_walks(self.of_walks(next(self.folder.glob("events.*"))), advised=0)
        trace = self.folder / "trace"
        self.assay("record", "-q", "-o", trace, "--", PROGRAMS / "huge_pages")
        for again in ("a", "b"):
            self.assay("replay", "-q", "--plugin=cache", machine("madvise"), "-o",
                       self.folder / f"{again}.%p", trace)
        replayed = sorted(self.folder.glob("a.*"), key=lambda file: file.stat().st_size)
        self.assertEqual(len(replayed), 2)
        self.check_walks(self.of_walks(replayed[1]))
        self.assertEqual(self.of_walks(replayed[0])["walk_in_child"]["D2Mm"], 4)
        for file in replayed:
            self.assertEqual(file.read_text(), file.with_name("b" + file.name[1:]).read_text())

    def test_sharing(self):
        """Two threads that write to one line, turn by turn: always the same, and gone where the line
        is parted or the threads have one core."""
        def file(program, cores):
            events = self.events([PROGRAMS / program], self.machine(
                "coherence: mesi\n" + PLAIN.format(cores=cores, i1="", d1=", writes: back", ll="")),
                "--schedule=fair:100")
            return dict(zip(events.events, events.summary)), events.functions
        shared, functions = file("ping_pong", 2)
        self.assertGreater(shared["FalseSharing"], 1000)
        for _ in range(3):
            self.assertEqual(file("ping_pong", 2), (shared, functions))
        self.assertLess(file("ping_pong_parted", 2)[0]["FalseSharing"], 20)
        self.assertEqual(file("ping_pong", 1)[0]["InvRecv"], 0)

    def test_true_sharing(self):
        """A core writes two words of a line in turn; the other one has read the second, or another."""
        for more, columns in (("", ["TrueSharing", "FalseSharing"]), ("sharing: no\n", [])):
            events = self.events([PROGRAMS / "two_words"], self.machine(
                f"coherence: mesi\n{more}" +
                PLAIN.format(cores=2, i1="", d1=", writes: back", ll="")), "--schedule=fair:100")
            self.assertEqual([name for name in events.events if "Sharing" in name], columns)
            of = {function: dict(zip(events.events, counts))
                  for function, counts in events.functions.items()}
            for function, column in (("read_second", 0), ("read_other", 1)):
                self.assertIn(of[function]["D1mr"], range(999, 1002))
                for number, name in enumerate(columns):
                    self.assertIn(of[function][name],
                                  range(998, 1002) if number == column else range(3))

    def test_figures(self):
        events = self.events([PROGRAMS / "matrix"], self.machine(
            PLAIN.format(cores="threads", i1="", d1="", ll=", latency: 20") + "memory: 100\n"))
        self.assertIn('#! derived "Cy" cycles = Ir + I1mr * 20 + (D1mr + D1mw) * 20 + '
                      '(ILmr + DLmr + DLmw) * 100', "\n".join(events.remarks).replace(" unit=", " "))

    def own(self, replacement="fifo", prefetch=""):
        small = f"size: 1K, ways: 4, replacement: {replacement}{prefetch}"
        return self.machine(f"caches:\n  D1: {{level: 1, holds: data, of: core, {small}}}\n"
                            "  LL: {level: 2, of: machine, size: 1M, ways: 16}\n")

    def test_a_policy_of_the_user_s(self):
        """It runs in another process, and gives what the same policy of assay's own gives."""
        wanted = self.events([PROGRAMS / "work"], self.own())
        found = self.events([PROGRAMS / "work"], self.own(POLICY))
        self.assertEqual((found.events, found.functions), (wanted.events, wanted.functions))
        for program in ([PROGRAMS / "threads"], ["sh", "-c", f"{PROGRAMS / 'work'}; true"]):
            self.run_well([support.ASSAY, "-q", "--plugin=cache,branch", self.own(POLICY),
                           "-o", self.folder / "out.%p", "--", *program])
        trace = self.folder / "trace"
        self.assay("record", "-q", "-o", trace, "--", PROGRAMS / "work")
        self.assay("replay", "-q", "--plugin=cache", self.own(POLICY), "-o", self.folder / "again",
                   trace)
        self.assertEqual(read_events(self.folder / "again").functions, wanted.functions)

    def of_references(self, references, machine):
        """What is counted for these references, such as "L 0" for a load from line 0, of a program
        that consists of them."""
        lackey = self.folder / "references"
        lackey.write_text("".join(
            f"I  00400000,4\n {reference.split()[0]} {0x100000 + 64 * int(reference.split()[1]):x},4\n"
            for reference in references))
        trace, out = self.folder / "imported", self.folder / "counted"
        self.assay("trace", "--import=lackey", lackey, "-o", trace)
        self.assay("replay", "-q", "--plugin=cache", self.machine(machine), "-o", out, trace)
        events = read_events(out)
        return dict(zip(events.events, events.totals()))

    def test_a_policy_of_version_1(self):
        policy = PLUGINS / "policy_version_1.so"
        self.assertEqual(self.events([PROGRAMS / "work"], self.own(policy)).functions,
                         self.events([PROGRAMS / "work"], self.own()).functions)
        refused = profile(["true"], self.own(f"{{policy: {policy}, alpha: 3}}"), out=self.folder / "no")
        self.assertEqual(refused.returncode, 125)
        self.assertIn("takes no parameters, but the machine gives alpha", refused.stderr)

    def test_bypass(self):
        """Two lines fill D1. Another line that bypasses it misses each time, and is written in L2."""
        levels = ("caches:\n  D1: {{level: 1, holds: data, size: 128, ways: 2, replacement: "
                  f"{{{{policy: {POLICY_2}, bypass: {{}}}}}}}}}}\n"
                  "  L2: {{level: 2, size: 256, ways: 4, writes: back}}\n")
        references = ["L 0", "L 1", "S 2", "S 2", "L 0", "L 2", "L 3", "L 4", "L 5", "L 6"]
        found = self.of_references(references, levels.format("write"))
        # 0 and 1 fill D1; 2 misses at both writes; the loads of 2 to 6 replace lines.
        self.assertEqual((found["D1mr"], found["D1mw"]), (7, 2))
        self.assertEqual((found["D2mr"], found["D2mw"]), (6, 1))
        self.assertEqual(found["L2wb"], 1)
        found = self.of_references(references, levels.format("read write"))
        self.assertEqual((found["D1mr"], found["D1mw"]), (7, 2))
        self.assertEqual(self.of_references(["L 0", "L 1", "L 2", "L 0", "L 1"], levels.format("read"))["D1mr"], 3)
        self.assertEqual(self.of_references(["L 0", "L 1", "L 2", "L 0", "L 1"], levels.format("no"))["D1mr"], 5)

    def test_a_policy_knows_the_thread(self):
        """The second thread reads a line again and again, which never comes into its bypassing cache."""
        source, program = self.folder / "two.c", self.folder / "two"
        source.write_text("""#include <pthread.h>
            static volatile long cell[64];
            static void* spin(void* p) { for (int i = 0; i < 1000; ++i) (void)cell[32]; return p; }
            static void own(void) { for (int i = 0; i < 1000; ++i) (void)cell[32]; }
            int main(void) { pthread_t t; own(); pthread_create(&t, 0, spin, 0); pthread_join(t, 0); return 0; }
            """)
        built = support.run(["gcc", "-O1", "-g", "-fno-inline", "-pthread", source, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        for policy, least, most in (("lru", 0, 3), (f"{{policy: {POLICY_2}, bypass: others}}", 1000, 1001)):
            events = self.events([program], self.machine(
                f"cores: 1\ncaches:\n  D1: {{level: 1, holds: data, size: 128, ways: 2, replacement: {policy}}}\n"))
            column = events.events.index("D1mr")
            self.assertTrue(least <= events.functions["spin"][column] <= most, (policy, events.functions["spin"]))
            self.assertLess(events.functions["own"][column], 10)

    def test_bypass_of_what_must_get_each_line(self):
        for place in ("inclusion: inclusive", ""):
            machine = (f"cores: 2\ncoherence: mesi\ncaches:\n  D1: {{level: 1, holds: data, of: core, size: 128, "
                       f"ways: 2{'' if place else f', replacement: {{policy: {POLICY_2}, bypass: read}}'}}}\n"
                       f"  L2: {{level: 2, size: 256, ways: 2{f', {place}, replacement: {{policy: {POLICY_2}, bypass: read}}' if place else ''}}}\n")
            ran = profile([PROGRAMS / "work"], self.machine(machine), out=self.folder / "no")
            self.assertEqual(ran.returncode, 125, ran.stderr)
            self.assertIn(f"its victim bypassed {'L2' if place else 'D1'}, which must get each line", ran.stderr)

    def test_prefetches_into_other_levels(self):
        def counted(references, into):
            return self.of_references(references, (
                "caches:\n  D1: {level: 1, holds: data, size: 128, ways: 2, "
                f"prefetch: {{kind: {POLICY_2}, into: {into}}}}}\n"
                "  L2: {level: 2, size: 4K, ways: 4}\n"))
        found = counted(["L 0", "L 1"], 2)
        self.assertEqual((found["D1mr"], found["D2mr"]), (2, 1))
        found = counted(["L 0", "L 1"], 0)
        self.assertEqual((found["D1mr"], found["D2mr"], found["D1pf"]), (1, 1, 1))
        # Line 1 leaves unused when line 8 comes, and the prefetcher stops.
        found = counted(["L 0", "L 8", "L 16", "L 17"], 0)
        self.assertEqual((found["D1mr"], found["D1pf"], found["D1pfx"]), (4, 1, 1))
        wrong = profile(["true"], self.machine(
            f"caches:\n  D1: {{size: 1K, ways: 2, prefetch: {{kind: {POLICY_2}, inot: 2}}}}\n"),
            out=self.folder / "no")
        self.assertEqual(wrong.returncode, 125)
        self.assertIn("own_policy_2.so: there is no such parameter", wrong.stderr)

    def test_what_a_policy_does_to_its_process_costs_the_columns(self):
        prefetch = f", prefetch: {POLICY}"
        for what, where, more, words in (
                ("end", "constructor", "", "its vp_options ended its process with status 0"),
                ("end", "create", "", "its vp_options ended its process with status 0"),
                ("end", "victim", "", "its vp_prof_process ended its process with status 0"),
                ("kill", "hit", "", "its vp_prof_process crashed with signal 9 (Killed)"),
                ("smash", "fill", "", "its vp_prof_process crashed with signal"),
                ("loop", "fill", "", "its vp_prof_process did not return within 2 s"),
                ("kill", "reference", prefetch, "its vp_prof_process crashed with signal 9"),
                ("end", "destroy", "", "its vp_release ended its process with status 0")):
            with self.subTest(what=what, where=where):
                out = self.folder / "events"
                out.unlink(missing_ok=True)
                result = profile([PROGRAMS / "work"], self.own(POLICY, more),
                                 "--profiler-timeout=2", plugin="cache,branch", out=out,
                                 env={**os.environ, "ASSAY_POLICY": f"{what} {where}"})
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout, support.run([PROGRAMS / "work"]).stdout)
                lost = [line for line in result.stderr.splitlines() if "is lost" in line]
                self.assertEqual(len(lost), 1, result.stderr)
                self.assertIn(words, lost[0])
                self.assertIn(str(POLICY), lost[0])
                self.assertIn("Bc", read_events(out).events)

    def test_mistakes(self):
        for text, words in (
                ("cores: 1\ncaches:\n  D1: {level: 1, sise: 32K}\n", [":3:", "sise", "mean size"]),
                ("cachs:\n", [":1:", "mean caches"]),
                ("cores: 1\ncaches:\n  D1: {size: 32K, ways: 7}\n", [":3:", "D1", "multiple"]),
                ("cores: 0\n", [":1:", "use 1 to 64"]),
                ("coherence: mesi\ncaches:\n  D1: {size: 32K, ways: 8}\n", ["needs a number of cores"]),
                ("caches:\n  D1: {size: 32K, ways: 8, replacement: lur}\n", [":2:", "lur", "lru"]),
                ("caches:\n  D1: {size: 32K, ways: 8, replacement: ./none.so}\n", ["none.so"]),
                ("a: b: c\n", [":1:"]), ("- a\n", [":1:"]), ("", ["a machine"])):
            with self.subTest(text=text):
                said = self.refused(self.machine(text))
                for word in words:
                    self.assertIn(word, said)
                self.assertTrue("machine.yaml" in said or ".so" in said, said)
        self.assertIn("did you mean generic?", self.refused("--machine=generik"))
        self.assertIn("nowhere.yaml", self.refused("--machine=nowhere.yaml"))
        self.assertIn("--D1", self.refused("--machine=generic", "--D1=32K,8,64"))
        self.assertIn("--sample", self.refused("--machine=generic", "--sample=1/100"))
        self.assertIn("--cache-sim=no", self.refused("--machine=generic", "--cache-sim=no"))


if __name__ == "__main__":
    unittest.main()
