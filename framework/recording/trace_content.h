// The content of a trace: TRACE_RECORDED_* and TRACE_VALUES_* of assay/trace_file.h, and the words
// for it in `assay record --capture`.
#pragma once

#include "assay/trace_file.h"
#include "framework/trace/value_lists.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace assay::recording {

struct TraceContent {
    std::uint32_t captures = TRACE_RECORDED_BLOCKS | TRACE_RECORDED_REFERENCES |
                             TRACE_RECORDED_CALLS | TRACE_RECORDED_SYSTEM_CALLS |
                             TRACE_RECORDED_LINE_OPERATIONS;
    std::uint32_t values = 0;

    bool has(std::uint32_t recorded) const { return (captures & recorded) == recorded; }
};

// Reads words with commas between them, such as "references,calls,values=loads+stores". Throws
// Error that names an unknown word and the nearest known one.
TraceContent content_of_words(std::string_view words);

// The values that a driver captures of each instruction for such a trace.
std::unique_ptr<trace::ValueLists> recorded_values(const TraceContent& content);
// The byte of a trace's list that stands for a value of a profiler's list. The two may differ. 0 if
// no trace has the value.
std::uint8_t recorded_value(std::uint8_t value);

// The first wanted values that a trace with `content` lacks, and the remedy, as the end of a
// sentence; "" if it has all.
std::string missing_values(const trace::ValueLists& wanted, const TraceContent& content);
// True if a profiler wants the addresses of prefetches, clflush and similar instructions, and the
// trace lacks them. Older versions of assay did not record them. missing_values() ignores them.
bool lacks_line_operations(const trace::ValueLists& wanted, const TraceContent& content);
// The same for records that are not values; `recorded` is one of TRACE_RECORDED_*.
std::string missing_records(std::uint32_t recorded, const TraceContent& content);

}  // namespace assay::recording
