// The functions of assay/trace_parse.h, with which profilers read the captured data.
#include "assay/trace_parse.h"

#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/trace_parser.h"
#include "framework/x86/instruction_facts.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

template <typename T>
const T* contents(std::span<const T> table, size_t* count) {
    *count = table.size();
    return table.data();
}

// The records of one execution of an instruction.
struct Execution {
    std::span<const trace_record_t> records;
    std::uint32_t instr, context;
};

// Returns no records at the end of the buffer.
Execution next_execution(trace_parser_t& parser) {
    const std::span<const trace_record_t> records = parser.records;
    const std::span<const trace_site_t> sites = parser.code.sites;
    std::size_t& next = parser.next;
    const auto is_of_kind = [&](std::size_t i, unsigned kind) {
        return i < records.size() && sites[records[i].site].kind == kind;
    };
    const auto goes_on = [&](std::size_t i) {
        return is_of_kind(i, TRACE_SITE_VALUE) || is_of_kind(i, TRACE_SITE_VALUE_REST);
    };
    while (next < records.size() && !is_of_kind(next, TRACE_SITE_VALUE)) ++next;
    if (next >= records.size()) return {{}, 0, 0};
    const std::size_t first = next++;
    const std::uint32_t instr = sites[records[first].site].instr;
    while (goes_on(next) && sites[records[next].site].instr == instr &&
           records[next].site > records[next - 1].site)
        ++next;
    return {records.subspan(first, next - first), instr,
            parser.contexts.empty() ? 0 : parser.contexts[first]};
}

// The records of the value at this index of the list, in the last execution: its first record and
// all later ones. Empty if the execution does not have the value.
std::span<const trace_record_t> records_of(const trace_parser_t& parser, unsigned index) {
    const std::uint8_t value = parser.list->values[index];
    for (std::size_t i = 0; i < parser.execution.size(); ++i) {
        const trace_site_t& site = parser.code.sites[parser.execution[i].site];
        if (site.kind == TRACE_SITE_VALUE && site.operand == value)
            return parser.execution.subspan(i);
    }
    return {};
}

// Stores the values in the order of the list, and 0 for missing ones.
int store_values(trace_parser_t& parser, int max, uint64_t* values) {
    parser.present = 0;
    int stored = 0;
    for (; stored < parser.list->count && stored < max; ++stored) {
        const auto index = static_cast<unsigned>(stored);
        const std::span<const trace_record_t> found = records_of(parser, index);
        values[stored] = found.empty() ? 0 : found.front().value;
        parser.present |= std::uint32_t{!found.empty()} << index;
    }
    return stored;
}

}  // namespace

extern "C" {

uint32_t trace_parser_get_pid(const trace_parser_t* parser) {
    return parser->pid;
}

uint32_t trace_parser_get_thread(const trace_parser_t* parser) {
    return parser->thread;
}

int trace_parser_has_context(const trace_parser_t* parser) {
    return !parser->context_table.empty();
}

const uint32_t* trace_parser_contexts(const trace_parser_t* parser, size_t* count) {
    return contents(parser->contexts, count);
}

const trace_context_t* trace_parser_context_table(const trace_parser_t* parser, size_t* count) {
    return contents(parser->context_table, count);
}

const trace_marker_t* trace_parser_markers(const trace_parser_t* parser, size_t* count) {
    return contents(parser->markers, count);
}

int trace_parser_next(trace_parser_t* parser, uint32_t* instr, uint64_t* pc, uint64_t* context0,
                      uint64_t* context1, int max, uint64_t* values) {
    for (;;) {
        const Execution execution = next_execution(*parser);
        if (execution.records.empty()) return -1;
        const trace_instr_t& row = parser->code.instrs[execution.instr];
        const assay::trace::ValueList* list =
            parser->wanted ? parser->wanted->find(row.opcode, row.flags) : nullptr;
        if (!list) continue;
        if (instr) *instr = execution.instr;
        if (pc) *pc = row.pc;
        if (context0) *context0 = execution.context;
        if (context1) *context1 = 0;
        parser->execution = execution.records;
        parser->list = list;
        return store_values(*parser, max, values);
    }
}

int trace_parser_has_value(const trace_parser_t* parser, uint32_t index) {
    return index < TRACE_VLIST_MAX && (parser->present >> index & 1);
}

uint32_t trace_parser_value_bytes(const trace_parser_t* parser, uint32_t index, void* bytes,
                                  uint32_t size) {
    if (!trace_parser_has_value(parser, index)) return 0;
    uint32_t there = 0;
    for (const trace_record_t& record : records_of(*parser, index)) {
        const trace_site_t& site = parser->code.sites[record.site];
        if (there != 0 && (site.kind != TRACE_SITE_VALUE_REST || !parser->list->is_wide(index)))
            break;
        const uint32_t more = std::min<uint32_t>(site.bytes, sizeof record.value);
        if (there < size)
            std::memcpy(static_cast<char*>(bytes) + there, &record.value,
                        std::min(more, size - there));
        there += more;
    }
    return there;
}

const trace_record_t* trace_parser_records(const trace_parser_t* parser, size_t* count) {
    return contents(parser->records, count);
}

const uint64_t* trace_parser_footprints(const trace_parser_t* parser, size_t* count) {
    return contents(parser->footprints, count);
}

const trace_site_t* trace_parser_sites(const trace_parser_t* parser, size_t* count) {
    return contents(parser->code.sites, count);
}

const trace_instr_t* trace_parser_instrs(const trace_parser_t* parser, size_t* count) {
    return contents(parser->code.instrs, count);
}

const trace_block_t* trace_parser_blocks(const trace_parser_t* parser, size_t* count) {
    return contents(parser->code.blocks, count);
}

uint64_t trace_parser_count(const trace_parser_t* parser, uint32_t instr) {
    return instr < parser->counts.size() ? parser->counts[instr] : 0;
}

const trace_interval_t* trace_parser_next_interval(trace_parser_t* parser) {
    if (parser->next_interval == parser->intervals.size()) return nullptr;
    return &parser->intervals[parser->next_interval++].row;
}

uint32_t trace_parser_misses(const trace_parser_t* parser) {
    return parser->misses;
}

int trace_parser_is_warm_up(const trace_parser_t* parser) {
    return parser->warm_up;
}

double trace_parser_scale(const trace_parser_t* parser) {
    return parser->scale;
}

uint64_t trace_parser_mispredictions(const trace_parser_t* parser, uint32_t instr) {
    if (instr >= parser->code.instrs.size()) return 0;
    const uint32_t block = parser->code.instrs[instr].block;
    if (block >= parser->mispredictions.size()) return 0;
    const trace_block_t& last = parser->code.blocks[block];
    return instr == last.first_instr + last.instr_count - 1 ? parser->mispredictions[block] : 0;
}

// The driver stores this number in the row's last byte, which is reserved for profilers.
uint32_t trace_parser_stored_bytes(const trace_parser_t* parser, uint32_t instr) {
    return instr < parser->code.instrs.size() ? parser->code.instrs[instr].reserved : 0;
}

const trace_instr_facts_t* trace_parser_instr_facts(const trace_parser_t* parser, uint32_t instr) {
    if (instr >= parser->code.instrs.size()) return nullptr;
    if (parser->lacks_facts != nullptr) {
        *parser->lacks_facts = true;
        return nullptr;
    }
    const trace_instr_t& row = parser->code.instrs[instr];
    const std::span<const std::uint8_t> code(row.bytes, std::min<std::size_t>(row.length, 15));
    return assay::native::find_facts(code, parser->facts) ? &parser->facts : nullptr;
}

const trace_data_object_t* trace_parser_data_object(const trace_parser_t* parser,
                                                    uint32_t context) {
    if (parser->objects == nullptr) return nullptr;
    return parser->objects->of_context(context);
}

const trace_data_object_t* trace_parser_data_object_at(const trace_parser_t* parser,
                                                       uint64_t address, uint64_t* offset) {
    *offset = 0;
    if (parser->objects == nullptr) return nullptr;
    return parser->objects->last_at(address, *offset);
}

uint32_t trace_parser_type_of_site(const trace_parser_t* parser, uint32_t site, uint64_t* offset) {
    *offset = UINT64_MAX;
    if (parser->types == nullptr) return 0;
    const assay::collector::CallSuspended in_assay;
    const auto found = parser->types->of_site(site, parser->code);
    *offset = found.offset;
    return found.number;
}

const trace_data_type_t* trace_parser_data_type(const trace_parser_t* parser, uint32_t number) {
    return parser->types == nullptr ? nullptr : parser->types->row(number);
}

const trace_object_t* trace_parser_object(const trace_parser_t* parser, uint64_t pc) {
    return parser->addresses->object(pc);
}

const trace_frame_t* trace_parser_frames(const trace_parser_t* parser, uint64_t pc, size_t* count) {
    const assay::collector::CallSuspended in_assay;
    return contents(parser->places->find(pc), count);
}

void trace_parser_prepare_frames(const trace_parser_t* parser, const uint64_t* pcs, size_t count) {
    const std::vector<uint64_t> copied(pcs, pcs + count);  // may fault: the address can be invalid
    const assay::collector::CallSuspended in_assay;
    parser->places->prepare(copied);
}

}  // extern "C"
