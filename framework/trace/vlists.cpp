// Values of instructions: what profilers ask for by the functions of assay/trace_vlist.h.
#include "framework/support/error.h"
#include "framework/trace/captures.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace assay::trace {

std::unique_ptr<ValueLists> value_lists(const trace_vlist_table& table) {
    auto lists = std::make_unique<ValueLists>();
    for (std::size_t map = 0; map < kOpcodeMaps.size(); ++map)
        for (unsigned opcode = 0; opcode < kOpcodesOfMap; ++opcode)
            for (unsigned access = 0; access < kAccesses; ++access) {
                const trace_vlist_table::Entry& entry = table.entries[map][opcode][access];
                ValueList& list = lists->lists[map][opcode][access];
                list.selected = entry.selected;
                for (std::uint32_t i = 0; i < entry.list.count; ++i)
                    list.add(value_byte(entry.list.values[i]), entry.list.values[i] & TRACE_WIDE);
            }
    return lists;
}

void add(ValueLists& to, const ValueLists& from) {
    const auto* theirs = &from.lists[0][0][0];
    ValueList* ours = &to.lists[0][0][0];
    for (std::size_t i = 0; i < sizeof from / sizeof *theirs; ++i) {
        ValueList& list = ours[i];
        list.selected |= theirs[i].selected;
        for (unsigned v = 0; v < theirs[i].count; ++v) {
            const std::uint8_t value = theirs[i].values[v];
            const unsigned at = list.index_of(value);
            if (at == kMostValues)
                throw Error(fmt::format(
                    "the profilers ask for more than {} values of one instruction: load fewer",
                    kMostValues));
            if (at == list.count) list.add(value, false);
            list.wide |= std::uint32_t{theirs[i].is_wide(v)} << at;
        }
        if (std::popcount(list.wide) > int{kMostWideValues})
            throw Error(
                fmt::format("the profilers ask for more than {} values of one instruction with all "
                            "their bytes: load fewer",
                            kMostWideValues));
    }
}

}  // namespace assay::trace

using namespace assay::trace;

namespace {

using Table = trace_vlist_table;

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
        for (unsigned byte = 0; byte < kOpcodesOfMap; ++byte)
            for (unsigned access = 0; access < kAccesses; ++access) {
                const std::uint16_t opcode = TRACE_OPCODE(kOpcodeMaps[map], byte);
                const std::uint32_t flags = access | control_flow(opcode);
                good &= visit(table.entries[map][byte][access], opcode, flags);
            }
    return good ? 0 : -1;
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
    const unsigned map = map_index(opcode);
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

}  // extern "C"
