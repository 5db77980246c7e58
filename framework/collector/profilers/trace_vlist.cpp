// assay/trace_vlist.h: the functions with which profilers build a specification.
#include "assay/trace_vlist.h"

#include "framework/collector/profilers/trace_spec.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

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
