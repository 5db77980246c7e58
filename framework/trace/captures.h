// The captures that a specification can ask for, a row each. The functions of trace_vlist.h fill in
// a row's bit and parameters. Combining and checking specifications, recording, replaying,
// check-plugin and `assay plugins` go over the rows.
#pragma once

#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace assay::trace {

struct CaptureRow {
    Capture capture;
    std::string_view description;
    // Follows the description. nullptr: the capture has no parameters.
    std::string (*parameters)(const Spec& spec) = nullptr;
    // Called if one of two specifications has the capture: `both` is the first one, and gets what
    // satisfies both. Its `captures` are still its own. Throws Error if nothing satisfies both.
    // nullptr: there is nothing to combine.
    void (*combine)(Spec& both, const Spec& other) = nullptr;
    // Throws Error if the parameters are not those that trace_vlist.h allows.
    void (*check)(const Spec& spec) = nullptr;
    // A trace needs one of these for a replay to have the capture: TRACE_RECORDED_*.
    std::uint32_t recorded = 0;
    // False: a replay computes the capture from other records.
    bool is_recorded = false;
    // Records that a replay passes on as they were recorded: a bit for each TRACE_SITE_*.
    std::uint32_t sites = 0;
};

// In the order in which they are listed.
std::span<const CaptureRow> capture_rows();

// The most selective filter that passes on whatever one of both passes on.
Filter combine(const Filter& a, const Filter& b);
// What satisfies both. Settings of the run are those of `a`. Throws Error.
Spec combine(const Spec& a, const Spec& b);
// Throws Error if a parameter is not what trace_vlist.h allows.
void check(const Spec& spec);

// The captures of a recording with these TRACE_RECORDED_*.
std::uint32_t captures_of_recording(std::uint32_t recorded);
// Whether a replay of this specification passes such records on.
bool passes_on(const Spec& spec, unsigned site_kind);

}  // namespace assay::trace
