// What profilers ask to have captured (assay/trace_vlist.h), and the values that satisfy all of
// them. framework/trace/captures.h combines the rest.
#pragma once

#include "assay/trace_vlist.h"
#include "framework/trace/captures.h"

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

// What one profiler asks for, with each value in the order of its list. Too large for a small
// stack.
std::unique_ptr<trace::ValueLists> value_lists(const trace_vlist_table& table);
// Adds the values that are not there yet. Throws Error if one instruction would have more than a
// driver can capture.
void add(trace::ValueLists& to, const trace::ValueLists& from);

}  // namespace assay::collector
