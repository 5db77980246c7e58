// What of a program a trace has: TRACE_RECORDED_* and TRACE_VALUES_* of assay/trace_file.h, and the
// words of assay record --capture for it.
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

// Of words with commas between them, as "references,calls,values=loads+stores". Throws Error, which
// names the word that is none and the nearest one.
TraceContent content_of_words(std::string_view words);

// What a driver captures of each instruction for such a trace.
std::unique_ptr<trace::ValueLists> recorded_values(const TraceContent& content);
// In a trace, where a value of a profiler's list is found: the byte of the recorded list, which may
// be written in another way there. 0 if no trace has it.
std::uint8_t recorded_value(std::uint8_t value);

// What of `wanted` a trace with `content` does not have, and what to do about it, as the end of a
// sentence; "" if it has all.
std::string missing_values(const trace::ValueLists& wanted, const TraceContent& content);
// Whether the addresses of prefetches, clflush and the like are wanted, and the trace, which an
// older assay has recorded, does not have them. missing_values() does not count these.
bool lacks_line_operations(const trace::ValueLists& wanted, const TraceContent& content);
// Likewise of what is not values; `recorded` is one of TRACE_RECORDED_*.
std::string missing_records(std::uint32_t recorded, const TraceContent& content);

}  // namespace assay::recording
