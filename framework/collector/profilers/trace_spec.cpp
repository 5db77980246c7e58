#include "framework/collector/profilers/trace_spec.h"

#include "assay/trace_vlist.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

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

// assay/trace_vlist.h: the functions with which profilers build a specification.

namespace {

using Table = trace_vlist_table;
using assay::trace::kOpcodeMaps;

template <typename T>
T* allocate() {
    if (void* memory = std::calloc(1, sizeof(T))) return static_cast<T*>(memory);
    std::abort();
}

// The flags that follow from the opcode alone. Intel SDM volume 2, tables; FF is
// indirect, a call or a jump, by its register field.
std::uint32_t control_flow(std::uint16_t opcode) {
    const unsigned map = opcode >> 8;
    const unsigned byte = opcode & 0xFF;
    if (map == 0) {
        if ((byte & 0xF0) == 0x70 || (byte >= 0xE0 && byte <= 0xE3)) return TRACE_INSTR_CONDITIONAL;
        if (byte == 0xE8) return TRACE_INSTR_CALL;
        if (byte == 0xC2 || byte == 0xC3) return TRACE_INSTR_RETURN;
        if (byte == 0xFF) return TRACE_INSTR_INDIRECT;
    }
    return map == 1 && (byte & 0xF0) == 0x80 ? std::uint32_t{TRACE_INSTR_CONDITIONAL} : 0U;
}

bool is_known(trace_value_t value) {
    const trace_value_t what = value & ~std::uint32_t{TRACE_BEFORE | TRACE_WIDE};
    return (what >= TRACE_EFFECTIVE_ADDRESS && what <= TRACE_LATENCY) ||
           (what >= TRACE_GPR0 && what < TRACE_GPR0 + 16) ||
           (what >= TRACE_ST0 && what < TRACE_ST0 + 8) ||
           (what >= TRACE_MASK0 && what < TRACE_MASK0 + 8) ||
           (what >= TRACE_MMX0 && what < TRACE_MMX0 + 8) ||
           (what >= TRACE_VECTOR0 && what < TRACE_VECTOR0 + 32);
}

bool append(Table::Entry& entry, const trace_vlist& list) {
    entry.selected = true;
    if (entry.list.count + list.count > TRACE_VLIST_MAX) return false;
    std::copy_n(list.values, list.count, entry.list.values + entry.list.count);
    entry.list.count += list.count;
    return true;
}

// Calls `visit(entry, opcode, flags)` for each combination.
template <typename Visit>
int for_each_entry(Table& table, Visit&& visit) {
    table.spec.captures |= assay::trace::kCaptureValues;
    bool good = true;
    for (std::size_t map = 0; map < kOpcodeMaps.size(); ++map)
        for (unsigned byte = 0; byte < assay::trace::kOpcodesOfMap; ++byte)
            for (unsigned access = 0; access < assay::trace::kAccesses; ++access) {
                const std::uint16_t opcode = TRACE_OPCODE(kOpcodeMaps[map], byte);
                const std::uint32_t flags = access | control_flow(opcode);
                good &= visit(table.entries[map][byte][access], opcode, flags);
            }
    return good ? 0 : -1;
}

void capture(Table& table, assay::trace::Capture what,
             assay::trace::LineFilter assay::trace::Spec::*which, std::uint32_t line,
             std::uint32_t sets) {
    assay::trace::Spec request{};
    request.captures = what;
    if (sets != 0) request.*which = {line, sets};
    table.spec = assay::collector::combine(table.spec, request);
}

void capture_misses(Table& table, const trace_cache_t& cache, assay::trace::Capture what,
                    assay::trace::LineFilter assay::trace::Spec::*filter,
                    std::uint32_t assay::trace::Spec::*ways) {
    assay::trace::Spec request{};
    request.captures = what;
    request.*filter = {cache.line_bytes, cache.sets};
    const std::uint64_t lines = std::uint64_t{cache.sets} * cache.ways;
    if (cache.policy == TRACE_LRU && lines <= assay::trace::kMostFirstLevelLines &&
        cache.ways <= assay::trace::kMostFirstLevelWays)
        request.*ways = cache.ways;
    table.spec = assay::collector::combine(table.spec, request);
}

}  // namespace

extern "C" {

trace_vlist_table_t* trace_vlist_table_alloc(void) {
    return allocate<trace_vlist_table>();
}

void trace_vlist_table_init(trace_vlist_table_t* spec) {
    std::memset(spec, 0, sizeof *spec);
}

trace_vlist_t* trace_vlist_alloc(void) {
    return allocate<trace_vlist>();
}

void trace_vlist_init(trace_vlist_t* vlist) {
    vlist->count = 0;
}

int trace_add_value_to_vlist(trace_vlist_t* vlist, trace_value_t value) {
    if (vlist->count >= TRACE_VLIST_MAX || !is_known(value)) return -1;
    vlist->values[vlist->count++] = value;
    return 0;
}

int trace_add_vlist_by_opc(trace_vlist_table_t* spec, uint16_t opcode, const trace_vlist_t* vlist) {
    const unsigned map = assay::trace::map_index(opcode);
    if (map == kOpcodeMaps.size()) return -1;
    spec->spec.captures |= assay::trace::kCaptureValues;
    bool good = true;
    for (Table::Entry& entry : spec->entries[map][opcode & 0xFF]) good &= append(entry, *vlist);
    return good ? 0 : -1;
}

int trace_add_vlist_by_select(trace_vlist_table_t* spec, trace_selector_t selector,
                              const trace_vlist_t* vlist) {
    return for_each_entry(*spec,
                          [&](Table::Entry& entry, std::uint16_t opcode, std::uint32_t flags) {
                              return selector(opcode, flags) == 0 || append(entry, *vlist);
                          });
}

int trace_set_vlist_by_pick_value(trace_vlist_table_t* spec, trace_pick_value_t pick) {
    return for_each_entry(*spec,
                          [&](Table::Entry& entry, std::uint16_t opcode, std::uint32_t flags) {
                              const trace_value_t value = pick(opcode, flags);
                              entry = {value != TRACE_NONE, {value != TRACE_NONE, {value}}};
                              return value == TRACE_NONE || is_known(value);
                          });
}

void trace_capture_block_counts(trace_vlist_table_t* spec) {
    spec->spec.captures |= assay::trace::kCaptureBlockCounts;
}

void trace_capture_references(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets) {
    capture(*spec, assay::trace::kCaptureReferences, &assay::trace::Spec::data, filter_line,
            filter_sets);
}

void trace_capture_first_writes(trace_vlist_table_t* spec, uint32_t filter_line,
                                uint32_t filter_sets) {
    assay::trace::Spec request{};
    request.captures = assay::trace::kCaptureReferences;
    if (filter_sets != 0) request.data = {filter_line, filter_sets};
    request.first_writes = filter_sets != 0 ? 1 : 0;
    spec->spec = assay::collector::combine(spec->spec, request);
}

// The driver needs BMI2 for it.
void trace_capture_footprints(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets) {
    const bool possible = filter_line == 64 && __builtin_cpu_supports("bmi2") != 0;
    assay::trace::Spec request{};
    request.captures = assay::trace::kCaptureReferences;
    if (possible && filter_sets != 0) request.data = {filter_line, filter_sets};
    request.footprints = request.data.sets != 0 ? 1 : 0;
    spec->spec = assay::collector::combine(spec->spec, request);
}

void trace_capture_runs(trace_vlist_table_t* spec) {
    assay::trace::Spec request{};
    request.captures = assay::trace::kCaptureReferences;
    request.runs = 1;
    spec->spec = assay::collector::combine(spec->spec, request);
}

void trace_capture_fetches(trace_vlist_table_t* spec, uint32_t filter_line, uint32_t filter_sets) {
    capture(*spec, assay::trace::kCaptureFetches, &assay::trace::Spec::fetch, filter_line,
            filter_sets);
}

void trace_capture_misses(trace_vlist_table_t* spec, const trace_cache_t* fetch,
                          const trace_cache_t* data) {
    if (fetch)
        capture_misses(*spec, *fetch, assay::trace::kCaptureFetches, &assay::trace::Spec::fetch,
                       &assay::trace::Spec::fetch_ways);
    if (data)
        capture_misses(*spec, *data, assay::trace::kCaptureReferences, &assay::trace::Spec::data,
                       &assay::trace::Spec::data_ways);
}

void trace_capture_code(trace_vlist_table_t* spec, uint32_t line) {
    assay::trace::Spec request{};
    request.captures = assay::trace::kCaptureCode;
    request.code_line = line;
    spec->spec = assay::collector::combine(spec->spec, request);
}

void trace_capture_calls(trace_vlist_table_t* spec) {
    spec->spec.captures |= assay::trace::kCaptureCalls;
}

void trace_capture_warm_up(trace_vlist_table_t* spec, uint64_t instructions) {
    spec->spec.warm_up = instructions;
}

void trace_capture_intervals(trace_vlist_table_t* spec, uint64_t instructions) {
    spec->spec.captures |= assay::trace::kCaptureBlockCounts;
    // 0 stands for none in a specification; a profiler that asks for it is refused.
    spec->spec.interval = instructions != 0 ? instructions : UINT64_MAX;
}

void trace_capture_repeats(trace_vlist_table_t* spec) {
    spec->spec.captures |= assay::trace::kCaptureRepeats;
}

void trace_capture_branches(trace_vlist_table_t* spec, uint32_t which) {
    spec->spec.captures |= assay::trace::kCaptureBranches;
    spec->spec.branches |= which;
}

void trace_capture_system_calls(trace_vlist_table_t* spec, uint32_t which) {
    spec->spec.captures |= assay::trace::kCaptureSystemCalls;
    if (which & TRACE_SYSTEM_CALL_TIMES)
        spec->spec.captures |= assay::trace::kCaptureSystemCallTimes;
}

void trace_capture_mappings(trace_vlist_table_t* spec) {
    spec->spec.captures |= assay::trace::kCaptureMappings;
}

void trace_capture_blocks(trace_vlist_table_t* spec) {
    spec->spec.captures |= assay::trace::kCaptureBlocks;
}

void trace_capture_predictions(trace_vlist_table_t* spec, uint32_t history_bits,
                               uint32_t address_bits, uint32_t target_bits) {
    spec->spec.captures |= assay::trace::kCaptureBlockCounts | assay::trace::kCapturePredictions;
    spec->spec.predictor = {history_bits, address_bits, target_bits};
}

}  // extern "C"
