#!/usr/bin/env python3
"""assay summary names the fault of programs whose fault is known, on one screen."""

import re
import unittest

import support
from support import ASSAY, ROOT, profile, run

PROGRAMS = ROOT / "examples" / "programs"

# Programs with a fault that a summary names, and without it if MENDED is defined: the sentence that
# names the fault, and options of the run.
FAULTS = {
    "loop order": (r"%  main .* in data cache misses", (), """
        float matrix[1000][300];
        int main(void) {
            float sum = 0;
            for (int round = 0; round < 20; ++round)
        #ifdef MENDED
                for (int i = 0; i < 1000; ++i)
                    for (int j = 0; j < 300; ++j)
        #else
                for (int j = 0; j < 300; ++j)
                    for (int i = 0; i < 1000; ++i)
        #endif
                        sum += matrix[i][j];
            return sum != 0;
        }"""),
    "unpredictable branch": ("in mispredicted branches", (), """
        static int toss(int n) {
            unsigned x = 1;
            volatile int heads = 0;
            for (int i = 0; i < n; ++i) {
                x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        #ifdef MENDED
                heads = heads + (x & 1);
        #else
                if (x & 1) heads = heads + 1;
        #endif
            }
            return heads;
        }
        int main(void) { return toss(200000) == 0; }"""),
    "large structs": (r"by member\n +9\d\.\d %  item\.key", (), """
        #include <stdlib.h>
        #ifdef MENDED
        struct item { int key; };
        #else
        struct item { int key; char text[124]; };
        #endif
        int main(void) {
            struct item* items = calloc(50000, sizeof *items);
            int sum = 0;
            for (int round = 0; round < 10; ++round)
                for (int i = 0; i < 50000; ++i) sum += items[i].key;
            return sum;
        }"""),
    "false sharing": ("False sharing: ", ("--machine=zen4", "--schedule=fair:100"), """
        #include <pthread.h>
        #ifdef MENDED
        #define APART __attribute__((aligned(64)))
        #else
        #define APART
        #endif
        static struct { APART long first; APART long second; } counters;
        static void* count(void* counter) {
            for (int i = 0; i < 100000; ++i) ++*(volatile long*)counter;
            return 0;
        }
        int main(void) {
            pthread_t first, second;
            if (pthread_create(&first, 0, count, &counters.first)) return 1;
            if (pthread_create(&second, 0, count, &counters.second)) return 1;
            return pthread_join(first, 0) || pthread_join(second, 0);
        }"""),
    "memory allocated anew": (r"Allocating and freeing memory takes \d+ %", (), """
        #include <stdlib.h>
        static void use(volatile char* block) { *block = 0; }
        int main(void) {
        #ifdef MENDED
            char* block = malloc(512);
            for (int i = 0; i < 50000; ++i) use(block);
        #else
            for (int i = 0; i < 50000; ++i) {
                char* block = malloc(512);
                use(block);
                free(block);
            }
        #endif
            return 0;
        }"""),
    "page after page": ("in page walks and TLB misses", ("--machine=zen4",), """
        #include <stdlib.h>
        int main(void) {
            char* bytes = calloc(16384, 4096);
            int sum = 0;
            for (int round = 0; round < 12; ++round)
                for (long i = 0; i < 16384; ++i)
        #ifdef MENDED
                    sum += bytes[i];
        #else
                    sum += bytes[i * 4096 + i % 64 * 64];
        #endif
            return sum;
        }"""),
    "a write for each byte": (r"System calls: 20,\d{3}", (), """
        #include <unistd.h>
        int main(void) {
            static char bytes[20000];
        #ifdef MENDED
            return write(1, bytes, sizeof bytes) < 0;
        #else
            for (int i = 0; i < 20000; ++i)
                if (write(1, bytes + i, 1) < 0) return 1;
        #endif
        }"""),
}


@support.needs("gcc")
class Summary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.temporary_folder_of_class(cls)

    def summary(self, source, *options, build=()):
        """Of a program of the guides, or of one whose source is given, in a run without --plugin."""
        program = self.folder / "program"
        if source.endswith(".c"):
            path = PROGRAMS / source
        else:
            path = self.folder / "program.c"
            path.write_text(source)
        built = run(["gcc", "-O1", "-g", "-fno-inline", "-pthread", *build, path, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        out = self.folder / "out"
        ran = run([ASSAY, "-q", *options, f"--out={out}", "--", program])
        self.assertEqual(ran.returncode, 0, ran.stderr)
        shown = run([ASSAY, "summary", out])
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertLessEqual(len(shown.stdout.splitlines()), 40)
        self.assertNotRegex(shown.stdout, r" \n")
        self.assertLessEqual(max(map(len, shown.stdout.splitlines())), 120)
        return shown.stdout

    def cycles(self, text):
        return int(re.search(r"([\d,]+) estimated cycles", text)[1].replace(",", ""))

    def row(self, text, name):
        """The row of a function."""
        rows = [line for line in text.splitlines() if re.search(rf"%  {name}\b", line)]
        self.assertTrue(rows, text)
        return rows[0]

    def test_misses(self):
        text = self.summary("walk.c")
        self.assertRegex(text, r"\d % data cache misses")
        self.assertIn("in data cache misses", self.row(text, "by_columns"))
        self.assertIn("walk.c:", self.row(text, "by_columns"))
        self.assertIn("sum += matrix[i][j];", text)
        self.assertIn("--objects --types", text)

    def test_callers(self):
        text = self.summary("words.c", "--contexts")
        self.assertIn("The program rarely waits.", text)
        strcmp = next(line for line in text.splitlines() if "strcmp" in line)
        self.assertIn("of all instructions, called by find", strcmp)
        self.assertIn("called by count", self.row(text, "find"))

    def test_data(self):
        text = self.summary("particles.c", "--objects", "--types")
        self.assertRegex(text, r"by object\n +9\d\.\d %  heap main \(particles\.c:\d+\)")
        self.assertRegex(text, r"by member\n +9\d\.\d %  particle\.v\n")

    def test_false_sharing(self):
        text = self.summary("sharing.c", "--machine=zen4", "--schedule=fair:1k")
        self.assertRegex(text, r"False sharing: \d+ % of the level-1 data misses\n"
                               r"( +[45]\d\.\d %  sharing\.c:\d+ .*counters\.(first|second);\n){2}\n")
        self.assertIn("--plugin=effective_address", text)

    def test_mispredictions(self):
        text = self.summary("""
            static unsigned random_bits(void) {
                static unsigned x = 1;
                x ^= x << 13; x ^= x >> 17; x ^= x << 5;
                return x;
            }
            static int toss(int n) {
                volatile int heads = 0;
                for (int i = 0; i < n; ++i) if (random_bits() & 1) heads = heads + 1;
                return heads;
            }
            int main(void) { return toss(200000) == 0; }""")
        self.assertIn("in mispredicted branches", self.row(text, "toss"))

    def test_hash_table(self):
        """Its entries are all over the memory."""
        text = self.summary("""
            #include <stdlib.h>
            struct entry { unsigned long key, value; };
            static struct entry* table;
            enum { ENTRIES = 1 << 20 };
            static unsigned long lookup(unsigned long key) {
                struct entry* e = &table[key * 0x9E3779B97F4A7C15ul >> 44];
                if (e->key != key) e->key = key;
                return e->value;
            }
            int main(void) {
                unsigned long sum = 0;
                table = calloc(ENTRIES, sizeof *table);
                for (unsigned long i = 0; i < 50000; ++i) sum += lookup(i * 7919);
                return sum != 0;
            }""")
        self.assertRegex(self.row(text, "lookup"), r"9\d % in data cache misses")
        self.assertIn("if (e->key != key) e->key = key;", text)
        self.assertRegex(text, r"by member\n +\d+\.\d %  entry\.key\n")

    def test_allocation(self):
        text = self.summary("""
            #include <stdlib.h>
            static int churn(int n) {
                int sum = 0;
                for (int i = 0; i < n; ++i) {
                    int* block = malloc(16 + i % 500);
                    sum += block != 0;
                    free(block);
                }
                return sum;
            }
            int main(void) { return churn(50000) == 0; }""", "--contexts")
        self.assertRegex(text, r"\nAllocating and freeing memory takes [4-9]\d %\.")
        self.assertIn("called by churn", text)

    def test_translation(self):
        """One reference to each page of 64 MB, to one set of the caches or to many."""
        text = self.summary("""
            #include <stdlib.h>
            static int touch(char* pages) {
                int sum = 0;
                for (int round = 0; round < 4; ++round)
                    for (long i = 0; i < 16384; ++i) sum += pages[i * 4096 + i % 64 * 64];
                return sum;
            }
            int main(void) { return touch(calloc(16384, 4096)) != 0; }""", "--machine=zen4")
        self.assertIn("in page walks and TLB misses", self.row(text, "touch"))

    def test_start(self):
        self.assertRegex(self.summary("int main(void) { return 0; }"),
                         r"\nStarting takes [5-9]\d %: the dynamic linker")

    def test_instruction_cache(self):
        """A hundred functions of 1 KB in turn do not fit 32 KB."""
        body = "".join(f"x = x * {n * 2 + 3} + (x >> {n % 13 + 1});" for n in range(80))
        functions = "".join(f"static unsigned f{n}(unsigned x) {{ {body} return x + {n}; }}\n"
                            for n in range(100))
        calls = "".join(f"x = f{n}(x);" for n in range(100))
        text = self.summary(f"{functions} int main(void) {{ unsigned x = 1; "
                            f"for (int i = 0; i < 100; ++i) {{ {calls} }} return x == 0; }}")
        self.assertRegex(text, r"\n[3-6]\d % are instruction cache misses: ")
        self.assertIn("No function stands out.", text)

    def test_system_calls(self):
        text = self.summary("""
            #include <unistd.h>
            static void save(const char* text, int n) {
                for (int i = 0; i < n; ++i) write(2, text + i, 0);
            }
            int main(void) { save("abc", 20000); }""")
        self.assertRegex(text, r"System calls: 20,\d{3}\. The estimate leaves out what the kernel does\n"
                               r" +9\d\.\d %  program\.c:4 +for \(int i = 0;")
        self.assertIn("--plugin=syscalls --time", text)
        self.assertNotIn("rarely waits", text)

    def test_nothing_stands_out(self):
        """Forty functions that do the same."""
        functions = "".join(f"static int f{n}(int x) {{ for (volatile int i = 0; i < 20000; ++i) x += i; "
                            "return x; }\n" for n in range(40))
        calls = " + ".join(f"f{n}(1)" for n in range(40))
        text = self.summary(f"{functions} int main(void) {{ return ({calls}) == 0; }}")
        self.assertIn("No function stands out.", text)
        self.assertIn("The program rarely waits.", text)

    def test_mended_faults(self):
        """Without its fault, a program takes less, and the summary no longer names the fault."""
        for name, (sentence, options, source) in FAULTS.items():
            with self.subTest(name):
                bad, mended = (self.summary(source, *options, build=build) for build in ((), ("-DMENDED",)))
                self.assertRegex(bad, sentence)
                self.assertNotRegex(mended, sentence)
                if name == "a write for each byte":
                    continue  # estimated cycles leave out what the kernel does
                self.assertLess(self.cycles(mended), 0.8 * self.cycles(bad))

    def test_no_instructions(self):
        out = self.folder / "reuse"
        self.assertEqual(profile(["true"], "-q", "--contexts", plugin="reuse", out=out).returncode, 0)
        shown = run([ASSAY, "summary", out])
        self.assertIn("Refs (data references)", shown.stdout)
        self.assertIn("Functions by Refs", shown.stdout)
        self.assertNotIn("  , called by", shown.stdout)

    def test_incomplete(self):
        """Also of a profile without instructions."""
        for plugin in ("cache", "reuse"):
            out = self.folder / plugin
            profile(["sh", "-c", "kill -TERM $$"], "-q", plugin=plugin, out=out)
            shown = run([ASSAY, "summary", out])
            self.assertIn("INCOMPLETE, not the counts of a whole run: ", shown.stdout)

    def test_several_files(self):
        outs = [self.folder / name for name in ("true", "false")]
        for out in outs:
            profile([out.name], "-q", out=out)
        self.assertTrue(run([ASSAY, "summary", *outs]).stdout.startswith("true and 1 other command\n"))

    def test_long_command(self):
        """What is offered as the next command is no other command."""
        out = self.folder / "long"
        profile(["true", "x" * 80], "-q", out=out)
        self.assertIn("-- true ...    ", run([ASSAY, "summary", out]).stdout)

    def test_newest_profile(self):
        folder = support.temporary_folder(self)
        ran = run([ASSAY, "-q", "true"], cwd=folder)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        shown = run([ASSAY, "summary"], cwd=folder)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("estimated cycles = Ir + 10 * (I1mr + D1mr + D1mw)", shown.stdout)


if __name__ == "__main__":
    unittest.main()
