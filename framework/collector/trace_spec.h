// What profilers ask to have captured, and the one specification for the driver that satisfies
// all of them.
#pragma once

#include "assay/trace_vlist.h"
#include "framework/trace/segment_layout.h"

#include <span>

struct trace_vlist {
    std::uint32_t count;
    trace_value_t values[TRACE_VLIST_MAX];
};

// The C ABI's handle. Profilers free it with free(), so it is one block without constructors.
struct trace_vlist_table {
    // Lists by opcode map (one that trace_types.h names), opcode byte, and whether the instruction
    // loads and stores.
    static constexpr unsigned kMaps = 12, kOpcodes = 256, kAccesses = 4;
    struct Entry {
        bool selected;
        trace_vlist list;
    };

    assay::trace::Spec spec;
    Entry entries[kMaps][kOpcodes][kAccesses];
};

namespace assay::collector {

// The most selective filter that passes on whatever one of both passes on.
trace::LineFilter combine(trace::LineFilter a, trace::LineFilter b);
trace::Spec combine(const trace::Spec& a, const trace::Spec& b);

// Throws Error if a filter's numbers are not those that trace_vlist.h allows, or if the native
// driver cannot capture it.
void check(const trace::Spec& spec);

}  // namespace assay::collector
