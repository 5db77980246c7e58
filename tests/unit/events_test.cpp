// The events file: what the writer writes, the reader reads.
#include "framework/events/file.h"
#include "framework/events/lexical.h"
#include "tests/unit/events_files.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace events_test {

using namespace assay::events;
using assay::Error;

namespace {

const char* const kExampleRead =
    "a.c a.c:main\n"
    "line 3: 5 1\nline 4: 7 0\nline 5: 5 1\n"
    "at 0 4406 line 3: 5 1\nat 1 64 line 4: 7 0\n"
    "values 1 64 line 4 classic.loaded 9 error 1: 18446744073709551615*5 0*2\n"
    "values 1 64 line 4 a name 0 error 0:\n"
    "a.c a.c:other\nline 0: 5 1\n"
    "??? ???:???\nline 0: 7 0\n";

}  // namespace

TEST_CASE("events: what is written is read") {
    const TemporaryFolder folder;
    for (const std::string name : {"plain", "packed.gz", "packed.zst"}) {
        CAPTURE(name);
        write_example(folder.file(name));
        CHECK(begins_as_events_file(folder.file(name)));
        Recorder recorder;
        const FileSummary summary = read_events(folder.file(name), recorder);
        CHECK(recorder.text == kExampleRead);
        CHECK(recorder.starts == 1);
        CHECK(summary.totals == std::vector<std::uint64_t>{29, 3});
        const Header expected = example_header();
        CHECK(summary.header.descriptions == expected.descriptions);
        CHECK(summary.header.command == expected.command);
        CHECK(summary.header.pid == 17);
        CHECK(summary.header.incomplete == "killed");
        REQUIRE(summary.header.events.size() == 2);
        CHECK(summary.header.events[0].description == expected.events[0].description);
        CHECK(summary.header.events[0].profiler == "cache");
        CHECK(summary.header.events[1].unit == "data reads");
        REQUIRE(summary.header.derived.size() == 1);
        CHECK(summary.header.derived[0].name == expected.derived[0].name);
        CHECK(summary.header.derived[0].formula == "Dr / Ir");
        CHECK(summary.header.derived[0].unit == "%");
        REQUIRE(summary.header.objects.size() == 2);
        CHECK(summary.header.objects[0].build_id == "abc");
        CHECK(summary.header.objects[0].load == 0x555555554000);
        CHECK(!summary.header.objects[1].load);
        CHECK(summary.header.objects[1].path == "/a folder/lib.so");
    }
    CHECK(folder.read("packed.gz").substr(0, 2) == "\x1f\x8b");
    CHECK(folder.read("packed.zst").substr(0, 4) == "\x28\xb5\x2f\xfd");
}

TEST_CASE("events: a file of version 1 stays readable, however it is cut into blocks") {
    const std::string text = text_of_data("version-1.events");
    std::string first;
    for (const std::size_t block : {std::size_t{1}, std::size_t{7}, text.size()}) {
        Recorder recorder;
        const FileSummary summary = parse(text, recorder, block);
        CHECK(summary.totals == std::vector<std::uint64_t>{25, 5, 1});
        CHECK(summary.header.events[2].description == "misses of the \"first\" level, reads");
        CHECK(summary.header.objects[1].path == "/opt/a folder/lib.so");
        CHECK(summary.header.incomplete == "ended by SIGKILL");
        if (first.empty()) first = recorder.text;
        CHECK(recorder.text == first);
    }
    std::string elsewhere;
    for (const char c : text) elsewhere += c == '\n' ? "\r\n" : std::string(1, c);
    Recorder recorder;
    CHECK(parse(elsewhere, recorder).header.incomplete == "ended by SIGKILL");
    CHECK(recorder.text == first);
    CHECK(first.find("prog.h prog.h:helper\nline 20: 1 0 0\nline 20: 2 0 0\n"
                     "lines in 0: 1\nlines in 2: 1\n") != std::string::npos);
    CHECK(first.find("site 3 in 0 line 9 a folder/prog.h f(int, char)\n") != std::string::npos);
    CHECK(first.find("lines in 2: 1\nlinkage _Z6helperv of helper\n") != std::string::npos);
    CHECK(first.find("instructions in 0: 2\ninstructions in 3: 1\n") != std::string::npos);
}

TEST_CASE("events: contexts stand behind all counts") {
    const TemporaryFolder folder;
    {
        Writer writer(folder.file("events"), example_header());
        const std::uint64_t five_one[] = {5, 1}, zero[] = {0, 0}, two[] = {2, 0}, rest[] = {3, 1};
        writer.location("a.c", "main");
        writer.line(3, five_one);
        writer.instruction(0, 0x1136, five_one);
        constexpr StackKind kCall = StackKind::kCall, kHandler = StackKind::kHandler;
        writer.stack({1, 0, kCall, 0, 0x1100, 0, "main"}, zero);
        writer.stack({2, 1, kCall, 1, 0x40, 7, "f(int, char)"}, rest);
        writer.stack({3, 1, StackKind::kInlined, 0, 0, 12, "g()"}, zero);
        writer.stack({4, 3, kHandler, 0, 0x1136, 0, "handler"}, two);
        writer.stack({5, 1, StackKind::kJumped, 0, 0, 0, "tail"}, zero);
        CHECK_THROWS(writer.stack({6, 1, kCall, 2, 0x40, 0, "of no object"}, zero));
        writer.calls(std::vector<std::uint64_t>{1, 7, 0, 2, 3});
        writer.recursion({2, 4, 1, 0x40, 9}, 6);
        writer.recursion({1, 1, 0, 0x1110, 0}, 1);
        CHECK_THROWS(writer.recursion({1, 1, 2, 0x40, 0}, 1));
        writer.finish();
    }
    CHECK(
        folder.read("events").ends_with("fl=#! at 0:0x1136 3 5 1\n"
                                        "fl=#! stack 1 in=0 call=0:0x1100 main\n"
                                        "fl=#! stack 2 in=1 call=1:0x40:7 \"f(int, char)\" 3 1\n"
                                        "fl=#! stack 3 in=1 inlined=12 g()\n"
                                        "fl=#! stack 4 in=3 interrupted=0:0x1136 handler 2\n"
                                        "fl=#! stack 5 in=1 jumped=0 tail\n"
                                        "fl=#! calls 1 1 7 0 2 3\n"
                                        "fl=#! recursion 2 in=4 call=1:0x40:9 6\n"
                                        "fl=#! recursion 1 in=1 call=0:0x1110 1\n"
                                        "summary: 5 1\n"));
    Recorder recorder;
    CHECK(read_events(folder.file("events"), recorder).totals == std::vector<std::uint64_t>{5, 1});
    CHECK(
        recorder.text.ends_with("stack 1 in 0 from 0 4352 main: 0 0\n"
                                "stack 2 in 1 from 1 64 line 7 f(int, char): 3 1\n"
                                "stack 3 in 1 inlined at 12 g(): 0 0\n"
                                "stack 4 in 3 interrupting 0 4406 handler: 2 0\n"
                                "stack 5 in 1 jumped to at 0 tail: 0 0\n"
                                "calls of 1: 1\ncalls of 2: 7\ncalls of 3: 0\n"
                                "calls of 4: 2\ncalls of 5: 3\n"
                                "recursion of 2 in 4 from 1 64 line 9: 6\n"
                                "recursion of 1 in 1 from 0 4368 line 0: 1\n"));
    // However many there are.
    {
        Writer writer(folder.file("many"), example_header());
        const std::uint64_t zero[] = {0, 0};
        std::vector<std::uint64_t> calls;
        for (std::uint32_t i = 1; i <= 150; ++i) {
            writer.stack({i, i - 1, StackKind::kJumped, 0, 0, 0, "f"}, zero);
            calls.push_back(i);
        }
        writer.calls(calls);
        writer.finish();
    }
    Recorder many;
    read_events(folder.file("many"), many);
    CHECK(many.text.find("calls of 64: 64\ncalls of 65: 65\n") != std::string::npos);
    CHECK(many.text.ends_with("calls of 150: 150\n"));
}

TEST_CASE("events: groups stand before all lines, and their counts below those of a function") {
    const TemporaryFolder folder;
    {
        Writer writer(folder.file("events"), example_header());
        const std::uint64_t five_one[] = {5, 1}, two[] = {2, 0};
        writer.site({1, 0, 7, "a.c", "main"});
        writer.group({1, 0, "object", "a heap (a.c:1)", {{"class", "heap"}, {"size", "8"}}});
        writer.group({2, 1, "member", "m", {{"type", "a type"}}});
        writer.location("a.c", "main");
        writer.line(3, five_one);
        writer.counts_of(2, two);
        writer.line(4, five_one);
        writer.counts_of(1, five_one);
        writer.finish();
    }
    CHECK(
        folder.read("events").ends_with("fl=#! site 1 a.c main 7\n"
                                        "fl=#! group 1 object in=0 \"a heap (a.c:1)\" class=heap "
                                        "size=8\n"
                                        "fl=#! group 2 member in=1 m type=\"a type\"\n"
                                        "fl=a.c\nfn=main\n3 5 1\n4 5 1\n"
                                        "fl=#! of 2 3 2\n"
                                        "fl=#! of 1 4 5 1\n"
                                        "summary: 10 2\n"));
    Recorder recorder;
    CHECK(read_events(folder.file("events"), recorder).totals == std::vector<std::uint64_t>{10, 2});
    CHECK(
        recorder.text.ends_with("group 1 object in 0 a heap (a.c:1) class=heap size=8\n"
                                "group 2 member in 1 m type=a type\n"
                                "a.c a.c:main\nline 3: 5 1\nline 4: 5 1\n"
                                "of 2 line 3: 2 0\nof 1 line 4: 5 1\n"));
}

TEST_CASE("events: the binary of a function stands behind its first lines") {
    const TemporaryFolder folder;
    {
        Writer writer(folder.file("events"), example_header());
        const std::uint64_t five_one[] = {5, 1};
        writer.binary("f()", 1);
        writer.binary("without lines()", 0);
        CHECK_THROWS_AS(writer.binary("f()", 2), Error);
        for (const char* const file : {"a.c", "b.h"}) {
            writer.location(file, "f()");
            writer.line(3, five_one);
        }
        writer.finish();
    }
    const std::string text = folder.read("events");
    CHECK(text.find("fn=f()\n3 5 1\nfl=#! binary 1\nfl=b.h\nfn=f()\n3 5 1\n") != std::string::npos);
    Recorder recorder;
    parse(text, recorder);
    CHECK(recorder.text.find("line 3: 5 1\nbinary 1 of f()\n") != std::string::npos);
}

TEST_CASE("events: a linkage name stands behind the first lines of its function") {
    const TemporaryFolder folder;
    {
        Writer writer(folder.file("events"), example_header());
        const std::uint64_t five_one[] = {5, 1};
        writer.site({1, 0, 7, "a.c", "main"});
        writer.linkage("f(int, char)", "_Z1fic");
        writer.linkage("without lines()", "_Z1gv");
        writer.linkage("a###b\n", "with \"a\nblank\"");
        writer.linkage("too long", std::string(64 * 1024 + 1, 'n'));
        for (const char* const function : {"f(int, char)", "main", "a###b\n", "too long"}) {
            writer.location("a.c", function);
            writer.line(3, five_one, 1);
            writer.instruction(0, 0x40, five_one);
        }
        writer.location("b.h", "f(int, char)");
        writer.line(4, five_one);
        writer.finish();
    }
    const std::string at = "fl=#! at 0:0x40 3 5 1\n";
    CHECK(
        folder.read("events").ends_with("fl=#! site 1 a.c main 7\n"
                                        "fl=a.c\nfn=f(int, char)\n3 5 1\nfl=#! sites 1\n" +
                                        at +
                                        "fl=#! linkage _Z1fic\n"
                                        "fl=a.c\nfn=main\n3 5 1\nfl=#! sites 1\n" +
                                        at + "fl=a.c\nfn=a##\\#b\\n\n3 5 1\nfl=#! sites 1\n" + at +
                                        "fl=#! linkage \"with \\\"a\\nblank\\\"\"\n"
                                        "fl=a.c\nfn=too long\n3 5 1\nfl=#! sites 1\n" +
                                        at + "fl=b.h\nfn=f(int, char)\n4 5 1\nsummary: 25 5\n"));
    Recorder recorder;
    CHECK(read_events(folder.file("events"), recorder).totals == std::vector<std::uint64_t>{25, 5});
    for (const char* const line :
         {"\nlinkage _Z1fic of f(int, char)\n", "\nlinkage with \"a\nblank\" of a##\\#b\\n\n"})
        CHECK(recorder.text.find(line) != std::string::npos);
}

TEST_CASE("events: sites of inlined code stand behind the lines of their function") {
    const TemporaryFolder folder;
    {
        Writer writer(folder.file("events"), example_header());
        const std::uint64_t five_one[] = {5, 1};
        writer.site({1, 0, 7, "a.c", "main"});
        writer.site({2, 1, 9, "#!b.h", "f(int)"});
        writer.site({3, 1, 12, "#!b.h", "f(int)"});
        writer.location("b.h", "g");
        writer.line(3, five_one);
        writer.instruction(0, 0x40, five_one);
        for (const std::uint32_t site : {1U, 1U, 3U}) writer.line(4, five_one, site);
        writer.instruction(0, 0x44, five_one, 3);
        writer.line(5, five_one);
        writer.location("b.h", "h");
        writer.line(6, five_one);
        writer.location("b.h", "i");
        writer.line(7, five_one, 2);
        writer.location("b.h", "j");
        for (std::uint32_t i = 0; i < 1025; ++i) writer.line(8, five_one, 1 + i % 2);
        writer.finish();
    }
    const std::string text = folder.read("events");
    CHECK(text.find("fl=#! site 1 a.c main 7\nfl=#! site 2 ./#!b.h f(int) 9@1 12@1\n"
                    "fl=b.h\nfn=g\n3 5 1\n4 5 1\n4 5 1\n4 5 1\n5 5 1\n"
                    "fl=#! sites 0 1*2 3\nfl=#! at 0:0x40 3 5 1\nfl=#! at 0:0x44 4 5 1\n"
                    "fl=#! at-sites 0 3\nfl=b.h\nfn=h\n6 5 1\nfn=i\n7 5 1\nfl=#! sites 2\n"
                    "fl=b.h\nfn=j\n") != std::string::npos);
    CHECK(text.find(" 1 2\nfl=#! sites 1\nsummary: ") != std::string::npos);
    Recorder recorder;
    CHECK(read_events(folder.file("events"), recorder).totals[1] == 1032);
    CHECK(
        recorder.text.starts_with("site 1 in 0 line 7 a.c main\n"
                                  "site 2 in 1 line 9 ./#!b.h f(int)\n"
                                  "site 3 in 1 line 12 ./#!b.h f(int)\n"));
    CHECK(recorder.text.find("line 5: 5 1\nlines in 0: 1\nlines in 1: 2\nlines in 3: 1\n"
                             "at 0 64 line 3: 5 1\nat 0 68 line 4: 5 1\n"
                             "instructions in 0: 1\ninstructions in 3: 1\n") != std::string::npos);
}

TEST_CASE("events: a file of Cachegrind's is read") {
    Recorder recorder;
    const FileSummary summary = parse(text_of_data("cachegrind.out"), recorder);
    CHECK(summary.header.command == "/tmp/leaf");
    CHECK(summary.header.descriptions[2] ==
          std::pair<std::string, std::string>("LL cache", "1048576 B, 64 B, 16-way associative"));
    CHECK(summary.totals == std::vector<std::uint64_t>{613, 2, 2, 2, 1, 1, 1, 1, 1, 101, 10, 0, 0});
    CHECK(recorder.text.find("/src/leaf.c /src/leaf.c:sum_of_squares\n"
                             "line 5: 200 0 0 0 0 0 0 0 0 0 0 0 0\n") != std::string::npos);
}

TEST_CASE("events: every liberty that Cachegrind's format gives is understood") {
    Recorder recorder;
    const FileSummary summary = parse(kStart +
                                          "# a comment\n\nfl=a.c\nfn=f\n1 5 .\n2 3\n"
                                          "fi=b.h\n7   1 1 \nfe=a.c\n3\t. 2\n"
                                          "summary:  9  3 \n\n# behind it\n",
                                      recorder);
    CHECK(recorder.text ==
          "a.c a.c:f\nline 1: 5 0\nline 2: 3 0\n"
          "b.h a.c:f\nline 7: 1 1\na.c a.c:f\nline 3: 0 2\n");
    CHECK(summary.totals == std::vector<std::uint64_t>{9, 3});
}

TEST_CASE("events: a difference is read where one is accepted") {
    const auto totals = [](const std::string& text, Accept accept) {
        Recorder recorder;
        Parser parser("FILE", recorder, accept);
        parser.feed(text);
        parser.finish();
        return parser.totals();
    };
    const std::string of_assay = kVersion + "fl=#! difference\n";
    const std::string body =
        kPlace + "0 -7 2\n0 9223372036854775807 1\n" + "0 -9223372036854775807\nsummary: -7 3\n";
    // cg_diff's, and ours.
    for (const std::string& text :
         {"desc: Files compared:   a; b\ncmd:  a; b\nevents:  Ir Dr\n" + body, of_assay + body}) {
        CHECK(totals(text, Accept::kDifferences) ==
              std::vector<std::uint64_t>{static_cast<std::uint64_t>(-7), 3});
        CHECK(error_of(text) == "FILE: the file is a difference of two profiles, not a profile");
    }
    CHECK_THROWS_WITH_AS(
        totals(kVersion + "fl=#! difference\n" + kPlace + "0 9223372036854775808\n",
               Accept::kDifferences),
        doctest::Contains("the count exceeds 64 bits"), Error);
    CHECK_THROWS_WITH_AS(
        totals(kVersion + "fl=#! difference\n" + kPlace + "0 -9223372036854775808\n0 -1\n",
               Accept::kDifferences),
        doctest::Contains("the total of Ir exceeds 64 bits"), Error);
}

TEST_CASE("events: lists of values are merged with their errors") {
    const auto merged = [](Hotlist into, const Hotlist& other, std::size_t most) {
        merge(into, other, most);
        CHECK(defect(into) == nullptr);
        return into;
    };
    const Hotlist a = {"p", 10, 1, {{7, 5}, {8, 3}}};
    const Hotlist b = {"p", 20, 2, {{8, 6}, {6, 5}, {9, 1}}};
    CHECK(merged(a, b, 8) == Hotlist{"p", 30, 3, {{8, 9}, {6, 5}, {7, 5}, {9, 1}}});
    CHECK(merged(a, b, 2) == Hotlist{"p", 30, 8, {{8, 9}, {6, 5}}});
    CHECK(merged({"p", 0, 0, {}}, b, 8) == b);
    // No value can have been seen more often than all together.
    CHECK(merged({"p", 10, 9, {{7, 6}}}, {"p", 10, 9, {{8, 5}}}, 1) ==
          Hotlist{"p", 20, 20, {{7, 6}}});
    Hotlist full = {"p", ~std::uint64_t{0}, 0, {}};
    CHECK_THROWS_AS(merge(full, a, 8), Error);
}

TEST_CASE("events: names cannot break the file") {
    const TemporaryFolder folder;
    Header header;
    header.command = "sh -c 'desc: a\nb\x01'";
    header.events = {{"Ir", "a\nb", "x y", ""}};
    header.descriptions = {{"a\nb", "c\nd"}};
    header.incomplete = "a\nb";
    {
        Writer writer(folder.file("out"), header);
        const std::uint64_t one[] = {1};
        writer.location("#! a\nsummary: 5.c", "f\nfn=g");
        writer.line(1, one);
        writer.location("x", "a####b");
        writer.line(1, one);
        writer.location("x", std::string(3 * kMaxLineBytes, 'n'));
        writer.line(1, one);
        writer.finish();
    }
    Recorder recorder;
    const FileSummary summary = read_events(folder.file("out"), recorder);
    CHECK(summary.header.command == "sh -c 'desc\\: a\\nb\\x01'");
    CHECK(summary.header.events[0].unit == "x y");
    CHECK(recorder.text.starts_with("./#! a\\nsummary: 5.c ./#! a\\nsummary: 5.c:f\\nfn=g\n"));
    CHECK(recorder.text.find("x x:a##\\##b\n") != std::string::npos);
}

TEST_CASE("events: long texts and long lists are cut") {
    const TemporaryFolder folder;
    Header header;
    header.events = {{"Ir", "", "", ""}};
    header.objects = {{"/a", ""}};
    const std::size_t most = 64 * 1024;
    Hotlist list = {"p", 3000, 7, {}};
    for (std::uint64_t value = 0; value < 1100; ++value)
        list.values.push_back({value, value < 1024 ? 2U : 1U});
    {
        Writer writer(folder.file("out"), header);
        const std::uint64_t one[] = {1};
        writer.location("a", std::string(most - 1, 'n') + "\xC3\xA9");  // not within a character
        writer.line(1, one);
        writer.location("b", std::string(most - 2, 'n') + "\xC3\xA9" + "cut");
        writer.line(1, one);
        writer.values(0, 0x10, list);
        writer.finish();
    }
    Recorder recorder;
    read_events(folder.file("out"), recorder);
    CHECK(recorder.text.find("a a:" + std::string(most - 1, 'n') + "\n") != std::string::npos);
    CHECK(recorder.text.find("b b:" + std::string(most - 2, 'n') + "\xC3\xA9\n") !=
          std::string::npos);
    CHECK(recorder.text.find(" p 3000 error 8: 0*2 1*2") != std::string::npos);
    CHECK(recorder.text.find(" 1023*2\n") != std::string::npos);
}

TEST_CASE("events: headers that no reader would take are refused") {
    const TemporaryFolder folder;
    const auto write = [&](const Header& header) { Writer(folder.file("out"), header); };
    Header header;
    CHECK_THROWS_AS(write(header), Error);
    header.events = {{"1r", "", "", "profiler"}};
    CHECK_THROWS_AS(write(header), Error);
    header.events = {{"Ir", "", "", ""}, {"Ir", "", "", ""}};
    CHECK_THROWS_AS(write(header), Error);
    header.events = {{"Ir", "", "", ""}};
    header.derived = {{"x", "Ir + Dr", ""}};
    CHECK_THROWS_AS(write(header), Error);
}

TEST_CASE("events: a writer that does not finish leaves nothing and replaces nothing") {
    const TemporaryFolder folder;
    folder.write("out", "before");
    { Writer writer(folder.file("out"), example_header()); }
    CHECK(folder.read("out") == "before");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.file("")), {}) == 1);
    write_example(folder.file("out"));
    CHECK(folder.read("out").starts_with("desc: I1 cache"));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.file("")), {}) == 1);
}

TEST_CASE("events: a full or missing device is an error, another device is written in place") {
    CHECK_THROWS_WITH_AS(write_example("/dev/full"),
                         doctest::Contains("'/dev/full': No space left on device"), Error);
    CHECK_THROWS_WITH_AS(write_example("/no/such/folder/out"),
                         doctest::Contains("No such file or directory"), Error);
    CHECK_NOTHROW(write_example("/dev/null"));
    CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("events: a file in memory is replaced as others are") {
    const std::string folder = "/dev/shm";
    if (access(folder.c_str(), W_OK) != 0) return;
    const std::string path = folder + "/assay-test-" + std::to_string(getpid());
    std::ofstream(path) << std::string(100'000, 'x');
    write_example(path);
    Recorder recorder;
    CHECK_NOTHROW(read_events(path, recorder));
    std::filesystem::remove(path);
}

TEST_CASE("events: a symbolic link stays one") {
    const TemporaryFolder folder;
    folder.write("real", "");
    std::filesystem::create_symlink("real", folder.file("link"));
    write_example(folder.file("link"));
    CHECK(std::filesystem::is_symlink(folder.file("link")));

    // Also if nothing is behind it yet.
    std::filesystem::create_directory(folder.file("folder"));
    std::filesystem::create_symlink("folder/further", folder.file("near"));
    std::filesystem::create_symlink("new", folder.file("folder/further"));
    write_example(folder.file("near"));
    CHECK(std::filesystem::is_symlink(folder.file("near")));
    CHECK(std::filesystem::is_regular_file(folder.file("folder/new")));

    std::filesystem::create_symlink("circle", folder.file("circle"));
    CHECK_THROWS_AS(write_example(folder.file("circle")), Error);
    CHECK(folder.read("real").starts_with("desc: I1 cache"));
}

TEST_CASE("events: a file that is replaced keeps its permissions") {
    const TemporaryFolder folder;
    const auto status = [&](const std::string& name) {
        struct stat found {};
        REQUIRE(stat(folder.file(name).c_str(), &found) == 0);
        return found;
    };
    const mode_t mask = umask(022);
    for (const mode_t mode : {0600, 0640, 0604, 0666, 0755}) {
        folder.write("out", "before");
        REQUIRE(chmod(folder.file("out").c_str(), mode) == 0);
        write_example(folder.file("out"));
        CHECK((status("out").st_mode & 07777) == mode);
    }
    write_example(folder.file("new"));
    CHECK((status("new").st_mode & 07777) == 0644);
    umask(mask);
    if (geteuid() != 0) return;
    REQUIRE(chown(folder.file("new").c_str(), 1234, 4321) == 0);
    write_example(folder.file("new"));
    CHECK(status("new").st_uid == 1234);
    CHECK(status("new").st_gid == 4321);
    CHECK((status("new").st_mode & 07777) == 0644);

    // Where the group cannot be kept, nobody gets more than before.
    REQUIRE(chmod(folder.file("new").c_str(), 0664) == 0);
    REQUIRE(chmod(folder.file("").c_str(), 0777) == 0);
    REQUIRE(chown(folder.file("new").c_str(), 1234, 4321) == 0);
    REQUIRE(seteuid(1234) == 0);
    write_example(folder.file("new"));
    REQUIRE(seteuid(0) == 0);
    CHECK(status("new").st_uid == 1234);
    CHECK(status("new").st_gid == getegid());
    CHECK((status("new").st_mode & 07777) == 0644);
}

TEST_CASE("events: what others have put into everybody's folder is not written to") {
    if (geteuid() != 0) return;
    const TemporaryFolder folder;
    REQUIRE(chmod(folder.file("").c_str(), 01777) == 0);
    const auto made = [&](const std::string& name, uid_t owner) {
        REQUIRE(lchown(folder.file(name).c_str(), owner, owner) == 0);
        return folder.file(name);
    };
    folder.write("victim", "untouched");
    std::filesystem::create_symlink("victim", folder.file("link"));
    std::filesystem::create_symlink(folder.file("link"), folder.file("own"));
    std::filesystem::create_symlink("/dev/null", folder.file("device"));
    std::filesystem::create_symlink("nothing", folder.file("dangling"));
    REQUIRE(mkfifo(folder.file("pipe").c_str(), 0666) == 0);
    folder.write("file", "another's");
    constexpr uid_t kOther = 4321;
    for (const char* name : {"link", "device", "dangling", "pipe", "file"}) {
        CAPTURE(name);
        const std::string path = made(name, kOther);
        CHECK_THROWS_WITH_AS(write_example(path),
                             doctest::Contains("': it belongs to another user"), Error);
        CHECK_THROWS_AS(check_writable(path), Error);
        CHECK_THROWS_AS(check_writable_in_place(path), Error);
    }
    // Also if one's own leads there.
    CHECK_THROWS_WITH_AS(write_example(folder.file("own")),
                         doctest::Contains("/link' belongs to another user"), Error);
    CHECK(folder.read("victim") == "untouched");
    CHECK(folder.read("file") == "another's");

    // The owner's own, those of the folder's owner, and those in a folder that only some may write
    // to.
    REQUIRE(chown(folder.file("victim").c_str(), kOther, kOther) == 0);
    REQUIRE(seteuid(kOther) == 0);
    CHECK_NOTHROW(write_example(folder.file("link")));
    REQUIRE(seteuid(0) == 0);
    made("link", 0);
    REQUIRE(seteuid(kOther) == 0);
    CHECK_NOTHROW(check_writable(folder.file("link")));
    REQUIRE(seteuid(0) == 0);
    for (const mode_t mode : {0777, 01775}) {
        REQUIRE(chmod(folder.file("").c_str(), mode) == 0);
        CHECK_NOTHROW(write_example(made("link", kOther)));
    }
}

TEST_CASE("events: quoted words come back as they were") {
    for (const std::string text : {"", "plain", "two words", "a\"b\\c", "\n\t\r\x01\x7f", "ä=ß"}) {
        const std::string line = word(text) + " rest";
        std::string_view rest = line;
        CHECK(take_word(rest) == text);
        CHECK(take_word(rest) == "rest");
        CHECK(take_word(rest) == std::nullopt);
    }
    for (const char* const text : {"\"open", "\"\\q\"", "\"\\x1\"", "\"\\"}) {
        std::string_view rest = text;
        CHECK(take_word(rest) == std::nullopt);
    }
}

namespace {

// What a reader that asks for estimated cycles receives of a file with this figure and counts.
struct Estimated {
    Recorder recorder;
    FileSummary summary;

    Estimated(const std::string& formula, const std::string& counts,
              const std::string& difference = "") {
        const TemporaryFolder folder;
        const std::string path =
            folder.write("out", "desc: a: b\ncmd: c\nevents: Ir D1mr\nfl=#! version 1\n" +
                                    difference + "fl=#! derived \"Cy\" unit=cycles = " + formula +
                                    "\nfl=a.c\nfn=f\n1 " + counts + "\nsummary: " + counts + "\n");
        summary = read_events(path, recorder, Accept::kDifferences, {.estimates_cycles = true});
    }
};

}  // namespace

TEST_CASE("events: a sum is an event of estimated cycles") {
    const Estimated read("Ir + 10 * (D1mr + D1mr) + D1mr * 5", "100 3");
    REQUIRE(read.summary.header.events.size() == 3);
    CHECK(read.summary.header.events[0].name == "Cy");
    CHECK(read.summary.header.events[0].unit == "cycles");
    CHECK(read.summary.header.events[0].formula == "Ir + 10 * (D1mr + D1mr) + D1mr * 5");
    CHECK(read.summary.header.derived.empty());
    CHECK(read.summary.totals == std::vector<std::uint64_t>{175, 100, 3});
    CHECK(read.recorder.text == "a.c a.c:f\nline 1: 175 100 3\n");
}

TEST_CASE("events: what is no sum of events stays a figure") {
    for (const char* const formula : {"Ir / 2", "Ir * D1mr", "Ir - D1mr", "Ir + 1", "Ir * 0.5",
                                      "Ir + -D1mr", "Ir * 2000000000"}) {
        CAPTURE(formula);
        const Estimated read(formula, "100 3");
        CHECK(read.summary.header.events.size() == 2);
        CHECK(read.summary.header.derived.size() == 1);
        CHECK(read.recorder.text == "a.c a.c:f\nline 1: 100 3\n");
    }
}

TEST_CASE("events: estimated cycles of differences, and of counts that are too high") {
    const Estimated read("Ir + 10 * D1mr", "5 -3", "fl=#! difference\n");
    CHECK(read.summary.totals[0] == static_cast<std::uint64_t>(-25));
    CHECK_THROWS_WITH_AS(Estimated("Ir + 10 * D1mr", "5 3000000000000000000"),
                         doctest::Contains("estimated cycles exceed 64 bits"), Error);
}

}  // namespace events_test
