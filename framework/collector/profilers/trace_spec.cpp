#include "framework/collector/profilers/trace_spec.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>

namespace assay::collector {
namespace {

void check_line(const char* what, std::uint32_t bytes) {
    if (!std::has_single_bit(bytes) || bytes < 16 || bytes > 4096)
        throw Error(fmt::format("{} with lines of {} bytes: not a power of two from 16 to 4096",
                                what, bytes));
}

void check_filter(const char* what, const trace::LineFilter& filter) {
    if (filter.sets == 0) return;
    if (!std::has_single_bit(filter.sets))
        throw Error(fmt::format("{} of {} sets: not a power of two", what, filter.sets));
    check_line(what, filter.line_bytes);
}

// Of two sizes of lines, of which one may be 0: not asked for.
std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
    return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

std::uint64_t combine_intervals(std::uint64_t a, std::uint64_t b) {
    if (a != 0 && b != 0 && a != b)
        throw Error(
            fmt::format("two profilers want intervals, of {} and of {} instructions: only one "
                        "length is possible in a run",
                        a, b));
    return a != 0 ? a : b;
}

}  // namespace

// A filter with lines of L bytes and S sets serves a profiler that asked for (l, s) if it drops
// nothing that (l, s) would not drop. It drops a reference whose predecessor in its set had the
// same L-line. With L = l and S <= s (powers of two), that predecessor is in the same s-set, and
// whatever fell into the s-set since would have fallen into the S-set: (l, s) drops the reference
// too. With L < l and one set, the predecessor of all had the same l-line: dropped too. With
// L < l and more sets, references of the same s-set can be in different S-sets: not valid.
trace::LineFilter combine(trace::LineFilter a, trace::LineFilter b) {
    if (a.sets == 0 || b.sets == 0) return {0, 0};
    if (a.line_bytes == b.line_bytes) return {a.line_bytes, std::min(a.sets, b.sets)};
    return {std::min(a.line_bytes, b.line_bytes), 1};
}

// Data references, unlike fetches, can be larger than a line, and are then taken for their first
// line's bytes. A filter with smaller lines would thus overlook the other lines that they touch.
trace::Spec combine(const trace::Spec& a, const trace::Spec& b) {
    const auto filter = [&](trace::Capture capture, trace::LineFilter trace::Spec::*which) {
        if (!(a.captures & capture)) return b.*which;
        if (!(b.captures & capture)) return a.*which;
        const bool same_lines = (a.*which).line_bytes == (b.*which).line_bytes;
        if (capture == trace::kCaptureReferences && !same_lines) return trace::LineFilter{0, 0};
        return combine(a.*which, b.*which);
    };
    const bool both_predict = a.captures & b.captures & trace::kCapturePredictions;
    if (both_predict && a.predictor != b.predictor)
        throw Error(
            "two profilers want predictors of different sizes in the program; run them one after "
            "the other");
    trace::LineFilter data = filter(trace::kCaptureReferences, &trace::Spec::data);
    const bool first_writes = a.first_writes || b.first_writes;
    if (first_writes && (a.footprints || b.footprints)) data = {0, 0};
    // Who asks for none has none that are left out.
    const auto leaves_out = [](const trace::Spec& spec) {
        return !(spec.captures & trace::kCaptureCode) &&
               (!(spec.captures & trace::kCaptureReferences) || spec.runs != 0);
    };
    // A cache that both ask for alike.
    const auto ways = [&](trace::Capture capture, trace::LineFilter trace::Spec::*which,
                          std::uint32_t trace::Spec::*how_many) -> std::uint32_t {
        if (!(a.captures & capture)) return b.*how_many;
        if (!(b.captures & capture)) return a.*how_many;
        const bool same = a.*which == b.*which && a.*how_many == b.*how_many;
        return same ? a.*how_many : 0;
    };
    const bool code = (a.captures | b.captures) & trace::kCaptureCode;  // among the data
    return {
        .captures = a.captures | b.captures,
        .data = data,
        .fetch = filter(trace::kCaptureFetches, &trace::Spec::fetch),
        .interval = combine_intervals(a.interval, b.interval),
        .warm_up = std::max(a.warm_up, b.warm_up),
        .branches = a.branches | b.branches,
        .predictor = a.captures & trace::kCapturePredictions ? a.predictor : b.predictor,
        .footprints = data.sets != 0 ? a.footprints | b.footprints : 0,
        .first_writes = data.sets != 0 && first_writes,
        .runs = leaves_out(a) && leaves_out(b) ? a.runs | b.runs : 0,
        .code_line = smaller(a.code_line, b.code_line),
        .data_ways = code || first_writes ? 0
                                          : ways(trace::kCaptureReferences, &trace::Spec::data,
                                                 &trace::Spec::data_ways),
        .fetch_ways = ways(trace::kCaptureFetches, &trace::Spec::fetch, &trace::Spec::fetch_ways)};
}

void check_branches(const trace::Spec& spec) {
    constexpr std::uint32_t kKinds =
        TRACE_CONDITIONAL_BRANCHES | TRACE_INDIRECT_BRANCHES | TRACE_DIRECT_CALLS | TRACE_RETURNS;
    const bool captured = spec.captures & trace::kCaptureBranches;
    if (captured && (spec.branches == 0 || spec.branches & ~kKinds))
        throw Error(fmt::format("branches of kinds {:#x}: not a set of those in trace_vlist.h",
                                spec.branches));
    const trace::PredictorShape& shape = spec.predictor;
    if (shape.history_bits > trace::kMaxHistoryBits ||
        shape.address_bits > trace::kMaxCounterBits - shape.history_bits ||
        shape.target_bits > trace::kMaxTargetBits)
        throw Error(fmt::format(
            "predictions with {} bits of history, {} of addresses and {} for targets: at most {}, "
            "{} together with those of history, and {}",
            shape.history_bits, shape.address_bits, shape.target_bits, trace::kMaxHistoryBits,
            trace::kMaxCounterBits, trace::kMaxTargetBits));
}

std::unique_ptr<trace::ValueLists> value_lists(const trace_vlist_table& table) {
    auto lists = std::make_unique<trace::ValueLists>();
    for (std::size_t map = 0; map < trace::kOpcodeMaps.size(); ++map)
        for (unsigned opcode = 0; opcode < trace::kOpcodesOfMap; ++opcode)
            for (unsigned access = 0; access < trace::kAccesses; ++access) {
                const trace_vlist_table::Entry& entry = table.entries[map][opcode][access];
                trace::ValueList& list = lists->lists[map][opcode][access];
                list.selected = entry.selected;
                for (std::uint32_t i = 0; i < entry.list.count; ++i)
                    list.add(trace::value_byte(entry.list.values[i]),
                             entry.list.values[i] & TRACE_WIDE);
            }
    return lists;
}

void add(trace::ValueLists& to, const trace::ValueLists& from) {
    const auto* theirs = &from.lists[0][0][0];
    trace::ValueList* ours = &to.lists[0][0][0];
    for (std::size_t i = 0; i < sizeof from / sizeof *theirs; ++i) {
        trace::ValueList& list = ours[i];
        list.selected |= theirs[i].selected;
        for (unsigned v = 0; v < theirs[i].count; ++v) {
            const std::uint8_t value = theirs[i].values[v];
            const unsigned at = list.index_of(value);
            if (at == trace::kMostValues)
                throw Error(fmt::format(
                    "the profilers ask for more than {} values of one instruction: load fewer",
                    trace::kMostValues));
            if (at == list.count) list.add(value, false);
            list.wide |= std::uint32_t{theirs[i].is_wide(v)} << at;
        }
        if (std::popcount(list.wide) > int{trace::kMostWideValues})
            throw Error(
                fmt::format("the profilers ask for more than {} values of one instruction with all "
                            "their bytes: load fewer",
                            trace::kMostWideValues));
    }
}

void check(const trace::Spec& spec) {
    check_branches(spec);
    if (spec.captures & trace::kCaptureReferences)
        check_filter("references through a filter", spec.data);
    if (spec.captures & trace::kCaptureCode) {
        check_line("code", spec.code_line);
        if (!(spec.captures & trace::kCaptureReferences))
            throw Error("code without references to data is captured as fetches only");
    }
    constexpr std::uint64_t kLongestInterval = std::uint64_t{1} << 62;
    if (spec.interval > kLongestInterval)
        throw Error("intervals of 0 or more than 2^62 instructions");
    if (spec.captures & trace::kCaptureFetches)
        check_filter("fetches through a filter", spec.fetch);
}

}  // namespace assay::collector
