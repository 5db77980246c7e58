// The C++ interface for profilers does what the C interface does.
#include "framework/collector/profilers/trace_spec.h"
#include "framework/collector/trace/parser.h"
#include "framework/symbols/symbolizer.h"

#include <doctest/doctest.h>
#include <assay/profiler.hpp>
#include <cstring>
#include <map>

namespace {

using Spec = std::unique_ptr<trace_vlist_table, void (*)(void*)>;

Spec new_spec() {
    return {trace_vlist_table_alloc(), std::free};
}

// Whether both calls ask for the same.
template <typename InCpp, typename InC>
bool same(InCpp&& in_cpp, InC&& in_c) {
    const Spec one = new_spec(), other = new_spec(), none = new_spec();
    assay::Captures captures(one.get());
    in_cpp(captures);
    in_c(other.get());
    const auto equal = [](const Spec& a, const Spec& b) {
        return std::memcmp(a.get(), b.get(), sizeof *a) == 0;
    };
    return equal(one, other) && !equal(one, none);
}

int loads(std::uint16_t, std::uint32_t flags) {
    return (flags & TRACE_INSTR_LOAD) != 0;
}

trace_value_t target_of_branch(std::uint16_t, std::uint32_t flags) {
    return flags & TRACE_INSTR_CONDITIONAL ? TRACE_BRANCH_TARGET : TRACE_NONE;
}

}  // namespace

TEST_CASE("sdk: each capture of the C interface has one in C++") {
    using assay::Captures;
    CHECK(same([](Captures& wanted) { wanted.block_counts(); }, trace_capture_block_counts));
    CHECK(same([](Captures& wanted) { wanted.references(32, 16); },
               [](trace_vlist_table_t* spec) { trace_capture_references(spec, 32, 16); }));
    CHECK(same([](Captures& wanted) { wanted.fetches(32, 16); },
               [](trace_vlist_table_t* spec) { trace_capture_fetches(spec, 32, 16); }));
    CHECK(same([](Captures& wanted) { wanted.calls(); }, trace_capture_calls));
    CHECK(same([](Captures& wanted) { wanted.intervals(1000); },
               [](trace_vlist_table_t* spec) { trace_capture_intervals(spec, 1000); }));
    CHECK(same([](Captures& wanted) { wanted.repeats(); }, trace_capture_repeats));
    CHECK(same([](Captures& wanted) { wanted.branches(TRACE_RETURNS); },
               [](trace_vlist_table_t* spec) { trace_capture_branches(spec, TRACE_RETURNS); }));
    CHECK(same([](Captures& wanted) { wanted.predictions(); },
               [](trace_vlist_table_t* spec) { trace_capture_predictions(spec, 7, 7, 9); }));
    CHECK(same([](Captures& wanted) { wanted.footprints(64, 16); },
               [](trace_vlist_table_t* spec) { trace_capture_footprints(spec, 64, 16); }));
    CHECK(same([](Captures& wanted) { wanted.runs(); }, trace_capture_runs));
    CHECK(same([](Captures& wanted) { wanted.code(64); },
               [](trace_vlist_table_t* spec) { trace_capture_code(spec, 64); }));
    CHECK(same([](Captures& wanted) { wanted.predictions(1, 2, 3); },
               [](trace_vlist_table_t* spec) { trace_capture_predictions(spec, 1, 2, 3); }));
}

TEST_CASE("sdk: values by selector, by opcode, and picked") {
    const auto with_list = [](auto&& add) {
        return [add](trace_vlist_table_t* spec) {
            const std::unique_ptr<trace_vlist, void (*)(void*)> list(trace_vlist_alloc(),
                                                                     std::free);
            trace_add_value_to_vlist(list.get(), TRACE_LOADED);
            trace_add_value_to_vlist(list.get(), TRACE_DESTINATION);
            add(spec, list.get());
        };
    };
    using assay::Captures;
    CHECK(same(
        [](Captures& wanted) {
            wanted.values({TRACE_LOADED, TRACE_DESTINATION}, loads);
        },
        with_list([](auto* spec, auto* list) { trace_add_vlist_by_select(spec, loads, list); })));
    constexpr std::uint16_t kOpcode = TRACE_OPCODE(0, 0x8b);
    CHECK(same(
        [](Captures& wanted) {
            wanted.values({TRACE_LOADED, TRACE_DESTINATION}, kOpcode);
        },
        with_list([](auto* spec, auto* list) { trace_add_vlist_by_opc(spec, kOpcode, list); })));
    CHECK(same(
        [](Captures& wanted) { wanted.value(target_of_branch); },
        [](trace_vlist_table_t* spec) { trace_set_vlist_by_pick_value(spec, target_of_branch); }));
}

TEST_CASE("sdk: values that cannot be captured are refused") {
    const Spec spec = new_spec();
    assay::Captures wanted(spec.get());
    CHECK_THROWS_AS(wanted.values({TRACE_NONE}, loads), std::invalid_argument);
    CHECK_THROWS_AS(wanted.values({TRACE_LOADED}, TRACE_OPCODE(0x30, 0)), std::invalid_argument);
    for (int i = 0; i < TRACE_VLIST_MAX; ++i) wanted.values({TRACE_LOADED}, loads);
    CHECK_THROWS_AS(wanted.values({TRACE_LOADED}, loads), std::invalid_argument);
    CHECK_THROWS_AS(wanted.value([](std::uint16_t, std::uint32_t) -> trace_value_t { return 40; }),
                    std::invalid_argument);
}

TEST_CASE("sdk: what a trace has besides records") {
    const trace_marker_t markers[] = {{3, TRACE_MARKER_THREAD, 1, 0, "", ""}};
    trace_instr_t instrs[2] = {};
    const trace_block_t blocks[] = {{0x1000, 0, 2}};
    const std::uint64_t counts[] = {10, 10}, mispredictions[] = {4};
    assay::collector::Interval intervals[2] = {{{{7, 0, 0}, {2, 5, 0}}, {}}, {{}, {}}};
    intervals[0].row = {sizeof(trace_interval_t), 6, 1, 2, 9, intervals[0].blocks.data()};
    intervals[1].row = {sizeof(trace_interval_t), 6, 0, 0, 0, nullptr};
    assay::collector::AddressMap addresses;
    addresses.map(0x1000, 0x2000, 0, "/no/such/program");
    assay::symbols::Symbolizer symbolizer;
    assay::collector::SourcePlaces places(addresses, symbolizer);
    trace_parser parser{};
    parser.code = {blocks, instrs, {}};
    parser.counts = counts;
    parser.mispredictions = mispredictions;
    const std::uint64_t footprints[] = {255};
    parser.footprints = footprints;
    parser.addresses = &addresses;
    parser.places = &places;
    parser.markers = markers;
    parser.intervals = intervals;

    assay::Trace trace(&parser);
    REQUIRE(trace.markers().size() == 1);
    CHECK(trace.markers()[0].operation == TRACE_MARKER_THREAD);
    CHECK(trace.count(0) == 10);
    CHECK(trace.footprints()[0] == 255);
    CHECK(trace.mispredictions(0) == 0);  // not the last of its block
    CHECK(trace.mispredictions(1) == 4);

    const std::optional<assay::Interval> interval = trace.next_interval();
    REQUIRE(interval);
    CHECK(interval->thread == 6);
    CHECK(interval->complete);
    CHECK(interval->instructions == 9);
    REQUIRE(interval->blocks.size() == 2);
    CHECK(interval->blocks[1].block == 5);
    const std::optional<assay::Interval> rest = trace.next_interval();
    REQUIRE(rest);
    CHECK_FALSE(rest->complete);
    CHECK(rest->blocks.empty());
    CHECK_FALSE(trace.next_interval());

    CHECK(std::string(trace.object(0x1800)->path) == "/no/such/program");
    CHECK(trace.object(0x3000) == nullptr);
    const std::uint64_t pcs[] = {0x1004};
    trace.prepare_frames(pcs);
    REQUIRE(trace.frames(0x1004).size() == 1);
    CHECK(std::string(trace.frames(0x1004)[0].file) == "???");
}

namespace {

// Counts one event in the whole profile, a context and a part, and leaves the other one out.
class Parts final : public assay::Profiler {
  public:
    static constexpr const char* kName = "parts";
    static constexpr vp_event_t kEvents[] = {{"A", "", ""}, {"B", "", ""}};

    void capture(assay::Captures& wanted) override {
        wanted.calls();
        leave_out(1);
    }
    void process(assay::Trace&, assay::Samples& samples) override {
        samples.count(0x1000, 0, 5);
        samples.count(0x1000, 0, 6, 2);
        samples.count(0x1000, 0, 7, 0, part("one"));
        samples.count(0x1000, 0, 0);
    }
    std::string summary(std::span<const std::uint64_t>) override { return std::string(command()); }
};

// What the profiler has told assay.
std::vector<std::uint32_t> left_out;
std::map<std::string, std::uint32_t> parts;

vp_host_t make_host() {
    vp_host_t host{};
    host.size = sizeof host;
    host.command = "./program argument";
    host.part = [](const vp_host_t*, const char* name) {
        return parts.try_emplace(name, static_cast<std::uint32_t>(parts.size() + 1)).first->second;
    };
    host.leave_out = [](const vp_host_t*, std::uint32_t event) { left_out.push_back(event); };
    return host;
}

}  // namespace

TEST_CASE("sdk: a profiler writes parts, contexts, and leaves events out") {
    constexpr vp_dispatch_t table = assay::dispatch<Parts>();
    const vp_host_t host = make_host();
    REQUIRE(table.vp_init(&host) == 0);
    REQUIRE(table.vp_prof_init() != nullptr);
    CHECK(left_out == std::vector<std::uint32_t>{1});
    trace_parser parser{};
    const vsample_t* samples = nullptr;
    REQUIRE(table.vp_prof_process(1, &parser, &samples) == 3);  // none of weight 0
    CHECK(samples[0].weight == 5);
    CHECK(samples[0].context0 == 0);
    CHECK(samples[1].context0 == 2);
    CHECK(samples[1].context1 == 0);
    CHECK(samples[2].context1 == parts.at("one"));
    CHECK(std::string(table.vp_summary(nullptr, 0)) == "./program argument");
    table.vp_prof_release();
    table.vp_release();
}
