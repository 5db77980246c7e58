#include "plugins/machine/replacement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace way_order_test {

namespace {

using machine::WayOrder;

// The same, as a list.
struct Plain {
    std::vector<std::uint32_t> ways;

    void move(std::uint32_t way, bool to_front) {
        ways.erase(std::find(ways.begin(), ways.end(), way));
        ways.insert(to_front ? ways.begin() : ways.end(), way);
    }
};

TEST_CASE("an order of ways is that of a list") {
    std::mt19937 random(1);
    for (std::uint32_t ways = 1; ways <= WayOrder::kMost; ++ways) {
        CAPTURE(ways);
        WayOrder order(ways);
        Plain plain;
        for (std::uint32_t way = 0; way < ways; ++way) plain.ways.push_back(way);
        for (int i = 0; i < 1000; ++i) {
            const auto way = static_cast<std::uint32_t>(random() % ways);
            switch (random() % 4) {
                case 0:
                    order.move_to_front(way);
                    plain.move(way, true);
                    break;
                case 1:
                    order.move_to_back(way, ways);
                    plain.move(way, false);
                    break;
                case 2: {
                    const std::uint32_t last = plain.ways.back();
                    plain.move(last, true);
                    CHECK(order.take_last(ways) == last);
                    break;
                }
                default:
                    if (ways == 1) break;
                    order.swap_first_two();
                    std::swap(plain.ways[0], plain.ways[1]);
            }
            CHECK(order.front() == plain.ways[0]);
            if (ways > 1) CHECK(order.second() == plain.ways[1]);
        }
        // All of them.
        for (std::uint32_t i = 0; i < ways; ++i) {
            CHECK(order.take_last(ways) == plain.ways.back());
            plain.move(plain.ways.back(), true);
        }
    }
}

}  // namespace

}  // namespace way_order_test
