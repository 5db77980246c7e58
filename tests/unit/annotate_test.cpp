// assay annotate: the same totals and functions as cg_annotate, and sources with their counts.
#include "tools/annotate.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace assay::annotate;
using assay::Error;

namespace {

const std::string kEvents =
    "desc: D1 cache: 32768 B\n"
    "cmd: ./prog\n"
    "events: Ir Dr\n"
    "fl=#! version 1\n"
    "fl=#! event Ir unit=instructions \"instructions executed\"\n"
    "fl=#! derived \"reads by instruction\" unit=% = Dr / Ir\n";

std::string data(const std::string& name) {
    const char* folder = std::getenv("ASSAY_TEST_DATA");
    REQUIRE(folder);
    return std::string(folder) + "/" + name;
}

std::string annotate_with(std::vector<std::string> arguments) {
    std::vector<const char*> argv = {"annotate"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    const auto options = parse_options(static_cast<int>(argv.size()), argv.data());
    REQUIRE(options);
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const stream = open_memstream(&text, &size);
    Output output(stream);
    try {
        annotate(*options, output);
    } catch (...) {
        std::fclose(stream);
        std::free(text);
        throw;
    }
    std::fclose(stream);
    const std::string result(text, size);
    std::free(text);
    return result;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// A source of 40 numbered lines and a profile newer than it.
struct Example {
    TemporaryFolder folder;
    std::string profile;

    explicit Example(const std::string& lines, const std::string& summary) {
        std::string source;
        for (int i = 1; i <= 40; ++i) source += "source " + std::to_string(i) + ";\n";
        const std::string path = folder.write("a.c", source);
        std::filesystem::last_write_time(
            path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
        profile = folder.write("out", kEvents + "fl=" + path + "\nfn=f\n" + lines +
                                          "fl=gone.c\nfn=g\n1 1 0\nsummary: " + summary + "\n");
    }
};

}  // namespace

TEST_CASE("annotate: totals and functions are cg_annotate's") {
    const std::string shown =
        annotate_with({"--auto=no", "--show-percs=no", data("cachegrind.out")});
    CHECK(contains(shown,
                   "613     2     2   2     1     1   1     1     1  101   10   0    0  "
                   "PROGRAM TOTALS\n"));
    CHECK(contains(shown,
                   "606     0     0   1     0     0   0     0     0  101   10   0    0  "
                   "/src/leaf.c:sum_of_squares\n"
                   "  7     2     2   1     1     1   1     1     1    0    0   0    0  "
                   "/src/leaf.c:(below main)\n"));
}

TEST_CASE("annotate: percentages, derived figures, descriptions, incompleteness") {
    const std::string shown = annotate_with({"--auto=no", data("version-1.events")});
    CHECK(contains(shown, "25 (100.0%)   5 (100.0%)     1 (100.0%)  PROGRAM TOTALS\n"));
    CHECK(contains(shown, "19 (76.0%)   4 (80.0%)     1 (100.0%)  prog.c:main\n"));
    CHECK(contains(shown, "D1 read miss rate     20.00%\n"));
    CHECK(contains(shown, "reads by instruction  0.200\n"));
    CHECK(contains(shown, "Ir    instructions executed\n"));
    CHECK(contains(shown, "D1 cache:         49152 B, 64 B, 12-way associative\n"));
    CHECK(contains(shown, "INCOMPLETE, not the counts of a whole run: " + data("version-1.events") +
                              ": ended by SIGKILL\n"));
}

TEST_CASE("annotate: derived figures that are whole look like counts") {
    const TemporaryFolder folder;
    const auto figure = [&](const std::string& formula) {
        const std::string shown = annotate_with(
            {"--auto=no",
             folder.write("out", kEvents + "fl=#! derived \"figure\" = " + formula +
                                     "\nfl=x\nfn=f\n1 1127896 1000\nsummary: 1127896 1000\n")});
        const std::size_t at = shown.find("\nfigure") + 1;
        return shown.substr(at, shown.find('\n', at) - at);
    };
    CHECK(figure("Ir + Dr") == "figure                1,128,896");
    CHECK(figure("Dr - Ir") == "figure                -1,126,896");
    CHECK(figure("Dr - 1000") == "figure                0");
    CHECK(figure("Dr / 3") == "figure                333.333");
    CHECK(figure("Ir * Ir * Ir").ends_with(".000"));  // not exact
}

TEST_CASE("annotate: a source with context, gaps, unknown lines and lines past its end") {
    const Example example("0 2 0\n1 40 4\n20 50 6\n22 6 0\n99 1 1\n", "100 11");
    const std::string shown = annotate_with({"--context=2", example.profile});
    CHECK(contains(shown,
                   "\n 2  (2.0%)   0          <unknown line>\n"
                   "\n40 (40.0%)   4 (36.4%)  source 1;\n"
                   " .           .          source 2;\n"
                   " .           .          source 3;\n"
                   "-- line 18 ----------------------------------------\n"
                   " .           .          source 18;\n"
                   " .           .          source 19;\n"
                   "50 (50.0%)   6 (54.5%)  source 20;\n"
                   " .           .          source 21;\n"
                   " 6  (6.0%)   0          source 22;\n"
                   " .           .          source 23;\n"
                   " .           .          source 24;\n"
                   "-- line 25 ----------------------------------------\n"));
    CHECK(contains(shown, "1  (1.0%)   1  (9.1%)  <line 99, past the end>\n"));
    CHECK(contains(shown, "has 40 lines, but there are counts of later ones"));
    CHECK(contains(shown, "99 (99.0%)  11 (100.0%)  in the source lines above\n"));
    CHECK(contains(shown, "Sources not found (--include=DIR looks below DIR, too)\n"));
    CHECK(contains(shown, "\n  gone.c\n"));
    CHECK(!contains(shown, "is newer than"));
}

TEST_CASE("annotate: a source changed after the profile is warned of") {
    const Example example("1 99 0\n", "100 0");
    std::filesystem::last_write_time(
        example.folder.file("a.c"),
        std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
    CHECK(contains(annotate_with({example.profile}), "a.c is newer than " + example.profile));
}

TEST_CASE("annotate: sources below an include folder, and sources named") {
    const Example example("1 99 0\n", "100 0");
    std::filesystem::create_directory(example.folder.file("moved"));
    example.folder.write("moved/gone.c", "found;\n");
    const std::string with_include =
        annotate_with({example.profile, "-I", example.folder.file("moved")});
    CHECK(contains(with_include, "  found;\n"));
    CHECK(!contains(with_include, "Sources not found"));
    const std::string named = annotate_with({"--auto=no", example.profile, "a.c"});
    CHECK(contains(named, "source 1;"));
    CHECK_THROWS_WITH_AS(annotate_with({example.profile, "b.c"}), doctest::Contains("b.c"), Error);
    CHECK_THROWS_WITH_AS(annotate_with({example.profile, "gone.c"}), doctest::Contains("gone.c"),
                         Error);
}

TEST_CASE("annotate: sorting, choosing and thresholds") {
    const TemporaryFolder folder;
    const std::string profile = folder.write(
        "out",
        kEvents +
            "fl=x\nfn=many\n1 900 10\nfn=reads\n1 99 80\nfn=few\n1 1 10\nsummary: 1000 100\n");
    const std::string plain = annotate_with({"--auto=no", profile});
    CHECK(plain.find("x:many") < plain.find("x:reads"));
    CHECK(contains(plain, "x:few"));
    const std::string by_reads = annotate_with({"--auto=no", "--sort=Dr,Ir", "--show=Dr", profile});
    CHECK(by_reads.find("x:reads") < by_reads.find("x:many"));
    CHECK(contains(by_reads, "80 (80.0%)  x:reads\n"));
    CHECK(!contains(annotate_with({"--auto=no", "--threshold=5", profile}), "x:few"));
    CHECK(contains(annotate_with({"--auto=no", "--sort=Ir:20,Dr:10", profile}), "x:few"));
    CHECK_THROWS_WITH_AS(annotate_with({"--sort=DR", profile}),
                         doctest::Contains("did you mean Dr?"), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--threshold=99", profile}), doctest::Contains("0 to 20"),
                         Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--nonsense", profile}), doctest::Contains("--nonsense"),
                         Error);
}

TEST_CASE("annotate: several files are added up if their events agree") {
    const Example one("1 99 0\n", "100 0"), other("1 98 1\n", "99 1");
    const std::string shown = annotate_with({"--auto=no", one.profile, other.profile});
    CHECK(contains(shown, "199 (100.0%)   1 (100.0%)  PROGRAM TOTALS\n"));
    CHECK(contains(shown, " 2  (1.0%)   0           gone.c:g\n"));
    CHECK_THROWS_WITH_AS(annotate_with({one.profile, data("cachegrind.out")}),
                         doctest::Contains("its events are not those"), Error);
}

TEST_CASE("annotate: several files made differently are added up with a warning") {
    const TemporaryFolder folder;
    const auto file = [&](const char* name, const std::string& descriptions) {
        return folder.write(
            name, descriptions + "cmd: ./prog\nevents: Ir\nfl=x\nfn=f\n1 5\n" + "summary: 5\n");
    };
    const std::string first = file("first", "desc: I1 cache: small\ndesc: D1 cache: small\n");
    const std::string same = file("same", "desc: I1 cache: small\ndesc: D1 cache: small\n");
    const std::string other = file("other", "desc: I1 cache: small\ndesc: D1 cache: large\n");
    const std::string none = file("none", "desc: LL cache: huge\n");
    const std::string warning = "Warning: counts are added up that were made differently: ";

    const std::string equal = annotate_with({"--auto=no", first, same});
    CHECK(!contains(equal, "Warning"));
    CHECK(contains(equal, "D1 cache:         small\n"));

    const std::string shown = annotate_with({"--auto=no", first, same, other});
    CHECK(contains(shown,
                   warning + "D1 cache: \"small\" in " + first + ", \"large\" in " + other + "\n"));
    CHECK(contains(shown, "I1 cache:         small\n"));
    CHECK(!contains(shown, "D1 cache:         "));
    CHECK(contains(shown, "15 (100.0%)  PROGRAM TOTALS\n"));

    const std::string missing = annotate_with({"--auto=no", first, none});
    CHECK(contains(missing, "D1 cache: \"small\" in " + first + ", not given in " + none + "\n"));
    CHECK(contains(missing, "LL cache: not given in " + first + ", \"huge\" in " + none + "\n"));
    CHECK(!contains(missing, "cache:         "));
}

TEST_CASE("annotate: colours only on demand when there is no terminal") {
    const Example example("1 95 0\n2 4 0\n", "100 0");
    CHECK(!contains(annotate_with({example.profile}), "\033"));
    const std::string shown = annotate_with({"--color=always", example.profile});
    CHECK(contains(shown, "\033[1;31m95 (95.0%)\033[0m"));
    CHECK(contains(shown, "\033[33m 4  (4.0%)\033[0m"));
}
