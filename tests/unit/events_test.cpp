// The events file: what the writer writes, the reader reads; what is damaged, it refuses.
#include "framework/events/formula.h"
#include "framework/events/lexical.h"
#include "framework/events/reader.h"
#include "framework/events/writer.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

using namespace assay::events;
using assay::Error;

namespace {

std::string text_of_data(const std::string& name) {
    const char* folder = std::getenv("ASSAY_TEST_DATA");
    REQUIRE(folder);
    std::ostringstream content;
    content << std::ifstream(std::string(folder) + "/" + name).rdbuf();
    REQUIRE(!content.str().empty());
    return content.str();
}

// What a parser passed on, as text: one line per call.
class Recorder final : public Handler {
  public:
    std::string text;
    int starts = 0;

  private:
    void start(const Header&) override { ++starts; }
    void location(const Location& location) override {
        text += std::string(location.file) + " " + std::string(location.function_file) + ":" +
                std::string(location.function) + "\n";
    }
    void line(std::uint32_t line, std::span<const std::uint64_t> counts) override {
        text += "line " + std::to_string(line) + numbers(counts);
    }
    void instruction(const Instruction& at, std::span<const std::uint64_t> counts) override {
        text += "at " + std::to_string(at.object) + " " + std::to_string(at.address) + " line " +
                std::to_string(at.line) + numbers(counts);
    }
    void values(const Instruction& at, const Hotlist& list) override {
        text += "values " + std::to_string(at.object) + " " + std::to_string(at.address) +
                " line " + std::to_string(at.line) + " " + list.name + " " +
                std::to_string(list.total) + " error " + std::to_string(list.error) + ":";
        for (const HotValue& each : list.values)
            text += " " + std::to_string(each.value) + "*" + std::to_string(each.count);
        text += "\n";
    }
    void site(const Site& site) override {
        text += "site " + std::to_string(site.number) + " in " + std::to_string(site.parent) +
                " line " + std::to_string(site.line) + " " + std::string(site.file) + " " +
                std::string(site.function) + "\n";
    }
    void line_sites(std::uint32_t site, std::uint64_t count) override {
        text += "lines in " + std::to_string(site) + ": " + std::to_string(count) + "\n";
    }
    void instruction_sites(std::uint32_t site, std::uint64_t count) override {
        text += "instructions in " + std::to_string(site) + ": " + std::to_string(count) + "\n";
    }
    void stack(const Stack& stack, std::span<const std::uint64_t> counts) override {
        text += "stack " + std::to_string(stack.number) + " in " + std::to_string(stack.parent) +
                entry(stack) + " " + std::string(stack.function) + numbers(counts);
    }
    static std::string entry(const Stack& stack) {
        if (stack.kind == StackKind::kInlined) return " inlined at " + std::to_string(stack.line);
        return (stack.kind == StackKind::kHandler ? " interrupting " : " from ") +
               std::to_string(stack.object) + " " + std::to_string(stack.address) +
               (stack.line != 0 ? " line " + std::to_string(stack.line) : "");
    }
    static std::string numbers(std::span<const std::uint64_t> counts) {
        std::string out = ":";
        for (const std::uint64_t count : counts) out.append(" ").append(std::to_string(count));
        return out.append("\n");
    }
};

// Parses in blocks of the size given.
Profile parse(const std::string& text, Recorder& recorder, std::size_t block = 1 << 20) {
    Parser parser("FILE", recorder);
    for (std::size_t at = 0; at < text.size(); at += block)
        parser.feed(std::string_view(text).substr(at, block));
    parser.finish();
    return {parser.header(), parser.totals()};
}

// The message of the error that parsing ends in; "" if there is none.
std::string error_of(const std::string& text) {
    Recorder recorder;
    try {
        parse(text, recorder);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

const std::string kStart = "desc: a\ncmd: ./t\nevents: Ir Dr\n";
const std::string kVersion = kStart + "fl=#! version 1\n";
const std::string kPlace = "fl=a.c\nfn=f\n";
const std::string kSites = kVersion + "fl=#! site 1 a.c main 7\n";
const std::string kContexts = kVersion + "fl=#! object 0 a\n" + kPlace + "1 1 2\nfl=#! stack ";

Header example_header() {
    Header header;
    header.descriptions = {{"I1 cache", "32768 B"}};
    header.command = "./prog arg";
    header.events = {{"Ir", "instructions \"executed\"", "instructions", "cache"},
                     {"Dr", "", "data reads", ""}};
    header.derived = {{"reads by instruction", "Dr / Ir", "%"}};
    header.objects = {{"/usr/bin/prog", "abc"}, {"/a folder/lib.so", ""}};
    header.pid = 17;
    header.incomplete = "killed";
    return header;
}

void write_example(const std::string& path) {
    Writer writer(path, example_header());
    const std::uint64_t five_one[] = {5, 1}, seven_zero[] = {7, 0};
    writer.location("a.c", "main");
    writer.line(3, five_one);
    writer.instruction(0, 0x1136, five_one);
    writer.line(4, seven_zero);
    writer.instruction(1, 0x40, seven_zero);
    writer.values(1, 0x40, {"classic.loaded", 9, 1, {{~std::uint64_t{0}, 5}, {0, 2}}});
    writer.values(1, 0x40, {"a name", 0, 0, {}});
    writer.location("a.c", "main");
    writer.line(5, five_one);
    writer.location("a.c", "other");
    writer.line(0, five_one);
    writer.location("", "");
    writer.line(0, seven_zero);
    writer.finish();
}

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
        const Profile profile = read_events(folder.file(name), recorder);
        CHECK(recorder.text == kExampleRead);
        CHECK(recorder.starts == 1);
        CHECK(profile.totals == std::vector<std::uint64_t>{29, 3});
        const Header expected = example_header();
        CHECK(profile.header.descriptions == expected.descriptions);
        CHECK(profile.header.command == expected.command);
        CHECK(profile.header.pid == 17);
        CHECK(profile.header.incomplete == "killed");
        REQUIRE(profile.header.events.size() == 2);
        CHECK(profile.header.events[0].description == expected.events[0].description);
        CHECK(profile.header.events[0].profiler == "cache");
        CHECK(profile.header.events[1].unit == "data reads");
        REQUIRE(profile.header.derived.size() == 1);
        CHECK(profile.header.derived[0].name == expected.derived[0].name);
        CHECK(profile.header.derived[0].formula == "Dr / Ir");
        CHECK(profile.header.derived[0].unit == "%");
        REQUIRE(profile.header.objects.size() == 2);
        CHECK(profile.header.objects[0].build_id == "abc");
        CHECK(profile.header.objects[1].path == "/a folder/lib.so");
    }
    CHECK(folder.read("packed.gz").substr(0, 2) == "\x1f\x8b");
    CHECK(folder.read("packed.zst").substr(0, 4) == "\x28\xb5\x2f\xfd");
}

TEST_CASE("events: a file of version 1 stays readable, however it is cut into blocks") {
    const std::string text = text_of_data("version-1.events");
    std::string first;
    for (const std::size_t block : {std::size_t{1}, std::size_t{7}, text.size()}) {
        Recorder recorder;
        const Profile profile = parse(text, recorder, block);
        CHECK(profile.totals == std::vector<std::uint64_t>{25, 5, 1});
        CHECK(profile.header.events[2].description == "misses of the \"first\" level, reads");
        CHECK(profile.header.objects[1].path == "/opt/a folder/lib.so");
        CHECK(profile.header.incomplete == "ended by SIGKILL");
        if (first.empty()) first = recorder.text;
        CHECK(recorder.text == first);
    }
    CHECK(first.find("prog.h prog.h:helper\nline 20: 1 0 0\nline 20: 2 0 0\n"
                     "lines in 0: 1\nlines in 2: 1\n") != std::string::npos);
    CHECK(first.find("site 3 in 0 line 9 a folder/prog.h f(int, char)\n") != std::string::npos);
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
        CHECK_THROWS(writer.stack({5, 1, kCall, 2, 0x40, 0, "of no object"}, zero));
        writer.finish();
    }
    CHECK(
        folder.read("events").ends_with("fl=#! at 0:0x1136 3 5 1\n"
                                        "fl=#! stack 1 in=0 call=0:0x1100 main\n"
                                        "fl=#! stack 2 in=1 call=1:0x40:7 \"f(int, char)\" 3 1\n"
                                        "fl=#! stack 3 in=1 inlined=12 g()\n"
                                        "fl=#! stack 4 in=3 interrupted=0:0x1136 handler 2\n"
                                        "summary: 5 1\n"));
    Recorder recorder;
    CHECK(read_events(folder.file("events"), recorder).totals == std::vector<std::uint64_t>{5, 1});
    CHECK(
        recorder.text.ends_with("stack 1 in 0 from 0 4352 main: 0 0\n"
                                "stack 2 in 1 from 1 64 line 7 f(int, char): 3 1\n"
                                "stack 3 in 1 inlined at 12 g(): 0 0\n"
                                "stack 4 in 3 interrupting 0 4406 handler: 2 0\n"));
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
    const Profile profile = parse(text_of_data("cachegrind.out"), recorder);
    CHECK(profile.header.command == "/tmp/leaf");
    CHECK(profile.header.descriptions[2] ==
          std::pair<std::string, std::string>("LL cache", "1048576 B, 64 B, 16-way associative"));
    CHECK(profile.totals == std::vector<std::uint64_t>{613, 2, 2, 2, 1, 1, 1, 1, 1, 101, 10, 0, 0});
    CHECK(recorder.text.find("/src/leaf.c /src/leaf.c:sum_of_squares\n"
                             "line 5: 200 0 0 0 0 0 0 0 0 0 0 0 0\n") != std::string::npos);
}

TEST_CASE("events: every liberty that Cachegrind's format gives is understood") {
    Recorder recorder;
    const Profile profile = parse(kStart +
                                      "# a comment\n\nfl=a.c\nfn=f\n1 5 .\n2 3\n"
                                      "fi=b.h\n7   1 1 \nfe=a.c\n3\t. 2\n"
                                      "summary:  9  3 \n\n# behind it\n",
                                  recorder);
    CHECK(recorder.text ==
          "a.c a.c:f\nline 1: 5 0\nline 2: 3 0\n"
          "b.h a.c:f\nline 7: 1 1\na.c a.c:f\nline 3: 0 2\n");
    CHECK(profile.totals == std::vector<std::uint64_t>{9, 3});
}

TEST_CASE("events: a file cut short at any byte is refused") {
    for (const char* const name : {"version-1.events", "cachegrind.out"}) {
        const std::string text = text_of_data(name);
        REQUIRE(text.back() == '\n');
        CHECK(error_of(text) == "");
        CHECK(error_of(text.substr(0, text.size() - 1)) == "");
        for (std::size_t size = 0; size + 1 < text.size(); ++size) {
            CAPTURE(size);
            const std::string error = error_of(text.substr(0, size));
            CHECK(error.starts_with("FILE:"));
        }
    }
}

TEST_CASE("events: a compressed file cut short or damaged is refused") {
    const TemporaryFolder folder;
    for (const std::string name : {"packed.gz", "packed.zst"}) {
        write_example(folder.file(name));
        const std::string whole = folder.read(name);
        for (std::size_t size = 0; size < whole.size(); ++size) {
            CAPTURE(size);
            folder.write("cut", whole.substr(0, size));
            Recorder recorder;
            CHECK_THROWS_AS(read_events(folder.file("cut"), recorder), Error);
        }
        std::string damaged = whole;
        damaged[damaged.size() / 2] ^= 0x20;
        folder.write("damaged", damaged);
        Recorder recorder;
        CHECK_THROWS_AS(read_events(folder.file("damaged"), recorder), Error);
        folder.write("twice", whole + whole);  // decompresses to two files in a row
        CHECK_THROWS_WITH_AS(read_events(folder.file("twice"), recorder),
                             doctest::Contains("behind the summary"), Error);
    }
}

TEST_CASE("events: errors name the line, the reason and the value") {
    const std::map<std::string, std::string> cases = {
        {"", "FILE: the file is empty"},
        {"hello\n", "FILE:1: not an events file: expected a desc: or cmd: line (hello)"},
        {"desc: a\nfl=x\n", "FILE:2: expected a desc: or cmd: line (fl=x)"},
        {"desc: a\n", "FILE:1: the file ends before its events: line"},
        {"cmd: t\nfl=x\n", "FILE:2: expected the events: line (fl=x)"},
        {"cmd: t\nevents: \n", "FILE:2: the events: line names no event"},
        {"cmd: t\nevents: A B A\n", "FILE:2: the event occurs twice (A)"},
        {kStart, "FILE:3: the file ends without a summary: it was cut short"},
        {kStart + "1 2 3\n", "FILE:4: counts without fl= and fn= before them (1 2 3)"},
        {kStart + "fl=a\n1 2 3\n", "FILE:5: counts without fl= and fn= before them (1 2 3)"},
        {kStart + "fn=f\n", "FILE:4: fn= without a fl= before it (fn=f)"},
        {kStart + "fx=f\n", "FILE:4: expected fl=, fn=, counts or summary: (fx=f)"},
        {kStart + kPlace + "1x 2\n", "FILE:6: malformed line number (1)"},
        {kStart + kPlace + "4294967296 2\n", "FILE:6: number beyond 4294967295 (4294967296)"},
        {kStart + kPlace + "1 2 3 4\n", "FILE:6: more counts than events (4)"},
        {kStart + kPlace + "1 2 x\n", "FILE:6: malformed count (x)"},
        {kStart + kPlace + "1 2x\n", "FILE:6: malformed count (2x)"},
        {kStart + kPlace + "1 ..\n", "FILE:6: malformed count (..)"},
        {kStart + kPlace + "1 -2\n",
         "FILE:6: negative count: only a difference of two profiles has such (-2)"},
        {kStart + kPlace + "1 18446744073709551616\n",
         "FILE:6: the count exceeds 64 bits (18446744073709551616)"},
        {kStart + kPlace + "1 18446744073709551615\n1 1\n",
         "FILE:7: the total of Ir exceeds 64 bits (1)"},
        {kStart + kPlace + "1 2 3\nsummary: 2\n",
         "FILE:7: the summary has 1 counts for 2 events (2)"},
        {kStart + kPlace + "1 2 3\nsummary: 2 4\n",
         "FILE:7: the summary of Dr differs from the sum of its counts, 3: the file is damaged "
         "(4)"},
        {kStart + kPlace + "summary: 0 0\nfl=b\n",
         "FILE:7: unexpected line behind the summary (fl=b)"},
    };
    for (const auto& [text, error] : cases) CHECK(error_of(text) == error);
}

TEST_CASE("events: a difference is read where one is accepted") {
    const auto totals = [](const std::string& text, Accept accept) {
        Recorder recorder;
        Parser parser("FILE", recorder, accept);
        parser.feed(text);
        parser.finish();
        return parser.totals();
    };
    const std::string body =
        kPlace + "0 -7 2\n0 9223372036854775807 1\n" + "0 -9223372036854775807\nsummary: -7 3\n";
    // cg_diff's, and ours.
    for (const std::string& text :
         {"desc: Files compared:   a; b\ncmd:  a; b\nevents:  Ir Dr\n" + body,
          kVersion + "fl=#! difference\n" + body}) {
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

TEST_CASE("events: malformed extensions are refused") {
    const std::map<std::string, std::string> cases = {
        {kStart + "fl=#! pid 4\n", "FILE:4: expected '#! version' first (pid)"},
        {kStart + kPlace + "fl=#! version 1\n", "FILE:6: expected '#! version' first (version)"},
        {kStart + "fl=#! version 0\n", "FILE:4: versions begin with 1 (0)"},
        {kStart + "fl=#! version 2\n",
         "FILE:4: the file is of format version 2, but this assay reads only up to version 1; use "
         "a newer assay"},
        {kVersion + "fl=#! pid x\n", "FILE:5: malformed number (x)"},
        {kVersion + "fl=#! event Ix\n", "FILE:5: the events: line does not name this event (Ix)"},
        {kVersion + "fl=#! event Ir \"open\n",
         "FILE:5: malformed description of event Ir (\"open)"},
        {kVersion + "fl=#! derived \"x\" Ir\n", "FILE:5: expected '= formula' (Ir)"},
        {kVersion + "fl=#! derived \"x\" = Ir /\n",
         "FILE:5: formula 'Ir /': expected an event, a number or ( at its end"},
        {kVersion + "fl=#! object 1 /a\n", "FILE:5: objects must be numbered from 0 upwards (1)"},
        {kVersion + "fl=#! at 0:0x1 1 1\n",
         "FILE:5: an instruction without fn= before it (0:0x1 1 1)"},
        {kVersion + kPlace + "fl=#! at 0:0x1 1 1\n", "FILE:7: unknown object (0:0x1)"},
        {kVersion + kPlace + "fl=#! at 0x1 1 1\n", "FILE:7: expected OBJECT:0xADDRESS (0x1)"},
        {kVersion + "fl=#! object 0 a\n" + kPlace + "1 1\nfl=#! at 0:0x1 1 1\n1 1\n",
         "FILE:10: counts without fl= and fn= before them (1 1)"},
        {kVersion + "fl=#! object 0 a\n" + kPlace + "1 1\nfl=#! at 0:0x1 1 2\nsummary: 1 0\n",
         "FILE:10: the counts of Ir by instruction exceed its summary (2)"},
        {kVersion + "fl=#! site 2 a.c f 1\n", "FILE:5: sites must be numbered from 1 upwards (2)"},
        {kVersion + "fl=#! site 1 a.c f 1 2@1 3@3\n",
         "FILE:5: a site within one that does not come before it (3@3)"},
        {kVersion + "fl=#! site 1 a.c\n", "FILE:5: expected a file and a function (1)"},
        {kVersion + "fl=#! site 1 a.c f x\n", "FILE:5: malformed number (x)"},
        {kVersion + "fl=#! site 1 a.c f 1@\n", "FILE:5: malformed number ()"},
        {kSites + kPlace + "1 1\nfl=#! sites 1*2\n",
         "FILE:9: more sites than counts that they are of (1*2)"},
        {kSites + kPlace + "1 1\nfl=#! sites 0 1\n",
         "FILE:9: more sites than counts that they are of (1)"},
        {kSites + kPlace + "1 1\nfl=#! at-sites 1\n",
         "FILE:9: more sites than counts that they are of (1)"},
        {kSites + kPlace + "1 1\nfl=#! sites 2\n", "FILE:9: unknown site (2)"},
        {kSites + kPlace + "1 1\nfl=#! sites 1*\n", "FILE:9: malformed number ()"},
        {kContexts + "2 in=0 call=0:0x1 f\n",
         "FILE:9: contexts must be numbered from 1 upwards (2)"},
        {kContexts + "1 in=1 call=0:0x1 f\n",
         "FILE:9: a context within one that does not come before it (1)"},
        {kContexts + "1 in=0 0:0x1 f\n",
         "FILE:9: expected call=, interrupted= or inlined= (0:0x1 f)"},
        {kContexts + "1 in=0 inlined=3 f\n",
         "FILE:9: an inlined function outside of all calls (3)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! stack 2 in=1 inlined=4294967296 g\n",
         "FILE:10: number beyond 4294967295 (4294967296)"},
        {kContexts + "1 in=0 call=0:0x1:2:3 f\n", "FILE:9: malformed number (2:3)"},
        {kContexts + "1 in=0 call=1:0x1 f\n", "FILE:9: unknown object (1:0x1)"},
        {kContexts + "1 in=0 call=0:0x1 \"f\n", "FILE:9: malformed name of a function ()"},
        {kContexts + "1 in=0 call=0:0x1 f 1 2 3\n", "FILE:9: more counts than events (3)"},
        {kContexts + "1 in=0 call=0:0x1 f 2\nsummary: 1 2\n",
         "FILE:10: the counts of Ir by calling context exceed its summary (2)"},
    };
    for (const auto& [text, error] : cases) CHECK(error_of(text) == error);
    CHECK(error_of(kVersion + "fl=#! later anything\n" + kPlace + "1 2\nsummary: 2 0\n") == "");
}

TEST_CASE("events: malformed lists of values are refused") {
    const std::string start = kVersion + "fl=#! object 0 a\n" + kPlace + "1 1\nfl=#! value ";
    const std::string place = "0:0x1 1 ";
    const std::map<std::string, std::string> cases = {
        {"1:0x1 1 p 1", "unknown object (1:0x1)"},
        {"0:0x1 1", "expected the name of a list of values ()"},
        {place + "p", "malformed number ()"},
        {place + "p x", "malformed number (x)"},
        {place + "p -1", "malformed number (-1)"},
        {place + "p 18446744073709551616",
         "number beyond 18446744073709551615 (18446744073709551616)"},
        {place + "p 1 error=", "expected 0xVALUE:COUNT (error=)"},
        {place + "p 1 error=2", "the error exceeds the total (0:0x1 1 p 1 error=2)"},
        {place + "p 1 0x1", "expected 0xVALUE:COUNT (0x1)"},
        {place + "p 1 1:1", "expected 0xVALUE:COUNT (1:1)"},
        {place + "p 1 0x:1", "malformed number ()"},
        {place + "p 1 0x1:", "malformed number ()"},
        {place + "p 1 0x10000000000000000:1",
         "number beyond 18446744073709551615 (10000000000000000)"},
        {place + "p 1 0x1:0", "a value was never seen (0:0x1 1 p 1 0x1:0)"},
        {place + "p 2 0x1:2 0x2:1", "the counts exceed the total (0:0x1 1 p 2 0x1:2 0x2:1)"},
        {place + "p 2 0x1:18446744073709551615 0x2:18446744073709551615",
         "the counts exceed the total (0:0x1 1 p 2 0x1:18446744073709551615 "
         "0x2:1844674407370955161...)"},
        {place + "p 3 0x1:1 0x2:2",
         "the values are not sorted by their counts (0:0x1 1 p 3 0x1:1 0x2:2)"},
        {place + "p 3 0x1:2 0x1:1", "a value occurs twice (0:0x1 1 p 3 0x1:2 0x1:1)"},
    };
    for (const auto& [line, error] : cases)
        CHECK(error_of(start + line + "\n") == "FILE:9: " + error);
    CHECK(error_of(start + place + "p 3 error=3\t0x1:2 \nsummary: 1 0\n") == "");
    CHECK(error_of(kVersion + "fl=#! value 0:0x1 1 p 1\n") ==
          "FILE:5: an instruction without fn= before it (0:0x1 1 p 1)");
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
    Hotlist full = {"p", ~std::uint64_t{0}, 0, {}};
    CHECK_THROWS_AS(merge(full, a, 8), Error);
}

TEST_CASE("events: lines and lists of hostile length are refused") {
    CHECK(error_of(std::string(kMaxLineBytes + 1, 'x')).starts_with("FILE:1: the line is longer"));
    std::string text = "cmd: t\nevents:";
    for (std::size_t i = 0; i <= kMaxEvents; ++i) text += " e" + std::to_string(i);
    CHECK(error_of(text + "\n") == "FILE:2: more than 256 events (e256)");
    const std::string nested = std::string(100'000, '(') + "Ir";
    CHECK(error_of(kVersion + "fl=#! derived x = " + nested + "\n").find("nested too deeply") !=
          std::string::npos);
    CHECK(error_of(kStart + "\x1b[2J" + std::string(100, 'y') + "\n") ==
          "FILE:4: expected fl=, fn=, counts or summary: (\\x1b[2J" + std::string(56, 'y') +
              "...)");
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
    const Profile profile = read_events(folder.file("out"), recorder);
    CHECK(profile.header.command == "sh -c 'desc\\: a\\nb\\x01'");
    CHECK(profile.header.events[0].unit == "x y");
    CHECK(recorder.text.starts_with("./#! a\\nsummary: 5.c ./#! a\\nsummary: 5.c:f\\nfn=g\n"));
    CHECK(recorder.text.find("x x:a##\\##b\n") != std::string::npos);
}

TEST_CASE("events: headers that no reader would take are refused") {
    const TemporaryFolder folder;
    const auto write = [&](const Header& header) { Writer(folder.file("out"), header); };
    Header header;
    CHECK_THROWS_AS(write(header), Error);
    header.events = {{"1r", "", "", ""}};
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

TEST_CASE("events: a symbolic link stays one") {
    const TemporaryFolder folder;
    folder.write("real", "");
    std::filesystem::create_symlink("real", folder.file("link"));
    write_example(folder.file("link"));
    CHECK(std::filesystem::is_symlink(folder.file("link")));
    CHECK(folder.read("real").starts_with("desc: I1 cache"));
}

TEST_CASE("events: formulas") {
    const std::vector<Event> events = {{"a", "", "", ""}, {"b", "", "", ""}, {"a-c", "", "", ""}};
    const std::uint64_t totals[] = {6, 3, 50};
    const auto value = [&](const char* text) { return Formula(text, events).value(totals); };
    CHECK(value("a") == 6.0);
    CHECK(value(" 2 + a * b ") == 20.0);
    CHECK(value("(2 + a) * b") == 24.0);
    CHECK(value("a - b - 1") == 2.0);
    CHECK(value("a / b / 2") == 1.0);
    CHECK(value("a-b") == 3.0);
    CHECK(value("a-c") == 50.0);
    CHECK(value("-a + 7.5") == 1.5);
    CHECK(value("a / (b - 3)") == std::nullopt);
    CHECK(value("1 / (a / (b - 3))") == std::nullopt);
    for (const char* const text : {"", "a +", "(a", "a)", "a b", "d", "a ^ b", "1e999", "-"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(Formula(text, events), Error);
    }
    // A character 0 is not the end of the text.
    CHECK_THROWS_AS(Formula(std::string_view("a \0b", 4), events), Error);
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
