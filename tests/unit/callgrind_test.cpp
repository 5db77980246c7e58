// Callgrind's profiles: what they say is passed on as an events file's is; what is damaged is
// refused.
#include "framework/events/callgrind_parser.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <cstdlib>
#include <map>
#include <string>

namespace callgrind_test {

using namespace assay::events;
using assay::Error;

namespace {

// One line per call.
class Recorder final : public Handler {
  public:
    std::string text;

  private:
    void location(const Location& at) override {
        text.append(at.file).append(" ").append(at.function_file).append(":");
        text.append(at.function).append("\n");
    }
    void line(std::uint32_t line, std::span<const std::uint64_t> counts) override {
        text += std::to_string(line) + numbers(counts);
    }
    void instruction(const Instruction& at, std::span<const std::uint64_t> counts) override {
        text += "at " + std::to_string(at.object) + " " + std::to_string(at.address) + " line " +
                std::to_string(at.line) + numbers(counts);
    }
    void object(const Object& object) override { text += "object " + object.path + "\n"; }
    void call(const Call& call, std::span<const std::uint64_t> counts) override {
        text.append("call from ").append(std::to_string(call.line)).append(" to ");
        text.append(call.callee_file).append(":").append(call.callee).append(" x");
        text += std::to_string(call.calls) + numbers(counts);
    }
    static std::string numbers(std::span<const std::uint64_t> counts) {
        std::string out = ":";
        for (const std::uint64_t count : counts) out.append(" ").append(std::to_string(count));
        return out.append("\n");
    }
};

struct Result {
    std::string text;
    Header header;
    std::vector<std::uint64_t> totals;
};

Result parse(const std::string& text, std::size_t block = 1 << 20,
             Accept accept = Accept::kProfiles) {
    Recorder recorder;
    CallgrindParser parser("FILE", recorder, accept);
    for (std::size_t at = 0; at < text.size(); at += block)
        parser.feed(std::string_view(text).substr(at, block));
    parser.finish();
    return {recorder.text, parser.header(), parser.totals()};
}

std::string error_of(const std::string& text) {
    try {
        parse(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

const std::string kInstructions =
    "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./p x\n\n"
    "desc: I1 cache: \ndesc: Trigger: end\npositions: instr line\nevents: Ir Dr\n"
    "summary: 99 9\n\n"
    "ob=(1) /bin/p\nfl=(1) a.c\nfn=(1) main\n"
    "0x10 5 1\n+3 * 2 1\n"
    "cob=(2) lib.so\ncfi=(2) b.c\ncfn=(2) f\ncalls=3 0x40 9\n+5 +1 30 3\n"
    "jcnd=1/2 +8 -1\n* *\n"
    "fi=(3) in.h\n+2 20 4\nfe=(1)\n+1 -14 1\n\n"
    "ob=(2)\nfl=(2)\nfn=(2)\n0x40 9 10 2\ntotals: 18 3\n";

}  // namespace

TEST_CASE("callgrind: compressed names and positions, calls, jumps and inlined code") {
    for (const std::size_t block : {std::size_t{1}, std::size_t{1000}}) {
        const Result result = parse(kInstructions, block);
        CHECK(result.text ==
              "object /bin/p\n"
              "a.c a.c:main\n5: 1 0\nat 0 16 line 5: 1 0\n5: 2 1\nat 0 19 line 5: 2 1\n"
              "call from 6 to b.c:f x3: 30 3\n"
              "in.h a.c:main\n20: 4 0\nat 0 26 line 20: 4 0\n"
              "a.c a.c:main\n6: 1 0\nat 0 27 line 6: 1 0\n"
              "object lib.so\n"
              "b.c b.c:f\n9: 10 2\nat 1 64 line 9: 10 2\n");
        CHECK(result.totals == std::vector<std::uint64_t>{18, 3});
        CHECK(result.header.command == "./p x");
        CHECK(result.header.pid == 7);
        CHECK(result.header.descriptions.size() == 1);
    }
}

TEST_CASE("callgrind: the examples of its specification") {
    const Result plain =
        parse("events: Cycles Instructions Flops\nfl=file.f\nfn=main\n15 90 14 2\n16 20 12\n");
    CHECK(plain.text == "file.f file.f:main\n15: 90 14 2\n16: 20 12 0\n");
    const Result described = parse(
        "event: Gone = Yy : both\nevent: All = Ir + 10 Dr : Everything\n"
        "event: No = Xx\nevent: Ir : Instruction Fetches\nevents: Ir Dr\nfn=f\n1 2\n");
    CHECK(described.header.events[0].description == "Instruction Fetches");
    REQUIRE(described.header.derived.size() == 1);
    CHECK(described.header.derived[0].name == "Everything");
    CHECK(described.header.derived[0].formula == "Ir + 10 * Dr");
    CHECK(described.text == "??? ???:f\n1: 2 0\n");
    CHECK(parse("events: A\nfn=(below main)\n1 2\n").text == "??? ???:(below main)\n1: 2\n");
}

TEST_CASE("callgrind: objects tell functions apart whose files are unknown") {
    CHECK(parse("events: A\nob=a.so\nfl=???\nfn=f\n1 2\nob=b.so\n1 3\ncfn=g\ncalls=1 0\n1 4\n"
                "cob=a.so\ncfi=???\ncfn=g\ncalls=1 0\n1 5\ncfi=c.c\ncfn=h\ncalls=1 0\n1 6\n")
              .text ==
          "[a.so] [a.so]:f\n1: 2\n[b.so] [b.so]:f\n1: 3\ncall from 1 to [b.so]:g x1: 4\n"
          "call from 1 to [a.so]:g x1: 5\ncall from 1 to c.c:h x1: 6\n");
    CHECK(parse("events: A\nob=???\nfn=f\n1 2\n").text == "??? ???:f\n1: 2\n");
}

TEST_CASE("callgrind: negative costs of other writers") {
    const std::string text = "events: A B\nfn=f\n1 5 -4000\n2 0 96\ntotals: 5 -3904\n";
    const Result result = parse(text, 1 << 20, Accept::kDifferences);
    CHECK(result.header.difference);
    CHECK(result.totals == std::vector<std::uint64_t>{5, 0 - std::uint64_t{3904}});
    CHECK(
        error_of(text) ==
        "FILE:3: negative cost: only annotate, by function and source, reads differences (-4000)");
    for (const char* bad :
         {"1 - 1\n", "1 --4 1\n", "1 -1 9223372036854775808\n", "1 9223372036854775808 -1\n",
          "1 -9223372036854775808 1\n", "1 -9223372036854775807\n1 -9\n", "1 -1 2\ntotals: -2 2\n"})
        CHECK_THROWS_AS(
            parse(std::string("events: A B\nfn=f\n") + bad, 1 << 20, Accept::kDifferences), Error);
}

TEST_CASE("callgrind: parts add up") {
    const Result result = parse(
        "events: A\nfn=(1) f\n1 2\ntotals: 2\npart: 2\nevents: A\nsummary: 3\nfn=(1)\n1 3\n"
        "totals: 3\n");
    CHECK(result.totals == std::vector<std::uint64_t>{5});
    CHECK(error_of("events: A\nfn=f\n1 2\nevents: B\n") ==
          "FILE:4: the events of this part differ from those of the first (B)");
}

TEST_CASE("callgrind: what is malformed is refused, with line, reason and value") {
    const std::string start = "events: A\nfn=f\n";
    const std::map<std::string, std::string> cases = {
        {"version: 2\n", "FILE:1: this release reads only version 1 of Callgrind's format (2)"},
        {"version: 1\n", "FILE:1: the file ends without an events: line"},
        {"fn=f\n", "FILE:1: expected the events: line first"},
        {"events: A A\n", "FILE:1: the event occurs twice (A)"},
        {"positions: line instr\n", "FILE:1: expected 'instr', 'line' or 'instr line' (instr)"},
        {"events: A\n1 2\n", "FILE:2: costs without fn= before them (1 2)"},
        {"events: A\nfn=(3)\n", "FILE:2: this number stands for no name yet ((3))"},
        {start + "hello\n", "FILE:3: expected 'key: value', a position or costs (hello)"},
        {start + "xx=hello\n", "FILE:3: unknown specification (xx)"},
        {start + "1 2 3\n", "FILE:3: more costs than events (3)"},
        {start + "1 x\n", "FILE:3: malformed number (x)"},
        {start + "4294967296 1\n", "FILE:3: line number beyond 32 bits (4294967296)"},
        {start + "-1 1\n", "FILE:3: line number beyond 32 bits (18446744073709551615)"},
        {start + "1 18446744073709551615\n1 1\n", "FILE:4: the total of A exceeds 64 bits (1)"},
        {start + "calls=1 2\n", "FILE:3: calls= without a cfn= before it (1 2)"},
        {start + "cfn=g\ncalls=1 2\n", "FILE:4: the file ends without the costs of a call or jump"},
        {start + "cfn=g\ncalls=1 2\nfn=g\n", "FILE:5: expected the line of a call or jump (fn=g)"},
        {start + "jump=x 2\n", "FILE:3: malformed number (x)"},
        {start + "1 2\ntotals: 3\n",
         "FILE:4: the total of A differs from the sum of its costs, 2: the file is damaged or cut "
         "short (3)"},
    };
    for (const auto& [text, error] : cases) CHECK(error_of(text) == error);
}

TEST_CASE("callgrind: a file cut short anywhere is refused, if Callgrind itself wrote it") {
    const std::size_t creator = kInstructions.find("creator:");
    for (std::size_t size = creator + 20; size + 1 < kInstructions.size(); ++size)
        CHECK_MESSAGE(error_of(kInstructions.substr(0, size)) != "", size);
    CHECK(error_of(kInstructions.substr(0, kInstructions.size() - 1)) == "");
    CHECK(error_of("creator: callgrind-3.19.0\nevents: A\nfn=f\n1 2\n") ==
          "FILE:4: the file ends without its totals: it was cut short");
}

TEST_CASE("callgrind: the file's beginning says whose it is") {
    const TemporaryFolder folder;
    Recorder recorder;
    const char* const data = std::getenv("ASSAY_TEST_DATA");
    REQUIRE(data);
    const std::string path = std::string(data) + "/callgrind.out";
    CHECK(begins_as_events_file(path));
    CHECK(read_events(path, recorder).totals == std::vector<std::uint64_t>{18, 3});
    CHECK(!begins_as_events_file(folder.write("a.c", "int main(void) { return 0; }\n")));
}

}  // namespace callgrind_test
