// A row for each capture that a specification can ask for. The functions of trace_vlist.h fill in a
// row's bit and parameters. Combining and checking of specifications, recording, replaying,
// check-plugin and `assay plugins` go over the rows.
#pragma once

#include "assay/trace_vlist.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

// The C ABI's handles. Profilers free them with free(): each is one block without constructors.
struct trace_vlist {
    std::uint32_t count;
    trace_value_t values[TRACE_VLIST_MAX];
};

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

namespace assay::trace {

struct CaptureRow {
    Capture capture;
    // TRACE_RECORDED_*: a trace with at least one of these can replay the capture.
    std::uint32_t recorded;
    std::string_view description;
    // Text that follows the description. nullptr: the capture has no parameters.
    std::string (*parameters)(const Spec& spec) = nullptr;
    // Called if at least one of two specifications has the capture. `both` holds the first one, and
    // receives parameters that satisfy both. `both.captures` still has the first one's bits. Throws
    // Error if no parameters satisfy both. nullptr if there is nothing to combine.
    void (*combine)(Spec& both, const Spec& other) = nullptr;
    // Throws Error if trace_vlist.h does not allow the parameters.
    void (*check)(const Spec& spec) = nullptr;
    // Records that a replay passes on unchanged: a bit for each TRACE_SITE_*.
    std::uint32_t sites = 0;
    // The driver in QEMU has it: for all programs, or for those of which it knows the instructions.
    enum ByQemu : std::uint8_t { kNever, kX86Only, kKnownInstructions, kAlways } by_qemu = kNever;
    // False: a replay computes the capture from other records.
    bool is_recorded = false;
};

// In the order in which they are listed.
std::span<const CaptureRow> capture_rows();

// The most selective filter that passes on everything that `a` or `b` passes on.
Filter combine(const Filter& a, const Filter& b);
// A specification that satisfies both. Settings of the run are those of `a`. Throws Error if that
// is impossible.
Spec combine(const Spec& a, const Spec& b);
// Throws Error if trace_vlist.h does not allow a parameter.
void check(const Spec& spec);

// The values that a profiler asks for, each in the order of its list. The result is too large for a
// small stack.
std::unique_ptr<ValueLists> value_lists(const trace_vlist_table& table);
// Adds the values that are not there yet. Throws Error if one instruction would have more than a
// driver can capture.
void add(ValueLists& to, const ValueLists& from);

// What the driver in QEMU cannot give of a program; "" if it gives all. It gives the captures whose
// row has `least` or more.
std::string not_by_qemu(const Spec& spec, CaptureRow::ByQemu least);

// The captures of a recording with these TRACE_RECORDED_*.
std::uint32_t captures_of_recording(std::uint32_t recorded);
// True if a replay of this specification passes on records of this kind unchanged.
bool passes_on(const Spec& spec, unsigned site_kind);

}  // namespace assay::trace
