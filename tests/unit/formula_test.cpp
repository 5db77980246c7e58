// The formulas of derived figures.
#include "framework/events/formula.h"
#include "framework/support/error.h"

#include <doctest/doctest.h>
#include <optional>
#include <vector>

namespace formula_test {

using namespace assay::events;
using assay::Error;

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

}  // namespace formula_test
