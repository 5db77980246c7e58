// assay diff: limits, and two texts side by side.
#include "framework/support/error.h"
#include "tools/diff/limits.h"
#include "tools/sources/side_by_side.h"

#include <doctest/doctest.h>
#include <random>
#include <string>
#include <vector>

namespace diff_test {

using namespace assay;
using namespace assay::diff;

TEST_CASE("diff: limits as they are written") {
    const Limit total = parse_limit("Ir:+0.5%");
    CHECK(total.event == "Ir");
    CHECK(total.kind == "");
    CHECK(total.is_percentage);
    CHECK((total.most == 5 && total.decimals == 1));
    const Limit function = parse_limit("D1mr@std::parse*:+1000");
    CHECK(function.event == "D1mr");
    CHECK((function.kind == "function" && function.pattern == "std::parse*"));
    CHECK((function.most == 1000 && !function.is_percentage));
    const Limit file = parse_limit("D1 miss rate@file=src/*.c:-2");
    CHECK(file.event == "D1 miss rate");
    CHECK((file.kind == "file" && file.pattern == "src/*.c" && file.most == -2));
    const Limit comparing = parse_limit("Ir@operator==:0");
    CHECK((comparing.kind == "function" && comparing.pattern == "operator=="));
    for (const char* text :
         {"", "Ir", "Ir:", "Ir:+", "Ir:%", "Ir:+x", "Ir:1.2.3", ":+1", "Ir@:+1", "Ir@file=:+1",
          "Ir:+1.1234567", "Ir:1234567890123456", "Ir:+1 %", "Ir:--1"})
        CHECK_THROWS_WITH_AS(parse_limit(text), doctest::Contains("--fail-on="), Error);
}

TEST_CASE("diff: what exceeds a limit, exactly") {
    const Limit percent = parse_limit("Ir:+0.3%");
    CHECK(!percent.is_exceeded(std::uint64_t{1000}, std::uint64_t{1003}));
    CHECK(percent.is_exceeded(std::uint64_t{1000}, std::uint64_t{1004}));
    CHECK(percent.is_exceeded(std::uint64_t{0}, std::uint64_t{1}));
    CHECK(!percent.is_exceeded(std::uint64_t{0}, std::uint64_t{0}));
    const std::uint64_t most = (std::uint64_t{1} << 63) - 1;
    CHECK(!parse_limit("Ir:+0").is_exceeded(most, most));
    CHECK(parse_limit("Ir:+0").is_exceeded(most - 1, most));
    CHECK(parse_limit("Ir:+999999999.999999%").is_exceeded(std::uint64_t{1}, most));
    const Limit less = parse_limit("Ir:-10%");
    CHECK(less.is_exceeded(std::uint64_t{100}, std::uint64_t{91}));
    CHECK(!less.is_exceeded(std::uint64_t{100}, std::uint64_t{90}));
    CHECK(parse_limit("rate:+0.5").is_exceeded(1.0, 1.6));
    CHECK(!parse_limit("rate:+0.5").is_exceeded(1.0, 1.4));
}

TEST_CASE("diff: which names a limit is of") {
    CHECK(glob_matches_function("parse*", "parse(int)"));
    CHECK(glob_matches_function("parse", "parse(int) [clone .isra.0]"));
    CHECK(glob_matches_function("ns::f<int>", "void ns::f<int>(int)"));
    CHECK(!glob_matches_function("parse", "parser"));
    CHECK(glob_matches_path("src/*.c", "/home/user/src/a.c"));
    CHECK(glob_matches_path("a.c", "/home/user/src/a.c"));
    CHECK(!glob_matches_path("a.c", "/home/user/src/aa.c"));
}

TEST_CASE("diff: limits of what there is") {
    events::Header header;
    header.events = {{"Ir", "", "", ""}, {"Dr", "", "", ""}};
    header.derived = {{"reads", "Dr / Ir", "%"}};
    const std::vector<std::uint64_t> a = {100, 10}, b = {110, 22}, none = {0, 0};
    const Limit limit = parse_limit("Ir@*:+5%"), rate = parse_limit("reads:+5");
    const auto found = check_limit(limit, {{"f", a, a}, {"g", a, b}, {"h", none, a}}, header);
    REQUIRE(found.size() == 2);
    CHECK(verdict_text(found[0]) == "Ir of h: 0 -> 100, +100 (new), exceeds Ir@*:+5%");
    CHECK(verdict_text(found[1]) == "Ir of g: 100 -> 110, +10 (+10.00%), exceeds Ir@*:+5%");
    const auto within = check_limit(limit, {{"f", a, a}}, header);
    REQUIRE(within.size() == 1);
    CHECK(!within[0].is_exceeded);
    CHECK(check_limit(limit, {}, header).empty());
    const auto figure = check_limit(rate, {{"", a, b}}, header);
    REQUIRE(figure.size() == 1);
    CHECK(verdict_text(figure[0]) ==
          "reads: 10.00% -> 20.00%, +10 points (+100.00%), exceeds reads:+5");
    CHECK(check_limit(rate, {{"", a, none}}, header).empty());
    CHECK_THROWS_WITH_AS(check_limit(parse_limit("Irr:+1"), {}, header),
                         doctest::Contains("did you mean 'Ir'?"), Error);
}

TEST_CASE("diff: texts side by side") {
    constexpr std::size_t kNone = LinePair::kNone;
    using Pairs = std::vector<LinePair>;
    CHECK(side_by_side({}, {}).empty());
    CHECK(side_by_side({"a"}, {"a"}) == Pairs{{0, 0}});
    CHECK(side_by_side({"a", "b", "c"}, {"a", "x", "c"}) == Pairs{{0, 0}, {1, 1}, {2, 2}});
    CHECK(side_by_side({"a", "b", "c", "d"}, {"a", "c", "d", "e"}) ==
          Pairs{{0, 0}, {1, kNone}, {2, 1}, {3, 2}, {kNone, 3}});
    CHECK(side_by_side({"a"}, {}) == Pairs{{0, kNone}});
    // An edited line beside what it has become, whatever has been put in before it.
    CHECK(side_by_side({"a", "  sum += x[i];", "c"}, {"a", "// words", "", "sum += y[i];", "c"}) ==
          Pairs{{0, 0}, {kNone, 1}, {kNone, 2}, {1, 3}, {2, 4}});
    CHECK(side_by_side({"one two", "b"}, {"x", "one too"}) ==
          Pairs{{kNone, 0}, {0, 1}, {1, kNone}});
    // Every line once, in order, and lines that nothing was done to beside themselves.
    std::mt19937 random(1);
    const std::vector<std::string> words = {"a", "b", "c", "d", "e"};
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string_view> texts[2];
        for (auto& text : texts)
            for (std::size_t i = random() % 20; i > 0; --i) text.push_back(words[random() % 5]);
        std::size_t next[2] = {0, 0}, equal = 0;
        for (const LinePair& pair : side_by_side(texts[0], texts[1])) {
            if (pair.before != kNone) CHECK(pair.before == next[0]++);
            if (pair.after != kNone) CHECK(pair.after == next[1]++);
            if (pair.before != kNone && pair.after != kNone &&
                texts[0][pair.before] == texts[1][pair.after])
                ++equal;
        }
        CHECK((next[0] == texts[0].size() && next[1] == texts[1].size()));
        // The longest common subsequence, by its definition.
        std::vector<std::vector<std::size_t>> longest(
            texts[0].size() + 1, std::vector<std::size_t>(texts[1].size() + 1));
        for (std::size_t i = 1; i <= texts[0].size(); ++i)
            for (std::size_t j = 1; j <= texts[1].size(); ++j)
                longest[i][j] = texts[0][i - 1] == texts[1][j - 1]
                                    ? longest[i - 1][j - 1] + 1
                                    : std::max(longest[i - 1][j], longest[i][j - 1]);
        CHECK(equal >= longest.back().back());
    }
}

}  // namespace diff_test
