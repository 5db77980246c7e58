// The C++ interface for profilers does what the C interface does.
#include "framework/collector/profilers/trace_parser.h"
#include "framework/symbols/symbolizer.h"
#include "framework/trace/captures.h"

#include <doctest/doctest.h>
#include <array>
#include <assay/context_rows.hpp>
#include <assay/profiler.hpp>
#include <assay/text.hpp>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace sdk_test {

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
    CHECK(same([](Captures& wanted) { wanted.facts(); }, trace_capture_facts));
    CHECK(same([](Captures& wanted) { wanted.branches(TRACE_RETURNS); },
               [](trace_vlist_table_t* spec) { trace_capture_branches(spec, TRACE_RETURNS); }));
    CHECK(same([](Captures& wanted) { wanted.predictions(); },
               [](trace_vlist_table_t* spec) { trace_capture_predictions(spec, 7, 7, 9); }));
    CHECK(same([](Captures& wanted) { wanted.footprints(64, 16); },
               [](trace_vlist_table_t* spec) { trace_capture_footprints(spec, 64, 16); }));
    CHECK(same([](Captures& wanted) { wanted.runs(); }, trace_capture_runs));
    CHECK(same([](Captures& wanted) { wanted.blocks(); }, trace_capture_blocks));
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
    CHECK(trace.thread_end() == nullptr);  // it creates another one only
    const trace_marker_t ends[] = {markers[0], {3, TRACE_MARKER_THREAD_END, 17, 0, "", ""}};
    parser.markers = ends;
    REQUIRE(trace.thread_end() != nullptr);
    CHECK(trace.thread_end()->address == 17);
    parser.markers = {};
    CHECK(trace.thread_end() == nullptr);
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

std::string last_error;

vp_host_t make_host() {
    vp_host_t host{};
    host.size = sizeof host;
    host.command = "./program argument";
    host.part = [](const vp_host_t*, const char* name) {
        return parts.try_emplace(name, static_cast<std::uint32_t>(parts.size() + 1)).first->second;
    };
    host.error = [](const vp_host_t*, const char* message) { last_error = message; };
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

namespace {

constexpr std::array<vp_option_t, 2> kLimits{{
    {"least", "N", "1", "", VP_OPTION_UNSIGNED, 0},
    {"most", "N", "9", "", VP_OPTION_UNSIGNED, 0},
}};

// Gives the numbers from --least to --most, three at a time.
class Portions final : public assay::Profiler {
  public:
    static constexpr const char* kName = "portions";
    static constexpr std::array<vp_event_t, 1> kEvents{{{"A", "", ""}}};
    static constexpr const auto& kOptions = kLimits;
    static constexpr bool kPrintsValues = true;
    static constexpr std::array kValueLists{"one", "other"};

    void option(std::string_view name, const std::string& value) override {
        (name == "least" ? least_ : most_) = assay::number(name, value, 1, 100);
    }
    void check_options() override {
        if (least_ > most_) throw assay::BadOption("least", std::to_string(least_), "too much");
    }
    void capture(assay::Captures& wanted) override { wanted.block_counts(); }
    void finish(assay::Trace&, assay::Samples&) override { next_ = least_; }
    bool finish_more(assay::Trace&, assay::Samples& samples) override {
        for (; next_ <= most_ && samples.size() < 3; ++next_) samples.count(0x1000, 0, next_);
        return next_ <= most_;
    }
    void totals(assay::Trace&, std::span<std::uint64_t> by_event) { by_event[0] += most_; }

  private:
    std::uint64_t least_ = 1, most_ = 9, next_ = 0;
};

constexpr vp_dispatch_t kPortions = assay::dispatch<Portions>();

// The weights of each call of vp_finish; none if the options are unusable.
std::vector<std::vector<std::uint64_t>> portions(const vp_host_t& host,
                                                 std::vector<vp_setting_t> given) {
    REQUIRE(kPortions.vp_init(&host) == 0);
    std::vector<std::vector<std::uint64_t>> all;
    if (kPortions.vp_options(given.data(), static_cast<std::uint32_t>(given.size())) == 0) {
        trace_parser parser{};
        const vsample_t* samples = nullptr;
        do {
            all.emplace_back();
            const int count = kPortions.vp_finish(1, &parser, &samples);
            for (int i = 0; i < count; ++i) all.back().push_back(samples[i].weight);
        } while (!all.back().empty());
    }
    kPortions.vp_release();
    return all;
}

}  // namespace

TEST_CASE("sdk: samples in portions, up to the first call without any") {
    using All = std::vector<std::vector<std::uint64_t>>;
    const vp_host_t host = make_host();
    CHECK(portions(host, {{"most", "7"}}) == All{{1, 2, 3}, {4, 5, 6}, {7}, {}});
    CHECK(portions(host, {{"most", "3"}}) == All{{1, 2, 3}, {}});
    CHECK(portions(host, {{"least", "8"}}) == All{{8, 9}, {}});
}

TEST_CASE("sdk: options that are unusable by themselves or together are told") {
    const vp_host_t host = make_host();
    CHECK(portions(host, {{"least", "0"}}).empty());
    CHECK(last_error == "--least=0: use 1 to 100");
    CHECK(portions(host, {{"most", "7x"}}).empty());
    CHECK(last_error == "--most=7x: use 1 to 100");
    CHECK(portions(host, {{"least", "5"}, {"most", "4"}}).empty());
    CHECK(last_error == "--least=5: too much");
    CHECK(portions(host, {{"least", "4"}, {"most", "4"}}).size() == 2);
}

TEST_CASE("sdk: tables can be arrays of either kind, and totals begin at 0") {
    std::uint32_t count = 0;
    CHECK(std::string(kPortions.vp_events(&count)->name) == "A");
    CHECK(count == 1);
    CHECK(std::string(kPortions.vp_option_table(&count)[1].name) == "most");
    CHECK(count == 2);
    CHECK(std::string(kPortions.vp_value_lists(&count)[1]) == "other");
    CHECK(count == 2);
    CHECK(bool{kPortions.vp_preface == nullptr});  // vp_list_preface takes its place
    CHECK(bool{kPortions.vp_list_preface != nullptr});
    const vp_host_t host = make_host();
    REQUIRE(kPortions.vp_init(&host) == 0);
    trace_parser parser{};
    std::uint64_t totals[] = {5};
    CHECK(kPortions.vp_totals(1, &parser, totals, 1) == 0);
    CHECK(totals[0] == 9);
    kPortions.vp_release();
}

TEST_CASE("sdk: rows of contexts and sites") {
    assay::ContextRows rows;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        const std::uint32_t context = i * 7 % 1000, site = i / 3 % 11;
        const auto next = static_cast<std::uint32_t>(known.size());
        const std::uint32_t row = known.try_emplace({context, site}, next).first->second;
        REQUIRE(rows.of(context, site) == row);
    }
    CHECK(rows.size() == known.size());
    std::size_t visited = 0;
    for (std::uint32_t site = 0; site < 12; ++site)
        rows.each(site, [&](std::uint32_t row) {
            CHECK(rows.site(row) == site);
            CHECK(known.at({rows.context(row), site}) == row);
            CHECK(rows.context_of_samples(row) ==
                  (rows.context(row) == 0 ? VP_NO_CONTEXT : rows.context(row)));
            ++visited;
        });
    CHECK(visited == known.size());
}

TEST_CASE("sdk: with too many rows, new ones are of no context") {
    assay::ContextRows rows(2);
    CHECK(rows.of(1, 5) == 0);
    CHECK(rows.of(2, 5) == 1);
    CHECK(rows.of(3, 5) == 2);
    CHECK(rows.of(4, 5) == 2);
    CHECK(rows.of(4, 6) == 3);
    CHECK(rows.of(1, 5) == 0);
    CHECK(rows.of(3, 5) == 2);
    CHECK(rows.context_of_samples(2) == VP_NO_CONTEXT);
    CHECK(rows.site(3) == 6);
}

TEST_CASE("sdk: numbers for people") {
    CHECK(assay::with_commas(0) == "0");
    CHECK(assay::with_commas(999) == "999");
    CHECK(assay::with_commas(1000) == "1,000");
    CHECK(assay::with_commas(UINT64_MAX) == "18,446,744,073,709,551,615");
    CHECK(assay::percent(1, 3, 1) == "33.3%");
    CHECK(assay::percent(0, 0, 2) == "0.00%");
    CHECK(assay::right("12", 4) == "  12");
    CHECK(assay::right("12345", 4) == "12345");
    CHECK(assay::scaled(UINT64_MAX, 1) == UINT64_MAX);  // exactly
    CHECK(assay::scaled(3, 2.5) == 8);
}

}  // namespace sdk_test
