// Which references a first cache needs to see.
#include "plugins/machine/coherence.h"
#include "plugins/machine/needed_records.h"

#include <doctest/doctest.h>

namespace recent_lines_test {

namespace {

using machine::LineWords;
using machine::RecentLines;

TEST_CASE("the most recent line of a set needs not be seen again") {
    RecentLines recent(4);
    CHECK(recent.refer(8, 0));
    CHECK_FALSE(recent.refer(8, 0));
    CHECK(recent.refer(9, 0));  // of another set
    CHECK_FALSE(recent.refer(8, 0));
    CHECK(recent.refer(12, 0));  // of the same
    CHECK(recent.refer(8, 0));
}

TEST_CASE("the first write to each word is seen") {
    RecentLines recent(1);
    CHECK(recent.refer(5, 0));
    CHECK(recent.refer(5, 0b1));
    CHECK_FALSE(recent.refer(5, 0b1));
    CHECK(recent.refer(5, 0b110));
    CHECK_FALSE(recent.refer(5, 0b11));
    CHECK_FALSE(recent.refer(5, 0));
    CHECK(recent.refer(6, 0b1));
    CHECK(recent.refer(5, 0b1));
}

TEST_CASE("what is forgotten is seen again") {
    RecentLines recent(2);
    recent.refer(2, 0);
    recent.refer(3, 0);
    recent.forget_if(false, 4);
    CHECK_FALSE(recent.refer(2, 0));
    recent.forget_if(true, 4);
    CHECK(recent.refer(2, 0));
    CHECK_FALSE(recent.refer(3, 0));
    recent.forget();
    CHECK(recent.refer(3, 0));
}

TEST_CASE("words of a line") {
    CHECK(LineWords(64).of(0, 1) == 0b1);
    CHECK(LineWords(64).of(4, 8) == 0b11);
    CHECK(LineWords(64).of(56, 8) == 0b1000'0000);
    CHECK(LineWords(512).of(0, 512) == ~std::uint64_t{0});
    CHECK(LineWords(4096).of(64, 1) == 0b10);
    CHECK(LineWords(16).of(8, 8) == 0b10);
}

}  // namespace

}  // namespace recent_lines_test
