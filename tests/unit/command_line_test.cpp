#include "framework/support/command_line.h"
#include "framework/support/error.h"

#include <doctest/doctest.h>

namespace command_line_test {

using namespace assay;
using Words = std::vector<std::string>;

namespace {

constexpr unsigned kOne = 1, kOther = 2;

// Two commands that share a table.
struct Line {
    explicit Line(unsigned command) : line(command) {
        line.add_flag("-q,--quiet", quiet, "say nothing");
        line.add_flag("-v,--verbose", verbose, "say more");
        line.add_text("-o,--out", out, "FILE", "where").of(kOne);
        line.add_list("--show", show, "A,B,...", "which");
        line.add_number("--jobs", jobs, 1, 64, "N", "how many").of(kOther);
        line.add_switch("--color,--no-color", color, "in colours");
        line.add_program(program);
        line.excludes("quiet", "verbose");
        line.needs("show", "out");
        line.refuse_those_of(kOther, "is of the other command");
    }
    void take(const Words& words, Order order = Order::kAny) {
        line.take(line.parse(words, order));
        line.check();
    }

    CommandLine line;
    bool quiet = false, verbose = false;
    std::string out, color;
    Words show, program;
    unsigned jobs = 0;
};

std::string refusal(const Words& words, unsigned command = kOne) {
    try {
        Line(command).take(words);
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}

}  // namespace

TEST_CASE("values stand behind an equals sign, in the next word or behind the letter") {
    for (const Words& words : {Words{"--out=a"}, {"--out", "a"}, {"-o", "a"}, {"-oa"}, {"-qoa"}}) {
        Line line(kOne);
        line.take(words);
        CHECK(line.out == "a");
        CHECK(line.quiet == (words.front() == "-qoa"));
    }
    Line line(kOne);
    line.take({"--no-color", "x", "-o", "1", "--out=2", "--show=a,b", "--", "--show=c"});
    CHECK(line.color == "no");
    CHECK(line.out == "2");
    CHECK(line.show == Words{"a", "b"});
    CHECK(line.program == Words{"x", "--show=c"});
}

TEST_CASE("what stands behind a program is the program's") {
    Line line(kOne);
    line.take({"-q", "ls", "-v", "--", "-q"}, Order::kOptionsFirst);
    CHECK(line.program == Words{"ls", "-v", "--", "-q"});
    CHECK(!line.verbose);
}

TEST_CASE("what is wrong is said with its remedy") {
    CHECK(refusal({"--qiet"}) == "unknown option --qiet; did you mean --quiet?");
    CHECK(refusal({"--quiet=1"}) == "--quiet takes no value");
    CHECK(refusal({"--out"}) == "--out needs a value: --out=FILE");
    CHECK(refusal({"-o"}) == "-o needs a value: -o FILE");
    CHECK(refusal({"--out="}) == "--out=: the value is empty");
    CHECK(refusal({"-o", "x", "--show=a,,b"}) == "--show=a,,b: a value is empty");
    CHECK(refusal({"-qv"}) == "--quiet cannot be combined with --verbose; leave one of them out");
    CHECK(refusal({"--show=a"}) == "--show is for --out: give both");
    CHECK(refusal({"--jobs=3"}) == "--jobs is of the other command");
    CHECK(refusal({"--jobs=65"}, kOther) == "--jobs: \"65\" is not a number from 1 to 64");
    CHECK(refusal({"--jobs=3"}, kOther) == "nothing");
}

TEST_CASE("in a configuration file, options of other commands are left to those") {
    Line line(kOne);
    line.line.take(std::vector<Setting>{{"jobs", "3", "c.yaml:1"}, {"quiet", "no", "c.yaml:2"}});
    CHECK(line.jobs == 0);
    CHECK(!line.line.has("quiet"));
    CHECK_THROWS_WITH_AS(line.line.take(std::vector<Setting>{{"quiet", "5", "c.yaml:3"}}),
                         "c.yaml:3: quiet: \"5\" is not yes or no", Error);
}

}  // namespace command_line_test
