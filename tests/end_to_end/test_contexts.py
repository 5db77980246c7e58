#!/usr/bin/env python3
"""Calling contexts of programs whose calls are known: tests/programs/hosted/calling.c."""

import os
import re
import unittest
from collections import Counter

import support
from support import PLUGINS, PROGRAMS, needs, profile, read_events, run

STACK = re.compile(r'#! stack (\d+) in=(\d+) (call|interrupted|inlined|jumped)=\S+ '
                   r'("(?:[^"\\]|\\.)*"|\S+)((?: \d+)*)$')


def function_name(word: str) -> str:
    """The last part of a name, without arguments and @plt."""
    return re.sub(r"\(.*?\)|@plt|@GLIBC.*", "", word.strip('"')).rpartition("::")[2]


def read_calls(path) -> Counter:
    """How often each path of functions was entered, as the plugin's last column has it."""
    events = read_events(path)
    column = events.events.index("Calls")
    names = {0: ()}
    calls = Counter()
    for remark in events.remarks:
        found = STACK.match(remark)
        if not found:
            continue
        number, parent, kind, function, counts = found.groups()
        step = function_name(function) + ("!" if kind == "interrupted" else "")
        names[int(number)] = (*names[int(parent)], step)
        counts = [int(count) for count in counts.split()]
        calls[names[int(number)]] += counts[column] if column < len(counts) else 0
    return calls


def calls_between_functions(text: str) -> Counter:
    """The calls in a file of Callgrind, by caller and callee."""
    names, caller, callee, calls = {}, "", "", Counter()
    for line in text.splitlines():
        if name := re.match(r"(c?fn)=(\(\d+\)) ?(.*)", line):
            names.setdefault(name[2], name[3].partition("'")[0])  # f'2 is a recursive call
            if name[1] == "fn":
                caller = names[name[2]]
            else:
                callee = names[name[2]]
        elif line.startswith("calls="):
            calls[caller, callee] += int(line.removeprefix("calls=").split()[0])
    return calls


class Contexts(unittest.TestCase):
    def calls(self, program, *arguments, options=()):
        out = support.temporary_folder(self) / "events"
        result = profile([PROGRAMS / program, *arguments], *options, out=out,
                         plugin=PLUGINS / "contexts.so", env={**os.environ, "LD_BIND_NOW": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.out, self.stderr = out, result.stderr
        return read_calls(out)

    def below(self, name, *arguments, program="calling", **more) -> dict[str, int]:
        """Calls of this program's own functions, by their path from the function `name` on."""
        found = Counter()
        for path, count in self.calls(program, *arguments, **more).items():
            if name in path and count:
                found["/".join(path[path.index(name):])] += count
        return found

    def check(self, found, expected):
        """All calls of leaf, and of the other functions that `expected` names."""
        names = {path.rpartition("/")[2] for path in expected} | {"leaf"}
        self.assertEqual({path: count for path, count in found.items()
                          if path.rpartition("/")[2] in names}, expected)

    def test_plain_calls(self):
        self.check(self.below("plain", "plain"),
                   {"plain": 1, "plain/twice": 5, "plain/twice/leaf": 15, "plain/leaf": 1})

    def test_pointers_and_tail_calls(self):
        """first() jumps to last(), which so is in its context. No call counts that."""
        self.check(self.below("pointers", "pointers"),
                   {"pointers/last": 4, "pointers/first": 3, "pointers/last/leaf": 8,
                    "pointers/first/last/leaf": 6})

    def test_recursion(self):
        self.check(self.below("recursion", "recursion"),
                   {"recursion/descend": 10, "recursion/descend/leaf": 20, "recursion/leaf": 1})

    def test_kept_recursion(self):
        """The third call has those within it, or all have contexts of their own."""
        def path(calls):
            return "recursion" + calls * "/descend"
        found = self.below("recursion", "recursion", options=["--recursion=3"])
        self.check(found, {path(1): 1, path(2): 1, path(3): 8, path(1) + "/leaf": 2, path(2) + "/leaf": 2,
                           path(3) + "/leaf": 16, "recursion/leaf": 1})
        found = self.below("recursion", "recursion", options=["--recursion=all"])
        self.check(found, {**{path(calls): 1 for calls in range(1, 11)},
                           **{path(calls) + "/leaf": 2 for calls in range(1, 11)}, "recursion/leaf": 1})

    def test_a_million_frames(self):
        calls = self.calls("calling", "deep")
        self.assertEqual(calls[("descend",)], 1_000_000)  # makecontext has no call to the first
        self.assertEqual(calls[("leaf",)] + calls[("descend", "leaf")], 2 * 1_000_001)

    def test_longjmp(self):
        self.check(self.below("long_jump", "long_jump"),
                   {"long_jump/jump": 28, "long_jump/leaf": 7, "long_jump/twice": 1,
                    "long_jump/twice/leaf": 3})

    def test_exceptions(self):
        self.check(self.below("catcher", program="caught"),
                   {"catcher": 8, "catcher/thrower": 24, "catcher/leaf": 16})

    def test_signal_handlers(self):
        found = self.below("signals", "signals")
        by_end = Counter()
        for path, count in found.items():
            first, _, rest = path.partition("/outer_handler!")
            by_end["handler/" + rest.rpartition("/")[2] if rest else
                   first.rpartition("/")[2]] += count
            self.assertEqual(path.count("inner_handler!"), int("inner_handler!" in path))
            if "inner_handler!" in path:
                self.assertIn("outer_handler!", path)
        self.assertEqual(by_end["outer_handler!"] + by_end["signals"], 1)
        self.assertEqual(by_end["leaf"], 1)
        self.assertEqual(by_end["handler/leaf"], 18)
        self.assertEqual(found["signals/leaf"], 1)

    def test_handlers_on_an_alternate_stack(self):
        found = self.below("alternate_stack", "alternate_stack")
        leaves = Counter()
        for path, count in found.items():
            if path.endswith("/leaf"):
                leaves[path.split("/")[-2]] += count
        self.assertEqual(leaves, {"outer_handler!": 12, "inner_handler!": 6,
                                  "leaving_handler!": 4, "alternate_stack": 1})
        self.assertEqual(found["alternate_stack/leaf"], 1)

    def test_coroutines(self):
        calls = self.calls("calling", "coroutines")
        self.assertEqual(calls[("yield",)], 30)
        self.assertEqual(calls[("yield", "leaf")], 57)  # the last turn of each does not come back
        self.assertEqual(sum(count for path, count in calls.items()
                             if path[-2:] == ("coroutines", "leaf")), 30)

    def test_switches_between_coroutines(self):
        calls = self.calls("calling", "switches")
        self.assertEqual((calls[("turn",)], calls[("turn", "leaf")]), (30, 57))
        own = {path[-2:]: count for path, count in calls.items() if "switches" in path}
        self.assertEqual(own[("switches", "turn")], 10)
        self.assertEqual(own[("turn", "leaf")], 20)

    def test_threads(self):
        calls = self.calls("calling", "threads")
        of_threads = {path: count for path, count in calls.items()
                      if path[-2:] == ("thread_main", "twice")}
        self.assertEqual(list(of_threads.values()), [4], calls)
        self.assertNotIn("threads", list(of_threads)[0])
        self.assertEqual(sum(count for path, count in calls.items()
                             if path[-2:] == ("twice", "leaf")), 12)

    def test_children_that_share_the_stack(self):
        self.check(self.below("children", "children"), {"children/leaf": 6})

    def test_references_belong_to_contexts(self):
        """Each leaf() reads and writes sum, and reads its return address: three references, and
        the call's own is its caller's."""
        self.check(self.below("plain", "plain", options=["--references=yes"]),
                   {"plain": 1, "plain/twice": 5, "plain/twice/leaf": 15, "plain/leaf": 1})
        events = read_events(self.out)
        references = {}
        for remark in events.remarks:
            found = STACK.match(remark)
            if found and function_name(found[4]) == "leaf":
                references[found[1]] = [int(count) for count in found[5].split()]
        self.assertTrue(references)
        for counts in references.values():
            self.assertEqual(counts[0], 2 * counts[1] + counts[1])

    @needs("cg_annotate", "cg_merge")
    def test_cachegrind_s_tools_read_the_file(self):
        self.calls("calling", "plain")
        for command in (["cg_annotate", self.out],
                        ["cg_merge", "-o", f"{self.out}.merged", self.out, self.out],
                        [support.ASSAY, "annotate", self.out]):
            shown = run(command)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertNotIn("WARNING", (shown.stdout + shown.stderr).upper())

    def test_filtered_beside_another_profiler(self):
        """The cache profiler's counts are the same whether calls are captured or not."""
        folder = support.temporary_folder(self)
        columns = []
        for plugins in ("cache", f"cache,{PLUGINS / 'contexts.so'}"):
            out = folder / "events"
            result = profile([PROGRAMS / "work"], *support.GEOMETRY, plugin=plugins, out=out)
            self.assertEqual(result.returncode, 0, result.stderr)
            columns.append({name: counts[:9] for name, counts in
                            read_events(out).functions.items() if any(counts[:9])})
        self.assertEqual(columns[0], columns[1])


class ContextsOfAllProfilers(unittest.TestCase):
    """--contexts."""

    def profile(self, program, *options, plugin, contexts=True):
        out = self.out = support.temporary_folder(self) / "events"
        name, *arguments = program.split()
        result = profile([PROGRAMS / name, *arguments], *(["--contexts"] if contexts else []), *options,
                         plugin=plugin,
                         out=out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.stderr = result.stderr
        return read_events(out)

    def stacks(self, events) -> dict[str, Counter]:
        """Counts of each path of functions, by event; without where the program starts."""
        names, found = {0: ()}, {}
        for remark in events.remarks:
            if not (stack := STACK.match(remark)):
                continue
            number, parent, _, function, counts = stack.groups()
            names[int(number)] = (*names[int(parent)], function_name(function))
            path = "/".join(names[int(number)]).removeprefix("_start/")
            counter = found.setdefault(path, Counter())
            for event, count in zip(events.events, counts.split()):
                counter[event] += int(count)
        return found

    def test_misses_known_on_paper(self):
        for level1 in ("program", "profiler"):
            events = self.profile("callers", *support.GEOMETRY, f"--level1={level1}",
                                  plugin="cache")
            stacks = self.stacks(events)
            misses = {path: (counts["D1mr"], counts["DLmr"]) for path, counts in stacks.items()
                      if path.endswith(("read_lines", "descend"))}
            self.assertEqual(misses, {"program/cold/read_lines": (199, 199),
                                      "program/mixed/read_lines": (100, 100),
                                      "program/descend": (100, 100)} |
                             {path: (0, 0) for path in misses if "warm" in path})
            self.assertEqual(stacks["program/cold/copy"]["D1mr"], 1)
            # The last of 1000 bytes are in lines that have been read.
            self.assertEqual(stacks["program/warm/copy"]["D1mr"], 0)
            for event in ("Dr", "Dw"):
                self.assertEqual(stacks["program/warm/copy"][event] -
                                 stacks["program/cold/copy"][event], 990)

    def test_kept_recursion(self):
        """Each call of descend() reads one new line."""
        for level1 in ("program", "profiler"):
            events = self.profile("callers", *support.GEOMETRY, f"--level1={level1}", "--recursion=all",
                                  plugin="cache")
            misses = {path: counts["D1mr"] for path, counts in self.stacks(events).items()
                      if path.endswith("descend")}
            self.assertEqual(misses, {"program" + calls * "/descend": 1 for calls in range(1, 101)} |
                             {path: 0 for path in misses if path.count("descend") > 100})

    def test_counts_are_the_same_as_without(self):
        for plugin, *options in (("cache",), ("cache", "--level1=profiler"),
                                 ("cache", "--cache-sim=no"), ("cache", "--rep=iterations"),
                                 ("branch",),
                                 ("branch", "--predictor=tage", "--return-stack=4"),
                                 ("classic",), ("effective_address",),
                                 ("cache,branch,used_bytes",)):
            with self.subTest(plugin=plugin, options=options):
                without, with_contexts = (
                    self.profile("calling", *options, plugin=plugin, contexts=contexts)
                    for contexts in (False, True))
                self.assertEqual(with_contexts.functions, without.functions)
                sums = Counter()
                for counts in self.stacks(with_contexts).values():
                    sums.update(counts)
                for event, total in zip(with_contexts.events, with_contexts.summary):
                    self.assertLessEqual(sums[event], total, event)
                    if event in ("Ir", "Bc", "Bi"):
                        self.assertEqual(sums[event], total, event)

    def test_blocks_left_early(self):
        """A block that a fault ends counts up to there, also where threads have such blocks."""
        for plugin, *options in (("cache",), ("cache,branch", "--schedule=fair"),
                                 ("branch", "--predictor=gshare")):
            with self.subTest(plugin=plugin, options=options):
                events = self.profile("thread_signals faults_in_loops", *options, plugin=plugin)
                stacks = self.stacks(events)
                faults = Counter()
                for path, counts in stacks.items():
                    if path.endswith("loop_often/fault_in_loop"):
                        faults.update(counts)
                if "Ir" in events.events:
                    self.assertEqual(sum(counts["Ir"] for counts in stacks.values()),
                                     events.summary[events.events.index("Ir")])
                    # What it executes before the loop is the same each time.
                    self.assertEqual(faults["Ir"] % 50, 0)
                    self.assertIn(faults["Ir"] // 50 - (9 * 5 + 1), range(3, 20))
                for event, counts in zip(events.events, events.summary):
                    self.assertLessEqual(sum(stack[event] for stack in stacks.values()), counts, event)
                shown = run([support.ASSAY, "annotate", self.out])
                self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_mispredicted_branches(self):
        """Those that the profiler predicts itself; a return belongs to the function that it ends."""
        events = self.profile("recursion", "--predictor=gshare", "--return-stack=1",
                              plugin="branch")
        stacks = self.stacks(events)
        totals = dict(zip(events.events, events.summary))
        for event in ("Bcm", "Brm"):
            self.assertEqual(sum(counts[event] for counts in stacks.values()), totals[event])
        self.assertTrue(any(path.endswith("fibonacci") and counts["Brm"] > 100
                            for path, counts in stacks.items()))

    def test_others_do_not_pay(self):
        """What one profiler asks for is not the others' business."""
        events = self.profile("callers", plugin=f"cache,{PLUGINS / 'contexts.so'}", contexts=False)
        stacks = self.stacks(events)
        self.assertTrue(any(counts["Calls"] for counts in stacks.values()))
        self.assertFalse(any(counts["D1mr"] for counts in stacks.values()))

    def test_profilers_in_processes_of_their_own(self):
        found = []
        for contexts, options in ((False, []), (True, ["--calls=no"])):
            events = self.profile("callers", "--references=yes", *options,
                                  plugin=PLUGINS / "contexts.so", contexts=contexts)
            found.append({path: counts["Refs"] for path, counts in self.stacks(events).items()
                          if path.endswith("read_lines")})
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0]["program/mixed/read_lines"], 303)
        self.profile("callers", "--references=yes", "--calls=no",
                     plugin=f"cache,{PLUGINS / 'contexts.so'}", contexts=False)
        self.assertIn("no contexts", self.stderr)

    def entered(self, events) -> Counter:
        """How often each context was entered, by its number."""
        entered = Counter()
        for remark in events.remarks:
            word, *numbers = remark.removeprefix("#! ").split()
            if word == "calls":
                for context, count in enumerate(numbers[1:], int(numbers[0])):
                    entered[context] += int(count)
            elif word == "recursion":
                entered[int(numbers[0])] += int(numbers[-1])
        return entered

    def test_calls_are_those_that_the_records_tell(self):
        """The driver's counts of calls are what a profiler counts that captures calls."""
        for arguments in ("plain", "pointers", "recursion", "long_jump", "signals", "alternate_stack",
                          "coroutines", "threads"):
            for recursion in ("1", "3"):
                with self.subTest(arguments=arguments, recursion=recursion):
                    events = self.profile(f"calling {arguments}", f"--recursion={recursion}",
                                          plugin=f"cache,{PLUGINS / 'contexts.so'}")
                    entered = self.entered(events)
                    column = events.events.index("Calls")
                    for remark in events.remarks:
                        stack = STACK.match(remark)
                        if not stack or stack[3] not in ("call", "interrupted"):
                            continue
                        counts = [int(count) for count in stack[5].split()]
                        calls = counts[column] if column < len(counts) else 0
                        self.assertEqual(entered[int(stack[1])], calls, remark)

    def test_functions_that_are_jumped_to(self):
        """first() jumps to last()."""
        self.profile("calling pointers", plugin="cache")
        shown = run([support.ASSAY, "annotate", "--calls", "--tree", "--full", "--threshold=0", "--sort=Ir", self.out])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(" last [jumped] (3x)\n", shown.stdout)
        self.assertTrue(re.search(r"<   \S*:first \(3x\)\n(.*<.*\n)*.*\* \S*:last\n", shown.stdout))

    def test_files_add_up(self):
        merged = support.temporary_folder(self) / "merged"
        once = self.entered(self.profile("recursion", plugin="cache"))
        self.assertGreater(sum(once.values()), 100)
        result = run([support.ASSAY, "merge", "-o", merged, self.out, self.out])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.entered(read_events(merged)),
                         Counter({context: 2 * count for context, count in once.items()}))

    def test_a_difference_has_the_calls_of_both(self):
        self.profile("calling plain", plugin="cache")
        old = self.out
        self.profile("calling recursion", plugin="cache")
        shown = run([support.ASSAY, "diff", "--full", "--threshold=0", old, self.out])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"> recursion > descend  \(0x -> 10x\)\n")
        self.assertRegex(shown.stdout, r"> plain > twice  \(5x -> 0x\)\n")

    @needs("valgrind")
    def test_calls_are_callgrind_s(self):
        folder = support.temporary_folder(self)
        for program in ("recursion", "many", "list", "indirect"):
            with self.subTest(program=program):
                self.profile(program, "--cache-sim=no", plugin="cache")
                found = []
                result = run([support.ASSAY, "export", "--format=callgrind", "-o", folder / "ours", self.out])
                self.assertEqual(result.returncode, 0, result.stderr)
                result = run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'theirs'}",
                              PROGRAMS / program])
                self.assertEqual(result.returncode, 0, result.stderr)
                for name in ("ours", "theirs"):
                    found.append(calls_between_functions((folder / name).read_text()))
                theirs = {pair: count for pair, count in found[1].items() if pair[0] != "(below main)"}
                self.assertGreater(len(theirs), 2)
                self.assertEqual({pair: found[0][pair] for pair in theirs}, theirs)

    @needs("valgrind", "callgrind_annotate")
    def test_inclusive_counts_are_callgrind_s(self):
        for program in ("recursion", "many", "list", "indirect"):
            with self.subTest(program=program):
                events = self.profile(program, "--cache-sim=no", plugin="cache")
                ours = Counter()
                for path, counts in self.stacks(events).items():
                    for function in set(path.split("/")):
                        ours[function] += counts["Ir"]
                theirs = self.callgrind_inclusive(PROGRAMS / program)
                self.assertGreater(len(theirs), 4)
                self.assertEqual(theirs, {name: ours[name] for name in theirs})

    def callgrind_inclusive(self, program) -> dict[str, int]:
        """Ir by function; without what Callgrind calls a recursion of it, and the start."""
        out = support.temporary_folder(self) / "callgrind.out"
        run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", program])
        shown = run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no",
                     "--show-percs=no", out]).stdout
        found = {}
        for line in shown.splitlines():
            if row := re.match(r"\s*([\d,]+)\s+\S*?:(\w+)(?: \[.*\])?$", line):
                # Of a function from several files, once for each.
                count = int(row[1].replace(",", ""))
                found[row[2]] = max(count, found.get(row[2], 0))
        return {name: count for name, count in found.items() if name != "_start"}

    def compiled(self, name, text, *options):
        """A program of its own, profiled; inclusive Ir by function and Callgrind's."""
        folder = support.temporary_folder(self)
        (folder / name).write_text(text)
        program = folder / "program"
        compiler = "g++" if name.endswith("cpp") else "gcc"
        made = run([compiler, "-O2", "-g", "-o", program, folder / name, *options])
        self.assertEqual(made.returncode, 0, made.stderr)
        found = []
        for commands in ([["run"]], [["record", "-o", folder / "trace"], ["replay"]]):
            for command in commands:
                named = [folder / "trace"] if command[0] == "replay" else ["--", program]
                wanted = [] if command[0] == "record" else [
                    "--plugin=cache", "--cache-sim=no", "--contexts", f"--out={folder / 'out'}"]
                done = run([support.ASSAY, command[0], "-q", *command[1:], *wanted, *named])
                self.assertEqual(done.returncode, 0, done.stderr)
            ours = Counter()
            for path, counts in self.stacks(support.read_events(folder / "out")).items():
                for function in set(path.split("/")):
                    ours[re.sub(r"\(.*", "", function)] += counts["Ir"]
            found.append(ours)
        self.assertEqual(found[0], found[1])  # live and replayed
        return found[0], program

    def test_mutual_recursion(self):
        """parse_group() calls the work by parse_expression() only, which is on the stack already."""
        ours, program = self.compiled("mutual.c", """
#define KEPT __attribute__((noinline, noclone)) static
KEPT long work(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ n; return s; }
KEPT long parse_expression(long depth);
KEPT long parse_group(long depth) { return parse_expression(depth - 1) + 1; }
KEPT long parse_expression(long depth) { long w = work(1000); return depth == 0 ? w : w + parse_group(depth) + 1; }
int main(void) { return parse_expression(49) == 0; }
""", "-fno-optimize-sibling-calls", "-O1")
        theirs = self.callgrind_inclusive(program)
        for name in ("work", "parse_group", "parse_expression"):
            self.assertEqual(ours[name], theirs[name], name)

    def test_what_is_called_after_an_exception(self):
        ours, _ = self.compiled("thrown.cpp", """
#include <stdexcept>
#define KEPT __attribute__((noinline, noclone))
KEPT void work() { for (long i = 0; i < 100000; ++i) __asm__ volatile(""); }
KEPT void thrower(int n) { if (n == 1) throw std::runtime_error("x"); }
int main(int count, char**) { try { thrower(count); } catch (const std::exception&) { } work(); }
""")
        self.assertGreater(ours["work"], 200_000)
        self.assertLess(ours["thrower"], 150_000)
        self.assertGreater(ours["main"], ours["work"] + ours["thrower"] - 1)

    def test_chains_of_tail_calls(self):
        ours, _ = self.compiled("chain.c", """
#define KEPT __attribute__((noinline, noclone))
KEPT void third(long n) { __asm__ volatile("nop; 1: dec %0; jnz 1b" : "+r"(n)); }
KEPT void second(long n) { third(n + 1); }
KEPT void first(long n) { second(n + 1); }
int main(void) { for (int i = 0; i < 100; i++) first(998); return 0; }
""")
        self.assertEqual([ours[name] for name in ("third", "second", "first")], [200_200, 200_400, 200_600])

    def test_not_in_bursts(self):
        result = profile([PROGRAMS / "callers"], "--contexts", "--sample=1/100")
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertEqual(result.stderr, "assay: --contexts cannot be combined with --sample; leave "
                                        "one of them out\n")


if __name__ == "__main__":
    unittest.main()
