// Recording references, and layouts of structs.
#include "plugins/struct_layout/layouts.h"
#include "plugins/struct_layout/replay.h"

#include <doctest/doctest.h>
#include <random>

namespace struct_layout_test {

using namespace struct_layout;

TEST_CASE("struct_layout: what was recorded is replayed") {
    std::mt19937_64 random(1);
    Recording recording(UINT64_MAX);
    std::vector<std::pair<std::uint32_t, trace_record_t>> all, replayed;
    for (int round = 0; round < 300; ++round) {
        const std::uint32_t thread = random() % 3;
        std::vector<trace_record_t> records(random() % 2000);
        for (trace_record_t& record : records) {
            const auto site = static_cast<std::uint32_t>(random() % 500);
            record = {random() >> (random() % 64), site, 0};
            all.emplace_back(thread, record);
        }
        recording.add(thread, records);
    }
    recording.end();
    CHECK(recording.references() == all.size());
    CHECK(recording.left_out() == 0);
    for (int times = 0; times < 2; ++times) {
        replayed.clear();
        recording.replay([&](std::uint32_t thread, std::span<const trace_record_t> records) {
            for (const trace_record_t& record : records) replayed.emplace_back(thread, record);
        });
        REQUIRE(replayed.size() == all.size());
        std::size_t equal = 0;
        for (std::size_t i = 0; i < all.size(); ++i)
            equal += all[i].first == replayed[i].first &&
                     all[i].second.site == replayed[i].second.site &&
                     all[i].second.value == replayed[i].second.value;
        CHECK(equal == all.size());
    }
}

TEST_CASE("struct_layout: beyond the limit nothing is recorded") {
    Recording recording(1);
    const std::vector<trace_record_t> records(100000, trace_record_t{4096, 1, 0});
    recording.add(0, records);
    recording.end();
    CHECK(recording.references() == 65536);
    CHECK(recording.left_out() == 100000 - 65536);
}

namespace {

// Members of these sizes, one after the other; each bit of `visits` is a member.
Struct make(const std::vector<std::uint64_t>& sizes,
            const std::map<std::uint64_t, std::uint64_t>& visits) {
    Struct made;
    made.name = "made";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        Unit unit;
        unit.members.push_back({std::string(1, static_cast<char>('a' + i)), "T", 0});
        unit.alignment = sizes[i];
        unit.offset = (made.bytes + sizes[i] - 1) / sizes[i] * sizes[i];
        unit.bytes = sizes[i];
        made.bytes = unit.offset + sizes[i];
        made.alignment = std::max(made.alignment, sizes[i]);
        made.units.push_back(unit);
        made.bits.push_back(static_cast<std::uint32_t>(i));
    }
    made.bytes = (made.bytes + made.alignment - 1) / made.alignment * made.alignment;
    made.visits = visits;
    for (std::uint32_t i = 0; i < made.units.size(); ++i)
        made.units[i].references = made.units[i].visits = made.together(i, i);
    return made;
}

std::string order(const Layout& layout, const Struct& of) {
    std::string text;
    for (const Layout::Part& part : layout.parts) {
        if (&part != &layout.parts[0]) text += "| ";
        for (const std::uint32_t unit : part.units)
            text += of.units[unit].name() + std::to_string(layout.offsets[unit]) + " ";
    }
    return text;
}

}  // namespace

TEST_CASE("struct_layout: members that are used together come together") {
    // a and d in most visits, b and c in others, e never.
    const Struct of = make({8, 8, 8, 8, 8}, {{0b01001, 100}, {0b00110, 20}});
    const std::vector<Layout> found = layouts(of, 16);
    REQUIRE(found.size() == 3);
    CHECK(order(found[0], of) == "a0 d8 b16 c24 e32 ");
    CHECK(found[0].keeps_places(of));
    CHECK(found[1].name == "split, 2 of 5 in the first");
    CHECK(order(found[1], of) == "a0 d8 | b0 c8 e16 ");
    CHECK(order(found[2], of) == "a0 d8 b16 c24 | e0 ");
}

TEST_CASE("struct_layout: holes are filled, and the size that is there can be kept") {
    const Struct of = make({1, 8, 1, 4}, {{0b1111, 10}});
    CHECK(of.bytes == 24);
    const std::vector<Layout> found = layouts(of, 64);
    REQUIRE(found.size() == 2);  // 16 divides a line
    CHECK(found[0].parts[0].bytes == 16);
    CHECK(order(found[0], of) == "b0 d8 a12 c13 ");
    CHECK(found[1].parts[0].padded);
    CHECK(found[1].keeps_places(of));
    CHECK(text(found[1], of).find("char padding[10];") != std::string::npos);
}

TEST_CASE("struct_layout: a member that does not fit into a hole leaves it to the next") {
    Struct of = make({4, 8, 1, 4}, {{0b0001, 5}, {0b0011, 10}});
    of.units[2].bytes = 40;  // an array of char
    CHECK(order(layouts(of, 64)[0], of) == "a0 d4 b8 c16 ");
}

TEST_CASE("struct_layout: a struct is split where members are used less than others") {
    // a and d in each visit, the others in every second.
    const Struct of = make({8, 8, 8, 8, 8}, {{0b01001, 100}, {0b01111, 100}});
    const std::vector<Layout> found = layouts(of, 16);
    REQUIRE(found.size() == 3);
    CHECK(order(found[1], of) == "a0 d8 | b0 c8 e16 ");
    CHECK(order(found[2], of) == "a0 d8 b16 c24 | e0 ");
}

}  // namespace struct_layout_test
