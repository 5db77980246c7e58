#!/usr/bin/env python3
"""For authors of profilers: template, examples and tutorial do what they say, with an assay that has
been installed, and the examples find the answers that are known."""

import os
import re
import shutil
import unittest

import recipes
import support
from support import BUILD, ROOT, profile, read_events, run


@support.needs("meson", "pkg-config")
class ForAuthors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = support.temporary_folder_of_class(cls)
        cls.environment = recipes.install(cls.shared / "root")

    def follow(self, document, copy=True):
        """Follows a README in a copy of its folder, or another document in an empty one."""
        folder = self.shared / document.parent.name
        shutil.rmtree(folder, ignore_errors=True)  # of an attempt before
        if copy:
            shutil.copytree(document.parent, folder)
        else:
            folder.mkdir()
        return folder, recipes.follow(self, document, folder, self.environment)

    def counts(self, path, function):
        events = read_events(path)
        self.assertEqual(events.totals(), events.summary)
        return dict(zip(events.events, events.functions[function]))

    def test_installed_files(self):
        for name in ("profiler.hpp", "context_rows.hpp", "series.hpp", "text.hpp", "vprofiler.h", "client.h",
                     "cache_policy.h"):
            self.assertTrue(list(self.shared.rglob(f"include/assay/{name}")), name)
        shared = next(self.shared.rglob("share/assay"))
        self.assertTrue((shared / "template" / "my_profiler.cpp").exists())
        self.assertTrue((shared / "examples" / "replacement" / "policy.c").exists())
        for machine in (ROOT / "plugins" / "machine" / "machines").glob("*.yaml"):
            self.assertTrue((shared / "machines" / machine.name).exists(), machine.name)

    def test_headers_of_the_source_tree(self):
        """Of an assay that has not been installed, pkg-config knows the C++ header as well."""
        environment = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled")}
        library = self.shared / "uninstalled.so"
        built = run(["sh", "-c", "g++ -std=c++20 -shared -fPIC $(pkg-config --cflags assay) "
                                 f"{ROOT / 'sdk' / 'template' / 'my_profiler.cpp'} -o {library}"],
                    env=environment)
        self.assertEqual((built.returncode, built.stderr), (0, ""))
        self.assertEqual(profile(["true"], "-q", plugin=library).returncode, 0)

    def test_classes_of_one_name(self):
        """In one run, and without -fvisibility=hidden, which one can forget."""
        source = (ROOT / "sdk" / "template" / "my_profiler.cpp").read_text()
        environment = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled")}
        libraries = []
        for name in ("first", "second"):
            changed = (source.replace('kName = "my_profiler"', f'kName = "{name}"')
                       .replace('{"Refs",', f'{{"{name}_refs",').replace("/ Refs", f"/ {name}_refs")
                       .replace('{"Splits",', f'{{"{name}_splits",')
                       .replace('"Splits /', f'"{name}_splits /')
                       .replace("namespace {", "").replace("}  // namespace", ""))
            (self.shared / f"{name}.cpp").write_text(changed)
            libraries.append(self.shared / f"{name}.so")
            built = run(["sh", "-c", "g++ -std=c++20 -shared -fPIC $(pkg-config --cflags assay) "
                                     f"{self.shared / name}.cpp -o {libraries[-1]}"],
                        env=environment)
            self.assertEqual((built.returncode, built.stderr), (0, ""))
        out = self.shared / "both.out"
        ran = profile(["true"], "-q", f"--out={out}", plugin=",".join(map(str, libraries)))
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        events = read_events(out)
        self.assertEqual(events.events,
                         ["first_refs", "first_splits", "second_refs", "second_splits"])
        self.assertGreater(events.summary[0], 0)
        self.assertEqual(events.summary[:2], events.summary[2:])

    @support.needs("cmake")
    def test_template(self):
        folder, outputs = self.follow(ROOT / "sdk" / "template" / "README.md")
        self.assertTrue(all("keeps to the rules" in text for line, text in outputs.items()
                            if "check-plugin" in line))
        program = folder / "misfit.c"
        program.write_text("struct __attribute__((packed)) r { char c[4]; double v; };\n"
                           "static volatile struct r records[100000] __attribute__((aligned(64)));\n"
                           "static double add_up(void) { double sum = 0;\n"
                           "  for (int i = 0; i < 100000; ++i) sum += records[i].v; return sum; }\n"
                           "int main(void) { return add_up() != 0; }\n")
        for command in ("cc -O1 -g -fno-inline misfit.c -o misfit",
                        "assay -q --plugin=./my_profiler.so --out=line -- ./misfit",
                        "assay -q --plugin=build/my_profiler.so --line=32 --out=half -- ./misfit"):
            result = run(["sh", "-c", command], cwd=folder, env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
        # 12 * i + 4 is above 56 modulo 64 for one in 16 of all i, 24 modulo 32 for one in 8.
        self.assertEqual(self.counts(folder / "line", "add_up")["Splits"], 100000 // 16)
        self.assertEqual(self.counts(folder / "half", "add_up")["Splits"], 100000 // 8)
        refused = run(["sh", "-c", "assay --plugin=./my_profiler.so --line=3 -- ./misfit"],
                      cwd=folder, env=self.environment)
        self.assertIn("my_profiler: --line=3: use a power of two", refused.stderr)

    def test_tutorial(self):
        folder, outputs = self.follow(ROOT / "docs" / "guides" / "write-a-profiler.md", copy=False)
        hot = [self.counts(folder / "hot.out", name)["Ir"] for name in ("by_rows", "by_columns")]
        self.assertEqual(hot[0], hot[1])
        for name, jumps in (("by_rows", 32768), ("by_columns", 262144)):
            counts = self.counts(folder / "strides.out", name)
            self.assertIn(counts["Refs"] - 262144, range(3), name)
            self.assertIn(counts["Jumps"] - jumps, range(3), name)
        self.assertTrue(any("addsd" in text for text in outputs.values()))

    def test_profiler_of_the_reference(self):
        """The one in C that abi.md shows in full."""
        [source] = re.findall(r"^```c\n(.*?)^```$", (ROOT / "docs" / "reference" / "abi.md").read_text(),
                              re.MULTILINE | re.DOTALL)
        folder = self.shared / "reference"
        folder.mkdir()
        (folder / "splits.c").write_text(source)
        for command in ("cc -std=c99 -O2 -Wall -Wextra -Werror -shared -fPIC "
                        "$(pkg-config --cflags assay) splits.c -o splits.so",
                        "assay check-plugin ./splits.so"):
            result = run(["sh", "-c", command], cwd=folder, env=self.environment)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "./splits.so: keeps to the rules\n")

    def test_program_of_used_bytes(self):
        folder, _ = self.follow(ROOT / "examples" / "display_list" / "README.md")
        self.assertIn("build", (folder / "list.report").read_text())

    def example(self, name):
        folder, outputs = self.follow(ROOT / "examples" / name / "README.md")
        libraries = list(folder.glob("*.so"))
        self.assertEqual(len(libraries), 1)
        checked = run([next(self.shared.rglob("bin/assay")), "check-plugin", libraries[0]])
        self.assertEqual(checked.returncode, 0, checked.stdout)
        return folder, outputs

    def test_replacement(self):
        """No profilers but a policy and a prefetcher, which the cache profiler loads."""
        source = ROOT / "examples" / "replacement" / "policy.c"
        self.assertLess(len(source.read_text().splitlines()), 100)
        folder, _ = self.follow(ROOT / "examples" / "replacement" / "README.md")
        for policy, hot in (("lip", 4), ("lru", 400)):
            # The returns of the functions read the stack, in a line that is always there.
            out = folder / f"{policy}.out"
            self.assertIn(self.counts(out, "use_hot")["D1mr"] - hot, (0, 1), policy)
            self.assertIn(self.counts(out, "scan")["D1mr"] - 800, (0, 1), policy)
        own, next_line = (self.counts(folder / name, "read_records")
                          for name in ("pairs.out", "next.out"))
        self.assertIn(own["D1mr"] - 1000, (0, 1))
        self.assertIn(own["D1pf"] - 1000, (0, 1))
        self.assertEqual(own["D1pfu"], 1000)
        self.assertIn(next_line["D1mr"] - 2000, (0, 1))

    def test_allocation_misses(self):
        source = ROOT / "examples" / "allocation_misses" / "allocation_misses.cpp"
        self.assertLess(len(source.read_text().splitlines()), 60)
        folder, _ = self.example("allocation_misses")
        # With MALLOC_PERTURB_ set, libc itself fetches each line of a block.
        result = run(["sh", "-c", "MALLOC_PERTURB_=0 assay --plugin=./allocation_misses.so "
                      "--objects --out=again.out -- ./sites"], cwd=folder, env=self.environment)
        found = {name: int(count) for count, name in
                 re.findall(r"== (\d+) (\w+):\d+$", result.stderr, re.M)}
        for site, misses in (("small", 128), ("large", 10240), ("once", 192)):
            self.assertIn(found[site] - misses, range(-4, 4), found)  # the allocator's

    def test_silent_stores(self):
        folder, _ = self.example("silent_stores")
        self.assertEqual(self.counts(folder / "fill.out", "fill"), {"Stores": 3000, "Silent": 1000})

    def test_zero_values(self):
        folder, _ = self.example("zero_values")
        counts = self.counts(folder / "sparse.out", "add_up")
        self.assertEqual(counts["Zeros"], 900)
        self.assertIn(counts["Loads"] - 1000, (0, 1))  # the return
        # Whose lower half is zero, and which are not.
        (folder / "vectors.c").write_text(
            "#include <emmintrin.h>\n"
            "static volatile long long pairs[100][2] __attribute__((aligned(16)));\n"
            "static __m128i sum;\n"
            "static void add_pairs(void) { for (int i = 0; i < 100; ++i)\n"
            "  sum = _mm_add_epi64(sum, *(const __m128i*)pairs[i]); }\n"
            "int main(void) { for (int i = 0; i < 100; ++i) pairs[i][1] = 1;\n"
            "  add_pairs(); return 0; }\n")
        for command in ("cc -O1 -g -fno-inline vectors.c -o vectors",
                        "assay -q --plugin=./zero_values.so --out=vectors.out -- ./vectors"):
            result = run(["sh", "-c", command], cwd=folder, env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(self.counts(folder / "vectors.out", "add_pairs")["Loads"], 10)

    def test_load_latency(self):
        """A load that other processes interrupt takes as long as thousands: not in each run."""
        for _ in range(5):
            folder, _ = self.example("load_latency")
            near, far = (self.counts(folder / "chase.out", name)
                         for name in ("follow_near", "follow_far"))
            self.assertEqual((near["Loads"], far["Loads"]), (20000, 20000))
            if far["Ticks"] > 1.5 * near["Ticks"]:
                return
        self.fail(f"a load from far takes as long as one from near: {near}, {far}")

    def test_sample_of_dcpi(self):
        """The program prints the addresses that the profiler must find."""
        folder, outputs = self.example("vp_ldq_addr")
        listed = next(text for line, text in outputs.items() if "assay list" in line)
        ran = run([next(self.shared.rglob("bin/assay")), "-q", f"--plugin={folder}/vp-ldq-addr.so",
                   "--out=/dev/null", "--", folder / "counters"])
        often, seldom, total = ran.stdout.split()
        self.assertEqual(int(total), 100 * (3 * 3 + 5))
        self.assertIn(f"addr: {often} (100.0%) of 300\n", listed)
        self.assertIn(f"addr: {seldom} (100.0%) of 100\n", listed)


if __name__ == "__main__":
    unittest.main()
