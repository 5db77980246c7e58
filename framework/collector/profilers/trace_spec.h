// What profilers ask to have captured, and the one specification for the driver that satisfies
// all of them.
#pragma once

#include "assay/trace_vlist.h"
#include "framework/trace/segment_layout.h"

#include <memory>
#include <span>

struct trace_vlist {
    std::uint32_t count;
    trace_value_t values[TRACE_VLIST_MAX];
};

// The C ABI's handle. Profilers free it with free(), so it is one block without constructors.
struct trace_vlist_table {
    struct Entry {
        bool selected;
        trace_vlist list;
    };

    assay::trace::Spec spec;
    // As in ValueLists.
    Entry entries[assay::trace::kOpcodeMaps.size()][assay::trace::kOpcodesOfMap]
                 [assay::trace::kAccesses];
};

namespace assay::collector {

// The most selective filter that passes on whatever one of both passes on.
trace::LineFilter combine(trace::LineFilter a, trace::LineFilter b);
trace::Spec combine(const trace::Spec& a, const trace::Spec& b);

// What one profiler asks for, with each value in the order of its list. Too large for a small
// stack.
std::unique_ptr<trace::ValueLists> value_lists(const trace_vlist_table& table);
// Adds the values that are not there yet. Throws Error if one instruction would have more than a
// driver can capture.
void add(trace::ValueLists& to, const trace::ValueLists& from);

// Throws Error if a filter's numbers are not those that trace_vlist.h allows, or if the native
// driver cannot capture it.
void check(const trace::Spec& spec);

}  // namespace assay::collector
