// assay annotate: the same totals and functions as cg_annotate, and sources with their counts.
#include "tools/annotate/annotate.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tests/unit/temporary_folder.h"
#include "tools/profile/profile.h"
#include "tools/sources/source_finder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace annotate_test {

using namespace assay;
using namespace assay::annotate;

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

std::string annotate_briefly(std::vector<std::string> arguments) {
    std::vector<const char*> argv = {"annotate"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    const auto options = parse_options(static_cast<int>(argv.size()), argv.data());
    REQUIRE(options);
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const stream = open_memstream(&text, &size);
    Output output(stream);
    try {
        annotate::annotate(*options, output);
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

std::string annotate_with(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--full");
    return annotate_briefly(std::move(arguments));
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
                   "\n< 613     2     2   2     1     1   1     1     1  101   10   0    0  "
                   "/src/leaf.c:\n"
                   "  606     0     0   1     0     0   0     0     0  101   10   0    0  "
                   "  sum_of_squares\n"
                   "    7     2     2   1     1     1   1     1     1    0    0   0    0  "
                   "  (below main)\n\n"));
    CHECK(contains(shown,
                   "\n> 606     0     0   1     0     0   0     0     0  101   10   0    0  "
                   "sum_of_squares:/src/leaf.c\n"));
}

TEST_CASE("annotate: percentages, derived figures, descriptions, incompleteness") {
    const std::string shown = annotate_with({"--auto=no", data("version-1.events")});
    CHECK(contains(shown, "25 (100.0%)   5 (100.0%)     1 (100.0%)  PROGRAM TOTALS\n"));
    CHECK(contains(
        shown, "< 19 (76.0%, 76.0%)    4 (80.0%, 80.0%)      1 (100.0%, 100.0%)  prog.c:main\n"));
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
    CHECK(contains(shown, "has 40 lines, but the profile has counts of later lines"));
    CHECK(contains(shown, "97 (97.0%)  11 (100.0%)  annotated: in the source lines above\n"));
    CHECK(contains(shown,
                   "Sources not found (--include=DIR tries the ends of their names in DIR)\n"));
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
    CHECK(plain.find("many\n") < plain.find("reads\n"));
    CHECK(contains(plain, "few\n"));
    const std::string by_reads = annotate_with({"--auto=no", "--sort=Dr,Ir", "--show=Dr", profile});
    CHECK(by_reads.find("  reads\n") < by_reads.find("  many\n"));
    CHECK(contains(by_reads, " 80  (80.0%)            reads\n"));
    CHECK(!contains(annotate_with({"--auto=no", "--threshold=5", profile}), "few\n"));
    CHECK(contains(annotate_with({"--auto=no", "--sort=Ir:20,Dr:10", profile}), "few\n"));
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
    CHECK(contains(shown, "gone.c:g\n"));
    CHECK_THROWS_WITH_AS(annotate_with({one.profile, data("cachegrind.out")}),
                         doctest::Contains("differ from those of"), Error);
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

TEST_CASE("annotate: a difference, by function and by line") {
    const TemporaryFolder folder;
    const auto file = [&](const char* name, const std::string& lines) {
        return folder.write(name, kEvents + lines);
    };
    const std::string source = folder.write("a.c", "one;\ntwo;\n");
    const std::string old = file("old", "fl=" + source + "\nfn=f.1\n1 50 5\n2 20 1\nfl=v1/b.c\n" +
                                            "fn=g\n1 7 0\nsummary: 77 6\n");
    const std::string now = file("new", "fl=" + source + "\nfn=f.2\n1 40 5\n2 20 1\nfl=v2/b.c\n" +
                                            "fn=g\n1 1500 2\nsummary: 1560 8\n");
    const std::string shown = annotate_with(
        {"--diff", "--mod-filename=s/^v[0-9]/vN/", "--mod-funcname", "s,\\.\\d+$,,", old, now});
    CHECK(contains(shown, "1,483 (100.0%)   2 (100.0%)  PROGRAM TOTALS\n"));
    CHECK(contains(shown, "< 1,493 (100.7%, 100.7%)   2 (100.0%, 100.0%)  vN/b.c:g\n"));
    CHECK(contains(shown, "<   -10  (-0.7%, 100.0%)   0                   " + source + ":f\n"));
    CHECK(contains(shown, "-10 (-0.7%)   0  one;\n"));
    CHECK(!contains(shown, "reads by instruction"));
    CHECK(contains(shown, "Old:              " + old + "\n"));

    const std::string other =
        folder.write("other",
                     "desc: D1 cache: big\ncmd: ./new\nevents: Ir Dr\nfl=a.c\nfn=f\n1 1 1\n"
                     "summary: 1 1\n");
    const std::string in_order = annotate_with({"--diff", old, other});
    CHECK(contains(in_order, "Command:          ./prog\n                  ./new\n"));
    CHECK(contains(in_order, "\"32768 B\" in " + old + ", \"big\" in " + other + "\n"));

    // What cg_diff writes is read, too.
    const std::string difference =
        file("difference", "fl=x\nfn=f\n0 -3 0\nfl=y\nfn=g\n0 1 0\nsummary: -2 0\n");
    CHECK(contains(annotate_with({difference}), "-2 (100.0%)   0  PROGRAM TOTALS\n"));
    CHECK_THROWS_WITH_AS(annotate_with({old, difference}),
                         doctest::Contains(("and " + old + " is a profile").c_str()), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--diff", difference, old}),
                         doctest::Contains("only profiles can be compared"), Error);
    const std::string large =
        file("large", "fl=x\nfn=f\n0 9223372036854775808 -3\nsummary: 9223372036854775808 -3\n");
    CHECK_THROWS_WITH_AS(annotate_with({large}), doctest::Contains("exceeds 63 bits"), Error);
    const std::string theirs = folder.write(
        "theirs", "desc: Files compared: a; b\ncmd: a; b\nevents: Ir Dr\nfl=x\nfn=f\n0 -3 0\n" +
                      std::string("fl=y\nfn=g\n0 1 0\nsummary: -2 0\n"));
    CHECK(contains(annotate_with({theirs}), "-2 (100.0%)   0  PROGRAM TOTALS\n"));
    CHECK_THROWS_WITH_AS(annotate_with({theirs, old}),
                         doctest::Contains("combine either profiles or differences"), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--diff", theirs, old}),
                         doctest::Contains("only profiles can be compared"), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--diff", old, theirs}),
                         doctest::Contains("combine either profiles or differences"), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--diff", old, folder.file("none")}),
                         doctest::Contains("cannot open"), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--diff", old, source}),
                         doctest::Contains((source + ":1: ").c_str()), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--diff", old}), doctest::Contains("not 1"), Error);
    CHECK_THROWS_WITH_AS(annotate_with({"--diff", "--show=reads by instruction", old, now}),
                         doctest::Contains("calculated from counts"), Error);
}

TEST_CASE("annotate: of two profiles with equal totals, only what differs is shown") {
    const TemporaryFolder folder;
    const auto file = [&](const char* name, const std::string& f, const std::string& g) {
        return folder.write(name, kEvents + "fl=x\nfn=f\n1 " + f + " 1\nfl=y\nfn=g\n1 " + g +
                                      " 1\nfl=z\nfn=same\n1 20 1\nsummary: 100 3\n");
    };
    const std::string old = file("old", "50", "30"), now = file("new", "49", "31");
    const std::string shown = annotate_with({"--diff", "--auto=no", "--threshold=20", old, now});
    CHECK(contains(shown, "< -1 (n/a, n/a)   0  x:f\n"));
    CHECK(contains(shown, "<  1 (n/a, n/a)   0  y:g\n"));
    CHECK(!contains(shown, "same"));
    CHECK(contains(annotate_with({"--diff", "--auto=no", "--threshold=0", old, now}), "z:same\n"));
}

TEST_CASE("annotate: derived figures as columns") {
    const Example example("1 90 9\n2 9 0\n", "100 9");
    const std::string shown = annotate_with({"--show=Dr,reads by instruction", example.profile});
    CHECK(contains(shown, "9 (100.0%)                 9.00%  PROGRAM TOTALS\n"));
    CHECK(contains(shown, "9 (100.0%)                10.00%  source 1;\n"));
    CHECK(contains(shown, "0                          0.00%  source 2;\n"));
}

TEST_CASE("annotate: where functions were inlined, from several files") {
    const TemporaryFolder folder;
    const std::string old = folder.write(
        "old", kEvents +
                   "fl=#! site 1 a.c main 12\nfl=#! site 2 b.h grow 7@1\n"
                   "fl=a.c\nfn=main\n12 5 0\n"
                   "fl=b.h\nfn=area\n3 20 2\n3 30 4\n4 1 0\n4 10 1\nfl=#! sites 1 2 0 2\n"
                   "fl=b.h\nfn=grow\n7 4 0\nfl=#! sites 1\nsummary: 70 7\n");
    // The same sites with other numbers.
    const std::string now = folder.write(
        "now", kEvents +
                   "fl=#! site 1 a.c f 9\nfl=#! site 2 a.c main 12\n"
                   "fl=#! site 3 b.h grow 7@2\n"
                   "fl=b.h\nfn=area\n3 40 2\n3 90 4\nfl=#! sites 2 3\nsummary: 130 6\n");
    const std::string plain =
        folder.write("plain", kEvents + "fl=b.h\nfn=area\n3 2 1\nsummary: 2 1\n");
    const std::string heading = "Inlined functions and where they were inlined";
    const std::string one = annotate_with({"--auto=no", old});
    CHECK(contains(one, heading));
    CHECK(contains(one, "-- Functions including code that was inlined into them\n" +
                            std::string(80, '-') +
                            "\n  Ir          Dr           file:function\n"
                            "  69 (98.6%)   7 (100.0%)  a.c:main\n\n"));
    CHECK(contains(one,
                   "  40 (57.1%)   5 (71.4%)  b.h:area, in grow at line 7\n"
                   "  20 (28.6%)   2 (28.6%)  b.h:area, in main at a.c:12\n"
                   "   4  (5.7%)   0          b.h:grow, in main at a.c:12\n\n"));
    CHECK(annotate_with({"--auto=no", "--threshold=20", old})
              .ends_with("area, in main at a.c:12\n\n"));
    CHECK(contains(annotate_with({"--auto=no", plain, old, now}),
                   "  130 (64.4%)   9 (64.3%)  b.h:area, in grow at line 7\n"
                   "   60 (29.7%)   4 (28.6%)  b.h:area, in main at a.c:12\n"));
    CHECK(contains(annotate_with({"--auto=no", "--diff", old, now}),
                   "  50 (83.3%)  -1 (100.0%)  b.h:area, in grow at line 7\n"));
    CHECK(contains(annotate_with({"--auto=no", "--mod-funcname=s/main/start/", old}),
                   "b.h:grow, in start at a.c:12\n"));
    CHECK(contains(annotate_with({"--auto=no", "--diff", old, now}),
                   "  61 (101.7%)  -1 (100.0%)  a.c:main\n"));
    CHECK(!contains(annotate_with({"--auto=no", plain}), heading));
}

TEST_CASE("annotate: sources that moved, and several that have become one") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.file("new"));
    std::filesystem::create_directory(folder.file("old"));
    folder.write("new/a.c", "moved;\n");
    const std::string profile =
        folder.write("out", kEvents + "fl=/gone/tree/a.c\nfn=f\n1 5 0\nsummary: 5 0\n");
    CHECK(contains(annotate_with({profile}), "Sources not found"));
    CHECK(
        contains(annotate_with({"--map=/gone/tree=" + folder.file("new"), profile}), "  moved;\n"));
    CHECK(contains(annotate_with({"--map=/gone=" + folder.file("none"),
                                  "--map=/gone/tree=" + folder.file("new"), profile}),
                   "  moved;\n"));
    CHECK(contains(annotate_with({"--map=/gone/tr=" + folder.file("new"), profile}),
                   "Sources not found"));
    CHECK_THROWS_WITH_AS(annotate_with({"--map=x", profile}), doctest::Contains("--map=x"), Error);

    folder.write("old/a.c", "another;\n");
    const std::string both =
        folder.write("both", kEvents + "fl=" + folder.file("old/a.c") + "\nfn=f\n1 5 0\nfl=" +
                                 folder.file("new/a.c") + "\nfn=f\n1 6 0\nsummary: 11 0\n");
    const std::string shown = annotate_with({"--mod-filename=s,/(old|new)/,/N/,", both});
    CHECK(contains(shown, "< 11 (100.0%, 100.0%)   0  " + folder.file("N/a.c") + ":f\n"));
    CHECK(contains(shown, "several different sources"));
    CHECK(!contains(shown, "moved;"));
}

TEST_CASE("annotate: whatever bytes a source has, the terminal gets text") {
    CHECK(printable("a\tb \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80") ==
          "a\tb \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
    CHECK(printable("\033[2J\x9b\xe9\xc2\x9b\x7f") == "\\x1b[2J\\x9b\\xe9\\xc2\\x9b\\x7f");
    CHECK(printable("\xED\xA0\x80\xC0\xAF\xF5") == "\\xed\\xa0\\x80\\xc0\\xaf\\xf5");
    CHECK(printable("a\nb\r") == "a\\x0ab\\x0d");
    CHECK(printable_lines("a\nb\r\t\033[2J\n") == "a\nb\\x0d\t\\x1b[2J\n");
    CHECK(is_utf8(""));
    CHECK(is_utf8("a\n\xC3\xA9 \xE2\x82\xAC"));
    CHECK(!is_utf8("a\xE9"));
    CHECK(!is_utf8("\xE2\x82"));
    const TemporaryFolder folder;
    const std::string wide(
        "\xFF\xFE"
        "a\0;\0\n\0\xAC\x20\x3D\xD8\x00\xDE\r\0\n\0",
        18);
    CHECK(read_source(folder.write("wide.c", wide)) == "a;\n\xE2\x82\xAC\xF0\x9F\x98\x80\r\n");
    CHECK(split_lines("a\r\nb\n\nc") == std::vector<std::string_view>{"a", "b", "", "c"});
}

TEST_CASE("annotate: a profile that can be read only once") {
    const Example example("1 95 0\n2 4 0\n", "100 0");
    const std::string through_pipe = example.folder.file("pipe");
    REQUIRE(mkfifo(through_pipe.c_str(), 0600) == 0);
    const std::string copy = "cat " + example.profile + " > " + through_pipe + " &";
    REQUIRE(std::system(copy.c_str()) == 0);
    // The beginning of a pipe cannot be looked at and read again: it is named first.
    CHECK(contains(annotate_with({through_pipe}), "95 (95.0%)   0  source 1;\n"));
}

TEST_CASE("annotate: search-and-replace expressions are Perl's") {
    const auto apply = [](const char* expression, const char* text) {
        return assay::Replacement("--mod-filename", expression).apply(text);
    };
    CHECK(apply("s/version[0-9]/versionN/", "version1/version2/a.c") == "versionN/version2/a.c");
    CHECK(apply("s/VERSION\\d/vN/gi", "version1/version2/a.c") == "vN/vN/a.c");
    CHECK(apply("s|/(\\w+)/(\\w+)|/$2/\\1|", "/a/b") == "/b/a");
    CHECK(apply("s{a/b}{c\\/d}", "x/a/b") == "x/c/d");
    CHECK(apply("s/\\//:/g", "a/b/c") == "a:b:c");
    CHECK(apply("s/(x)?y/[$1]/", "y") == "[]");
    CHECK(apply("s/^//", "") == "");
    CHECK(apply("s/b/\\U$0x\\E/", "abc") == "aBXc");
    for (const char* const wrong : {"", "s", "s/a/b", "tr/a/b/", "s/a/b/e", "s/(/b/", "s{a}/b/"})
        CHECK_THROWS_WITH_AS(assay::Replacement("--mod-filename", wrong),
                             doctest::Contains("--mod-filename="), Error);
    CHECK_THROWS_WITH_AS(apply("s/(a+)+$/b/", (std::string(60, 'a') + "!").c_str()),
                         doctest::Contains("s/(a+)+$/b/"), Error);
}

TEST_CASE("annotate: colours only on demand when there is no terminal") {
    const Example example("1 95 0\n2 4 0\n", "100 0");
    CHECK(!contains(annotate_with({example.profile}), "\033"));
    const std::string shown = annotate_with({"--color=always", example.profile});
    CHECK(contains(shown, "\033[1;31m95 (95.0%)\033[0m"));
    CHECK(contains(shown, "\033[31m 4  (4.0%)\033[0m"));
}

TEST_CASE(
    "annotate --diff: functions whose changes over files cancel, and names that have changed") {
    const TemporaryFolder folder;
    const std::string head = "desc: a\ncmd: ./a\nevents: Ir\n";
    const std::string before =
        folder.write("old", head +
                                "fl=a.c\nfn=f\n1 100\nfn=g.isra.0\n2 50\nfl=b.c\nfn=f\n1 100\n"
                                "fl=old/d.c\nfn=h(int)\n9 1000\nsummary: 1250\n");
    const std::string after =
        folder.write("new", head +
                                "fl=a.c\nfn=f\n1 150\nfn=g\n2 55\nfl=b.c\nfn=f\n1 50\n"
                                "fl=new/d.c\nfn=h(int, int)\n9 1001\nsummary: 1256\n");
    const std::string shown = annotate_with({"--diff", "--no-annotate", before, after});
    CHECK(contains(shown, "f:\n   50  (833.3%)            a.c\n  -50 (-833.3%)            b.c\n"));
    CHECK(contains(shown, "g:a.c\n"));
    CHECK(contains(shown, "h:new/d.c\n"));
    CHECK(!contains(shown, "isra"));
    CHECK(!contains(shown, "old/d.c"));
}

TEST_CASE("profile: where objects were loaded, unless files say different things") {
    const TemporaryFolder folder;
    const auto file = [&](const std::string& name, const std::string& loads) {
        return folder.write(
            name, "desc: a\ncmd: a\nevents: Ir\nfl=#! version 1\nfl=#! object 0 /a" + loads +
                      "\nfl=#! object 1 /b load=0x10\nfl=a.c\nfn=f\n1 1\n"
                      "summary: 1\n");
    };
    Profile profile(parts::kRows);
    profile.add_file(file("one", " load=0x400"));
    profile.add_file(file("two", " load=0x500"));
    profile.add_file(file("three", " load=0x400"));
    profile.finish();
    REQUIRE(profile.objects().size() == 2);
    CHECK(!profile.objects()[0].load);
    CHECK(profile.objects()[1].load == 0x10);
}

TEST_CASE("profile: different lines take no more than the limit") {
    const TemporaryFolder folder;
    std::string text = "desc: a\ncmd: a\nevents: Ir\nfl=a.c\nfn=f\n";
    for (int i = 1; i <= 200'000; ++i) text += std::to_string(i) + " 1\n";
    const std::string path = folder.write("out", text + "summary: 200000\n");
    Profile profile(parts::kRows, std::size_t{1} << 20);
    CHECK_THROWS_WITH_AS(profile.add_file(path), doctest::Contains("more than 1048576 bytes"),
                         Error);
    Profile all(parts::kRows);
    all.add_file(path);
    all.finish();
    CHECK(all.lines().size() == 200'000);
}

TEST_CASE("annotate: only lines that matter, in the width of a page") {
    std::string lines = "10 900 0\n";  // 90 %
    for (int line = 11; line < 30; ++line) lines += std::to_string(line) + " 5 0\n";
    const Example example(lines + "35 4 0\n", "1000 0");
    const std::string shown = annotate_briefly({"--threshold=1", example.profile});
    CHECK(contains(shown, "1,000  Ir  instructions executed\n"));
    CHECK(contains(shown, "   Ir  function  file\n99.9%  f         a.c\n"));
    CHECK(contains(shown,
                   "   Ir   line\n...\n    .      8  source 8;\n    .      9  source 9;\n"
                   "90.0%     10  source 10;\n 0.5%     11  source 11;\n"
                   " 0.5%     12  source 12;\n\n"));
    CHECK(!contains(shown, "source 35"));
    CHECK(!contains(shown, "gone.c"));
    // A source that is named is shown as a whole.
    const std::string source = example.folder.file("a.c");
    CHECK(contains(annotate_briefly({example.profile, source}), " 0.4%     35  source 35;\n"));
    CHECK(
        contains(annotate_briefly({"--show-percs=no", example.profile}), "900     10  source 10"));
}

TEST_CASE("annotate: what lines and functions call") {
    const TemporaryFolder folder;
    const std::string path = folder.write("a.c", "first;\nsecond;\nthird;\n");
    const auto shown = [&](const std::string& sites, const std::string& inlined,
                           const std::string& stacks) {
        return annotate_briefly(
            {folder.write("out", kEvents + "fl=#! object 0 /prog\n" + sites + "fl=" + path +
                                     "\nfn=main\n1 5 0\n" + "fl=" + path + "\nfn=callee\n3 95 0\n" +
                                     inlined + stacks + "summary: 100 0\n")});
    };
    // An inlined call in line 2.
    const std::string inlined = shown("fl=#! site 1 " + path + " main 2\n", "fl=#! sites 1\n", "");
    CHECK(contains(inlined, "100.0%   5.0%  main      a.c\n"));
    CHECK(contains(inlined, " 95.0%      .      2  second;\n"));
    // The same call, not inlined, of a profile with contexts; `callee` calls itself once.
    const std::string called =
        shown("", "",
              "fl=#! stack 1 in=0 call=0:0x1 main 5\nfl=#! stack 2 in=1 call=0:0x2:2 callee 60\n"
              "fl=#! stack 3 in=2 call=0:0x3:3 callee 35\n");
    CHECK(contains(called, "100.0%   5.0%  main      a.c\n"));
    CHECK(contains(called, " 95.0%  95.0%  callee    a.c\n"));
    CHECK(contains(called, " 95.0%      .      2  second;\n"));
}

}  // namespace annotate_test
