#include "framework/collector/results/counts.h"
#include "framework/collector/trace/address_map.h"
#include "framework/support/error.h"
#include "framework/trace/captures.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>

namespace collector_trace_test {

using namespace assay::collector;
using assay::trace::check;
using assay::trace::combine;
using LineFilter = assay::trace::Filter;

namespace {

// The filter as trace_vlist.h describes it, for references that do not straddle lines.
class Filter {
  public:
    explicit Filter(LineFilter filter) : filter_(filter) {}

    bool drops(std::uint64_t address) {
        if (filter_.sets == 0) return false;
        const std::uint64_t line = address / filter_.line_bytes;
        const auto [entry, is_new] = last_.try_emplace(line % filter_.sets, line);
        if (!is_new && entry->second == line) return true;
        entry->second = line;
        return false;
    }

  private:
    LineFilter filter_;
    std::map<std::uint64_t, std::uint64_t> last_;
};

}  // namespace

TEST_CASE("runs are left out only if all who capture references ask for that") {
    trace_vlist_table runs{}, all{}, filtered{}, counts{};
    trace_capture_runs(&runs);
    trace_capture_references(&all, 64, 0);
    trace_capture_footprints(&filtered, 64, 64);
    trace_capture_block_counts(&counts);
    CHECK(runs.spec.data.runs());
    for (const auto& other : {runs.spec, counts.spec}) {
        CHECK(combine(runs.spec, other).data.runs());
        CHECK(combine(other, runs.spec).data.runs());
    }
    for (const auto& other : {all.spec, filtered.spec})
        for (const auto& both : {combine(runs.spec, other), combine(other, runs.spec)}) {
            CHECK(!both.data.runs());
            CHECK(both.data.sets == 0);
            CHECK(!both.data.footprints());
        }
}

TEST_CASE("code goes through the filter of the data, and leaves no runs out") {
    trace_vlist_table code{}, runs{}, filtered{}, smaller{};
    trace_capture_footprints(&code, 64, 64);
    const assay::trace::Spec data = code.spec;
    trace_capture_code(&code, 64);
    trace_capture_runs(&runs);
    trace_capture_code(&runs, 64);
    trace_capture_references(&filtered, 64, 16);
    trace_capture_references(&smaller, 32, 64);
    trace_capture_code(&smaller, 32);
    CHECK(code.spec.data.sets == data.data.sets);
    CHECK(code.spec.data.kind == data.data.kind);
    CHECK(!runs.spec.data.runs());
    CHECK(combine(code.spec, filtered.spec).data.sets == std::min(16U, data.data.sets));
    CHECK(combine(filtered.spec, code.spec).code_line == 64);
    CHECK(combine(smaller.spec, code.spec).code_line == 32);
    check(code.spec);
    trace_vlist_table alone{}, odd{};
    trace_capture_code(&alone, 64);
    CHECK_THROWS_WITH_AS(check(alone.spec),
                         "code is captured only with data references: capture fetches instead",
                         assay::Error);
    trace_capture_references(&odd, 64, 0);
    trace_capture_code(&odd, 48);
    CHECK_THROWS_WITH_AS(check(odd.spec),
                         "code with lines of 48 bytes: not a power of two from 16 to 4096",
                         assay::Error);
}

TEST_CASE("misses are all that is recorded where nobody wants more") {
    const trace_cache_t code{sizeof code, 64, 64, 8, TRACE_LRU};
    const trace_cache_t data{sizeof data, 64, 64, 12, TRACE_LRU};
    const trace_cache_t other{sizeof other, 64, 64, 8, TRACE_LRU};
    const trace_cache_t large{sizeof large, 64, 4096, 2, TRACE_LRU};
    const trace_cache_t wide{sizeof wide, 64, 1, 65, TRACE_LRU};
    const trace_cache_t strange{sizeof strange, 64, 64, 8, 99};
    trace_vlist_table misses{}, others{}, counts{};
    trace_capture_misses(&misses, &code, &data);
    trace_capture_misses(&others, &code, &other);
    trace_capture_block_counts(&counts);
    CHECK(misses.spec.fetch.ways == 8);
    CHECK(misses.spec.data.ways == 12);
    CHECK(combine(misses.spec, misses.spec).data.ways == 12);
    CHECK(combine(counts.spec, misses.spec).data.ways == 12);
    check(misses.spec);
    const auto both = combine(misses.spec, others.spec);
    CHECK(both.fetch.ways == 8);
    CHECK(both.data.ways == 0);
    CHECK(both.data.sets == 64);
    for (const trace_cache_t* cache : {&large, &wide, &strange}) {
        trace_vlist_table alone{};
        trace_capture_misses(&alone, nullptr, cache);
        CHECK(alone.spec.captures == assay::trace::kCaptureReferences);
        CHECK(alone.spec.data.ways == 0);
        CHECK(alone.spec.data.sets == cache->sets);
    }
    const auto with = [&](auto capture) {
        trace_vlist_table wanted{};
        capture(&wanted);
        CHECK(combine(wanted.spec, misses.spec).fetch.ways == 8);
        return combine(misses.spec, wanted.spec).data.ways;
    };
    CHECK(with([](auto* wanted) { trace_capture_references(wanted, 64, 0); }) == 0);
    CHECK(with([](auto* wanted) { trace_capture_references(wanted, 64, 64); }) == 0);
    CHECK(with([](auto* wanted) { trace_capture_footprints(wanted, 64, 64); }) == 0);
    CHECK(with([](auto* wanted) { trace_capture_first_writes(wanted, 64, 64); }) == 0);
    CHECK(with([](auto* wanted) { trace_capture_runs(wanted); }) == 0);
    CHECK(with([](auto* wanted) { trace_capture_code(wanted, 64); }) == 0);
    CHECK(with([](auto* wanted) { trace_capture_calls(wanted); }) == 12);
}

TEST_CASE("a combined filter passes on what either filter passes on") {
    std::mt19937_64 random(1);
    for (const LineFilter a : {LineFilter{64, 64}, {32, 8}, {64, 1}, {0, 0}, {16, 256}})
        for (const LineFilter b : {LineFilter{64, 16}, {64, 64}, {128, 4}, {0, 0}, {32, 1}}) {
            Filter first(a), second(b), both(combine(a, b));
            std::uint64_t address = 0;
            bool good = true;
            for (int i = 0; i < 20'000; ++i) {
                // Mostly nearby, sometimes far.
                address = random() % 8 ? address + random() % 48 : random() % 65'536;
                const bool first_drops = first.drops(address);
                const bool second_drops = second.drops(address);
                const bool wanted = !first_drops || !second_drops;
                good &= !(wanted && both.drops(address));
            }
            CHECK_MESSAGE(good, a.line_bytes, ",", a.sets, " and ", b.line_bytes, ",", b.sets);
        }
}

TEST_CASE("captures of several profilers are put together") {
    const assay::trace::Spec counts{assay::trace::kCaptureBlockCounts, {}, {}};
    const assay::trace::Spec references{assay::trace::kCaptureReferences, {64, 32}, {}};
    const assay::trace::Spec fetches{assay::trace::kCaptureFetches, {}, {32, 16}};
    const assay::trace::Spec all = combine(combine(counts, references), fetches);
    CHECK(all.captures == 7);
    CHECK(all.data.sets == 32);  // who does not capture references has no say in their filter
    CHECK(all.fetch.line_bytes == 32);
    CHECK_NOTHROW(check(all));
    const assay::trace::Spec calls{assay::trace::kCaptureCalls, {}, {}};
    CHECK_NOTHROW(check(combine(all, calls)));
    CHECK(combine(all, calls).captures == (all.captures | assay::trace::kCaptureCalls));

    const assay::trace::Spec fewer{assay::trace::kCaptureReferences, {64, 8}, {}};
    const assay::trace::Spec shorter{assay::trace::kCaptureReferences, {16, 64}, {}};
    CHECK(combine(references, fewer).data.sets == 8);
    CHECK(combine(references, fewer).data.line_bytes == 64);
    // Filtered by 16 bytes, a reference to 64 would be dropped for the first 16 of them.
    CHECK(combine(references, shorter).data.sets == 0);
    CHECK(combine(shorter, references).data.line_bytes == 0);
    const assay::trace::Spec longer_fetches{assay::trace::kCaptureFetches, {}, {64, 16}};
    CHECK(combine(fetches, longer_fetches).fetch.sets == 1);
}

TEST_CASE("each capture has a row, and a specification satisfies itself") {
    std::uint32_t captures = 0;
    for (const assay::trace::CaptureRow& row : assay::trace::capture_rows()) {
        CHECK((captures & row.capture) == 0);
        captures |= row.capture;
    }
    CHECK((captures | assay::trace::kCaptureSystemCallTimes) ==
          (assay::trace::kCaptureIntervals << 1) - 1 - 128);
    trace_vlist_table table{};
    trace_capture_first_writes(&table, 64, 64);
    trace_capture_intervals(&table, 1000);
    trace_capture_predictions(&table, 7, 7, 9);
    const assay::trace::Spec& wanted = table.spec;
    const assay::trace::Spec both = combine(wanted, wanted);
    CHECK(both.captures == wanted.captures);
    CHECK(both.data == wanted.data);
    CHECK(both.interval == wanted.interval);
    CHECK(both.predictor == wanted.predictor);
    CHECK(combine({.recursion = 4}, wanted).recursion == 4);
}

TEST_CASE("without a filter sizes are not cut to its line") {
    const std::unique_ptr<trace_vlist_table, void (*)(void*)> table(trace_vlist_table_alloc(),
                                                                    std::free);
    trace_capture_references(table.get(), 64, 0);
    CHECK(table->spec.data.line_bytes == 0);
    trace_vlist_table_init(table.get());
    trace_capture_references(table.get(), 64, 32);
    CHECK(table->spec.data.line_bytes == 64);
    trace_capture_references(table.get(), 64, 0);
    CHECK(table->spec.data.sets == 0);
}

TEST_CASE("specifications that cannot be captured") {
    CHECK_THROWS(check({assay::trace::kCaptureReferences, {64, 48}, {}}));
    CHECK_THROWS(check({assay::trace::kCaptureReferences, {8, 64}, {}}));
    CHECK_NOTHROW(check({assay::trace::kCaptureFetches, {}, {64, 0}}));  // each of them
}

TEST_CASE("value lists") {
    const std::unique_ptr<trace_vlist_table, void (*)(void*)> table(trace_vlist_table_alloc(),
                                                                    std::free);
    const std::unique_ptr<trace_vlist, void (*)(void*)> list(trace_vlist_alloc(), std::free);
    CHECK(trace_add_value_to_vlist(list.get(), 40) == -1);
    for (int i = 0; i < TRACE_VLIST_MAX - 1; ++i)
        CHECK(trace_add_value_to_vlist(list.get(), TRACE_GPR0 + 3) == 0);
    CHECK(trace_add_vlist_by_opc(table.get(), TRACE_OPCODE(1, 0xAF), list.get()) == 0);
    CHECK(trace_add_vlist_by_opc(table.get(), TRACE_OPCODE(1, 0xAF), list.get()) == -1);
    CHECK(table->spec.captures == assay::trace::kCaptureValues);

    const auto conditional = [](std::uint16_t, std::uint32_t flags) -> int {
        return (flags & TRACE_INSTR_CONDITIONAL) != 0;
    };
    trace_vlist_table_init(table.get());
    CHECK(trace_add_vlist_by_select(table.get(), conditional, list.get()) == 0);
    CHECK(table->entries[0][0x74][0].selected);
    CHECK(table->entries[1][0x84][0].list.count == TRACE_VLIST_MAX - 1);
    CHECK_FALSE(table->entries[0][0x8B][0].selected);

    const auto address = [](std::uint16_t, std::uint32_t flags) -> trace_value_t {
        return flags & TRACE_INSTR_LOAD ? TRACE_EFFECTIVE_ADDRESS : TRACE_NONE;
    };
    CHECK(trace_set_vlist_by_pick_value(table.get(), address) == 0);
    CHECK(table->entries[0][0x8B][TRACE_INSTR_LOAD].list.values[0] == TRACE_EFFECTIVE_ADDRESS);
    CHECK_FALSE(table->entries[0][0x74][0].selected);
}

TEST_CASE("value lists by opcode map") {
    const std::unique_ptr<trace_vlist_table, void (*)(void*)> table(trace_vlist_table_alloc(),
                                                                    std::free);
    const std::unique_ptr<trace_vlist, void (*)(void*)> list(trace_vlist_alloc(), std::free);
    for (int i = 0; i < TRACE_VLIST_MAX; ++i)
        trace_add_value_to_vlist(list.get(), TRACE_DESTINATION);
    // A full list fits once only: each map has entries of its own.
    unsigned maps = 0;
    for (unsigned map = 0; map < 256; ++map)
        maps += trace_add_vlist_by_opc(table.get(), TRACE_OPCODE(map, 0x58), list.get()) == 0;
    CHECK(maps == assay::trace::kOpcodeMaps.size());
    for (const unsigned map : {0, 1, 2, 3, 0x11, 0x12, 0x13, 0x15, 0x16, 0x18, 0x19, 0x1a}) {
        trace_vlist_table_init(table.get());
        CHECK(trace_add_vlist_by_opc(table.get(), TRACE_OPCODE(map, 0x58), list.get()) == 0);
        static unsigned wanted;
        static bool asked;
        wanted = TRACE_OPCODE(map, 0x58), asked = false;
        const auto same = [](std::uint16_t opcode, std::uint32_t) -> int {
            asked |= opcode == wanted;
            return opcode == wanted;
        };
        CHECK(trace_add_vlist_by_select(table.get(), same, list.get()) == -1);
        CHECK(asked);
    }
}

TEST_CASE("addresses belong to the mapping that was there last") {
    AddressMap map;
    map.map(0x1000, 0x5000, 0, "a");
    map.map(0x2000, 0x3000, 0x100, "b");
    CHECK(map.find(0xFFF) == kNoMapping);
    CHECK(map.find(0x1FFF) == 0);
    CHECK(map.find(0x2000) == 1);
    CHECK(map.find(0x3000) == 0);
    CHECK(map.find(0x5000) == kNoMapping);
    AddressMap::Finder finder(map);
    for (const std::uint64_t pc : {0x1FFF, 0x2000, 0x2FFF, 0x3000, 0x5000, 0xFFF, 0x1000})
        CHECK(finder.find(pc) == map.find(pc));
    const trace_object_t* upper = map.object(0x4000);
    REQUIRE(upper);
    CHECK(std::string(upper->path) == "a");
    CHECK(upper->start == 0x3000);
    CHECK(upper->offset == 0x2000);

    map.unmap(0x2800, 0x3800);
    CHECK(map.object(0x2800) == nullptr);
    CHECK(map.object(0x27FF) != nullptr);
    CHECK(map.find(0x2800) == 1);
    CHECK(map.object(0x3800)->offset == 0x2800);
    map.map(0x2800, 0x2900, 0, "c");
    CHECK(map.find(0x2850) == 2);
    CHECK(map.find(0x2900) == 1);
}

TEST_CASE("counts are kept by address and mapping") {
    SampleDatabase database(2);
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> expected;
    std::mt19937 random(1);
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t pc = 0x400000 + random() % 20'000;
        const std::uint32_t mapping = random() % 2 ? 0 : kNoMapping;
        database.add({pc, mapping}, 1, i);
        expected[{pc, mapping}] += static_cast<std::uint64_t>(i);
    }
    REQUIRE(database.rows() == expected.size());
    std::vector<SampleDatabase::Row> rows;
    database.visit_sorted([&](const SampleDatabase::Row& row) { rows.push_back(row); });
    REQUIRE(rows.size() == expected.size());
    const auto by_mapping = [](const auto& a, const auto& b) {
        return std::pair(a.key.mapping, a.key.pc) < std::pair(b.key.mapping, b.key.pc);
    };
    CHECK(std::is_sorted(rows.begin(), rows.end(), by_mapping));
    bool good = true;
    for (const auto& [key, row] : rows) {
        good &= database.counts(row)[0] == 0;
        good &= database.counts(row)[1] == expected[{key.pc, key.mapping}];
    }
    CHECK(good);
}

}  // namespace collector_trace_test
