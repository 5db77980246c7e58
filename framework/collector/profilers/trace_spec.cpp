#include "framework/collector/profilers/trace_spec.h"

#include "assay/trace_vlist.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace assay::collector {

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

}  // namespace assay::collector

// assay/trace_vlist.h: the functions with which profilers build a specification.

namespace {

using Table = trace_vlist_table;
using assay::trace::Filter;
using assay::trace::kOpcodeMaps;
using assay::trace::Spec;
using enum assay::trace::Capture;

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
    table.spec.captures |= kCaptureValues;
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

void ask(Table& table, const Spec& request) {
    table.spec = combine(table.spec, request);
}

Filter filter(std::uint32_t line, std::uint32_t sets, Filter::Kind kind = Filter::kRecentLines) {
    return sets == 0 ? Filter{} : Filter{line, sets, kind};
}

// What misses a cache, if it can be simulated in the program; else what its lines and sets pass on.
Filter misses_of(const trace_cache_t& cache) {
    const std::uint64_t lines = std::uint64_t{cache.sets} * cache.ways;
    const bool simulated = cache.policy == TRACE_LRU &&
                           lines <= assay::trace::kMostFirstLevelLines &&
                           cache.ways <= assay::trace::kMostFirstLevelWays;
    return {cache.line_bytes, cache.sets, Filter::kRecentLines, simulated ? cache.ways : 0};
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
    spec->spec.captures |= kCaptureValues;
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
    const bool possible = filter_line == 64 && __builtin_cpu_supports("bmi2") != 0;
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

// Of one profiler's warm-ups, intervals and predictions, the last one counts.
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
