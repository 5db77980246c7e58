#include "framework/trace/captures.h"

#include "assay/trace_file.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>

namespace assay::trace {
namespace {

void check_line(const char* what, std::uint32_t bytes) {
    if (!std::has_single_bit(bytes) || bytes < 16 || bytes > 4096)
        throw Error(fmt::format("{} with lines of {} bytes: not a power of two from 16 to 4096",
                                what, bytes));
}

void check_filter(const char* what, const Filter& filter) {
    if (filter.sets == 0) return;
    if (!std::has_single_bit(filter.sets))
        throw Error(fmt::format("{} of {} sets: not a power of two", what, filter.sets));
    check_line(what, filter.line_bytes);
}

std::string describe(const Filter& filter) {
    if (filter.sets == 0) return "";
    if (filter.ways != 0)
        return fmt::format(" that miss a cache of {} sets of {} lines of {} bytes", filter.sets,
                           filter.ways, filter.line_bytes);
    return fmt::format(", through a filter of {} sets of {}-byte lines", filter.sets,
                       filter.line_bytes);
}

// Satisfies both specifications, or only the one that has the capture.
void combine_filters(Capture capture, Filter& both, const Spec& first, const Spec& second,
                     const Filter& other) {
    if (!(second.captures & capture)) return;
    both = first.captures & capture ? combine(both, other) : other;
}

// A reference can be larger than a line, unlike a fetch. A filter looks only at its first line, so
// one with smaller lines would miss other lines that the reference touches.
void combine_references(Spec& both, const Spec& other) {
    const bool both_ask = both.captures & other.captures & kCaptureReferences;
    if (both_ask && both.data.line_bytes != other.data.line_bytes)
        both.data = {};
    else
        combine_filters(kCaptureReferences, both.data, both, other, other.data);
}

void combine_fetches(Spec& both, const Spec& other) {
    combine_filters(kCaptureFetches, both.fetch, both, other, other.fetch);
}

// Code goes through the filter of the data. The filter must not treat code as an operand's run, or
// as a hit of the first-level data cache.
void combine_code(Spec& both, const Spec& other) {
    const std::uint32_t a = both.code_line, b = other.code_line;
    both.code_line = a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
    both.data.ways = 0;
    if (both.data.kind == Filter::kRuns) both.data = {};
}

void check_code(const Spec& spec) {
    check_line("code", spec.code_line);
    if (!(spec.captures & kCaptureReferences))
        throw Error("code is captured only with data references: capture fetches instead");
}

void combine_intervals(Spec& both, const Spec& other) {
    const std::uint64_t a = both.interval, b = other.interval;
    if (a != 0 && b != 0 && a != b)
        throw Error(
            fmt::format("two profilers want intervals of {} and of {} instructions; run them one "
                        "after the other",
                        a, b));
    both.interval = a != 0 ? a : b;
}

void check_intervals(const Spec& spec) {
    constexpr std::uint64_t kLongest = std::uint64_t{1} << 62;
    if (spec.interval > kLongest) throw Error("intervals must have 1 to 2^62 instructions");
}

void combine_branches(Spec& both, const Spec& other) {
    both.branches |= other.branches;
}

void check_branches(const Spec& spec) {
    constexpr std::uint32_t kKinds =
        TRACE_CONDITIONAL_BRANCHES | TRACE_INDIRECT_BRANCHES | TRACE_DIRECT_CALLS | TRACE_RETURNS;
    if (spec.branches == 0 || spec.branches & ~kKinds)
        throw Error(fmt::format("branches of kinds {:#x}: not a set of those in trace_vlist.h",
                                spec.branches));
}

void combine_predictions(Spec& both, const Spec& other) {
    const bool both_predict = both.captures & other.captures & kCapturePredictions;
    if (both_predict && both.predictor != other.predictor)
        throw Error(
            "two profilers want predictors of different sizes in the program; run them one after "
            "the other");
    if (other.captures & kCapturePredictions) both.predictor = other.predictor;
}

void check_predictions(const Spec& spec) {
    const PredictorShape& shape = spec.predictor;
    if (shape.history_bits > kMaxHistoryBits ||
        shape.address_bits > kMaxCounterBits - shape.history_bits ||
        shape.target_bits > kMaxTargetBits)
        throw Error(fmt::format(
            "predictions with {} bits of history, {} of addresses and {} for targets: at most {}, "
            "{} together with those of history, and {}",
            shape.history_bits, shape.address_bits, shape.target_bits, kMaxHistoryBits,
            kMaxCounterBits, kMaxTargetBits));
}

template <typename... Kinds>
constexpr std::uint32_t sites(Kinds... kinds) {
    return ((1U << kinds) | ...);
}

constexpr CaptureRow kRows[] = {
    {.capture = kCaptureBlockCounts,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "block counts",
     .by_qemu = CaptureRow::kAlways,
     .is_recorded = true},
    {.capture = kCaptureReferences,
     .recorded = TRACE_RECORDED_REFERENCES,
     .description = "data references",
     .parameters = [](const Spec& spec) { return describe(spec.data); },
     .combine = combine_references,
     .check = [](const Spec& spec) { check_filter("references through a filter", spec.data); },
     .sites = sites(TRACE_SITE_READ, TRACE_SITE_WRITE, TRACE_SITE_MODIFY, TRACE_SITE_COUNT),
     .by_qemu = CaptureRow::kAlways,
     .is_recorded = true},
    {.capture = kCaptureFetches,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "instruction fetches",
     .parameters = [](const Spec& spec) { return describe(spec.fetch); },
     .combine = combine_fetches,
     .check = [](const Spec& spec) { check_filter("fetches through a filter", spec.fetch); },
     .by_qemu = CaptureRow::kAlways},
    {.capture = kCaptureCode,
     .recorded = TRACE_RECORDED_REFERENCES,
     .description = "instruction fetches among the data references",
     .combine = combine_code,
     .check = check_code,
     .by_qemu = CaptureRow::kAlways},
    {.capture = kCaptureCalls,
     .recorded = TRACE_RECORDED_CALLS,
     .description = "calls and returns",
     .sites = sites(TRACE_SITE_CALL, TRACE_SITE_TARGET, TRACE_SITE_RETURN, TRACE_SITE_STACK,
                    TRACE_SITE_SIGNAL, TRACE_SITE_INTERRUPTED),
     .by_qemu = CaptureRow::kKnownInstructions,
     .is_recorded = true},
    {.capture = kCaptureContexts,
     .recorded = TRACE_RECORDED_CALLS,
     .description = "block counts by calling context",
     .by_qemu = CaptureRow::kKnownInstructions},
    {.capture = kCaptureValues,
     .recorded = TRACE_RECORDED_VALUES | TRACE_RECORDED_LINE_OPERATIONS,
     .description = "values of instructions",
     .is_recorded = true},
    {.capture = kCaptureRepeats,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "iterations of repeated string instructions",
     .sites = sites(TRACE_SITE_COUNT),
     .by_qemu = CaptureRow::kAlways,
     .is_recorded = true},
    {.capture = kCaptureFacts,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "facts about instructions",
     .by_qemu = CaptureRow::kX86Only},
    {.capture = kCaptureSystemCalls,
     .recorded = TRACE_RECORDED_SYSTEM_CALLS,
     .description = "system calls",
     .parameters = [](const Spec& spec) -> std::string {
         return spec.captures & kCaptureSystemCallTimes ? ", and how long they take" : "";
     },
     .sites = sites(TRACE_SITE_SYSTEM_CALL, TRACE_SITE_SYSTEM_CALL_RESULT),
     .is_recorded = true},
    {.capture = kCaptureMappings,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "sizes of pages",
     .by_qemu = CaptureRow::kAlways,
     .is_recorded = true},
    {.capture = kCaptureBlocks,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "executions of basic blocks",
     .sites = sites(TRACE_SITE_SIGNAL, TRACE_SITE_INTERRUPTED),
     .by_qemu = CaptureRow::kAlways,
     .is_recorded = true},
    {.capture = kCaptureIntervals,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "intervals",
     .parameters =
         [](const Spec& spec) { return fmt::format(" of {} instructions", spec.interval); },
     .combine = combine_intervals,
     .check = check_intervals,
     .by_qemu = CaptureRow::kAlways},
    {.capture = kCaptureBranches,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "branches",
     .combine = combine_branches,
     .check = check_branches,
     .by_qemu = CaptureRow::kKnownInstructions},
    {.capture = kCapturePredictions,
     .recorded = TRACE_RECORDED_BLOCKS,
     .description = "mispredictions",
     .parameters =
         [](const Spec& spec) {
             return fmt::format(", with {} bits of history, {} of addresses, {} for targets",
                                spec.predictor.history_bits, spec.predictor.address_bits,
                                spec.predictor.target_bits);
         },
     .combine = combine_predictions,
     .check = check_predictions,
     .sites = sites(TRACE_SITE_COUNT),
     .by_qemu = CaptureRow::kKnownInstructions}};

}  // namespace

std::span<const CaptureRow> capture_rows() {
    return kRows;
}

// A combined filter with lines of L bytes and S sets serves a profiler that asked for (l, s) if it
// drops only references that (l, s) drops. It drops a reference whose predecessor in its set had
// the same L-line.
// - L = l and S <= s (powers of two): the predecessor is in the same s-set. All later references to
//   this s-set would also have been in the S-set. (l, s) therefore drops the reference.
// - L < l and one set: the predecessor in program order had the same l-line. (l, s) drops the
//   reference.
// - L < l and several sets: references of the same s-set can be in different S-sets. Not valid.
Filter combine(const Filter& a, const Filter& b) {
    if (a == b) return a;
    if (a.sets == 0 || b.sets == 0) return {};
    if (a.kind != b.kind && a.kind != Filter::kRecentLines && b.kind != Filter::kRecentLines)
        return {};
    return {.line_bytes = std::min(a.line_bytes, b.line_bytes),
            .sets = a.line_bytes == b.line_bytes ? std::min(a.sets, b.sets) : 1,
            .kind = std::max(a.kind, b.kind)};
}

Spec combine(const Spec& a, const Spec& b) {
    Spec both = a;
    for (const CaptureRow& row : kRows)
        if (row.combine && (a.captures | b.captures) & row.capture) row.combine(both, b);
    both.captures |= b.captures;
    both.warm_up = std::max(a.warm_up, b.warm_up);
    return both;
}

void check(const Spec& spec) {
    for (const CaptureRow& row : kRows)
        if (row.check && spec.captures & row.capture) row.check(spec);
}

std::string not_by_qemu(const Spec& spec, CaptureRow::ByQemu least) {
    for (const CaptureRow& row : kRows)
        if (spec.captures & row.capture && row.by_qemu < least) return std::string(row.description);
    const Regions& regions = spec.regions;
    if (regions.off_at_start != 0) return "parts between markers";
    if (regions.points != 0) return "simulation points";
    if (regions.functions[0] != '\0' && least == CaptureRow::kAlways) return "parts by functions";
    if (spec.objects != Spec::kNoObjects) return "objects";
    if (spec.slice != 0) return "the order of threads";
    return "";
}

std::uint32_t captures_of_recording(std::uint32_t recorded) {
    std::uint32_t captures = 0;
    for (const CaptureRow& row : kRows)
        if (row.is_recorded && row.recorded & recorded) captures |= row.capture;
    return captures;
}

bool passes_on(const Spec& spec, unsigned site_kind) {
    return std::any_of(std::begin(kRows), std::end(kRows), [&](const CaptureRow& row) {
        return spec.captures & row.capture && row.sites >> site_kind & 1;
    });
}

}  // namespace assay::trace

// assay/trace_vlist.h: what profilers ask for.

using namespace assay::trace;

namespace {

void ask(trace_vlist_table& table, const Spec& request) {
    table.spec = combine(table.spec, request);
}

Filter filter(std::uint32_t line, std::uint32_t sets, Filter::Kind kind = Filter::kRecentLines) {
    return sets == 0 ? Filter{} : Filter{line, sets, kind};
}

// A filter that passes on only the misses of a cache, if the cache can be simulated in the program.
// Otherwise a filter with the cache's lines and sets.
Filter misses_of(const trace_cache_t& cache) {
    const std::uint64_t lines = std::uint64_t{cache.sets} * cache.ways;
    const bool simulated = cache.policy == TRACE_LRU && lines <= kMostFirstLevelLines &&
                           cache.ways <= kMostFirstLevelWays;
    return {cache.line_bytes, cache.sets, Filter::kRecentLines, simulated ? cache.ways : 0};
}

}  // namespace

extern "C" {

void trace_capture_block_counts(trace_vlist_table_t* spec) {
    ask(*spec, {.captures = kCaptureBlockCounts});
}

void trace_capture_references(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets) {
    ask(*spec, {.captures = kCaptureReferences, .data = filter(filter_line, filter_sets)});
}

void trace_capture_first_writes(trace_vlist_table_t* spec, uint32_t filter_line,
                                uint32_t filter_sets) {
    ask(*spec, {.captures = kCaptureReferences,
                .data = filter(filter_line, filter_sets, Filter::kFirstWrites)});
}

// The driver needs BMI2 for it.
void trace_capture_footprints(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets) {
#if defined(__x86_64__)
    const bool possible = filter_line == 64 && __builtin_cpu_supports("bmi2") != 0;
#else
    const bool possible = false;
#endif
    ask(*spec, {.captures = kCaptureReferences,
                .data = filter(filter_line, possible ? filter_sets : 0, Filter::kFootprints)});
}

void trace_capture_runs(trace_vlist_table_t* spec) {
    ask(*spec, {.captures = kCaptureReferences, .data = {.kind = Filter::kRuns}});
}

void trace_capture_fetches(trace_vlist_table_t* spec, uint32_t filter_line, uint32_t filter_sets) {
    ask(*spec, {.captures = kCaptureFetches, .fetch = filter(filter_line, filter_sets)});
}

void trace_capture_misses(trace_vlist_table_t* spec, const trace_cache_t* fetch,
                          const trace_cache_t* data) {
    if (fetch) ask(*spec, {.captures = kCaptureFetches, .fetch = misses_of(*fetch)});
    if (data) ask(*spec, {.captures = kCaptureReferences, .data = misses_of(*data)});
}

void trace_capture_code(trace_vlist_table_t* spec, uint32_t line) {
    ask(*spec, {.captures = kCaptureCode, .code_line = line});
}

void trace_capture_calls(trace_vlist_table_t* spec) {
    ask(*spec, {.captures = kCaptureCalls});
}

// If a profiler asks more than once for a warm-up, intervals or predictions, its last request
// counts.
void trace_capture_warm_up(trace_vlist_table_t* spec, uint64_t instructions) {
    spec->spec.warm_up = instructions;
}

void trace_capture_intervals(trace_vlist_table_t* spec, uint64_t instructions) {
    spec->spec.captures |= kCaptureBlockCounts | kCaptureIntervals;
    // 0 stands for none in a specification; a profiler that asks for it is refused.
    spec->spec.interval = instructions != 0 ? instructions : UINT64_MAX;
}

void trace_capture_repeats(trace_vlist_table_t* spec) {
    ask(*spec, {.captures = kCaptureRepeats});
}

void trace_capture_facts(trace_vlist_table_t* spec) {
    ask(*spec, {.captures = kCaptureFacts});
}

void trace_capture_branches(trace_vlist_table_t* spec, uint32_t which) {
    ask(*spec, {.captures = kCaptureBranches, .branches = which});
}

void trace_capture_system_calls(trace_vlist_table_t* spec, uint32_t which) {
    ask(*spec, {.captures = kCaptureSystemCalls | (which & TRACE_SYSTEM_CALL_TIMES
                                                       ? std::uint32_t{kCaptureSystemCallTimes}
                                                       : 0)});
}

void trace_capture_mappings(trace_vlist_table_t* spec) {
    ask(*spec, {.captures = kCaptureMappings});
}

void trace_capture_blocks(trace_vlist_table_t* spec) {
    ask(*spec, {.captures = kCaptureBlocks});
}

void trace_capture_predictions(trace_vlist_table_t* spec, uint32_t history_bits,
                               uint32_t address_bits, uint32_t target_bits) {
    spec->spec.captures |= kCaptureBlockCounts | kCapturePredictions;
    spec->spec.predictor = {history_bits, address_bits, target_bits};
}

}  // extern "C"
