// The C ABI's view of one trace buffer (assay/trace_parse.h).
#pragma once

#include "assay/trace_parse.h"
#include "framework/collector/profilers/source_places.h"
#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/interval_reader.h"
#include "framework/collector/trace/referenced_objects.h"
#include "framework/collector/trace/segment.h"
#include "framework/trace/value_lists.h"

#include <span>

struct trace_parser {
    std::uint32_t pid;
    std::uint32_t thread;
    std::span<const trace_record_t> records;
    assay::collector::CodeTables code;
    std::span<const std::uint64_t> counts;          // by instruction; empty before the end
    std::span<const std::uint64_t> mispredictions;  // by block; empty before the end
    const assay::collector::AddressMap* addresses;
    assay::collector::SourcePlaces* places;
    std::span<const trace_marker_t> markers = {};
    std::span<const std::uint64_t> footprints = {};
    // Used with calls; otherwise both are empty.
    std::span<const std::uint32_t> contexts = {};  // by record
    std::span<const trace_context_t> context_table = {};
    assay::collector::ReferencedObjects* objects = nullptr;  // null without --objects
    assay::collector::ReferenceTypes* types = nullptr;       // null if no types are known
    std::span<const assay::collector::Interval> intervals = {};
    std::size_t next_interval = 0;
    double scale = 1;  // of counts
    bool warm_up = false;
    std::uint32_t misses = 0;  // TRACE_FETCH_MISSES and TRACE_DATA_MISSES
    // State of trace_parser_next(): the values that the profiler wants, or nullptr; the index of
    // the next record; the records and the list of the last execution; and a bit for each value of
    // the list that it had.
    const assay::trace::ValueLists* wanted = nullptr;
    std::size_t next = 0;
    std::span<const trace_record_t> execution = {};
    const assay::trace::ValueList* list = nullptr;
    std::uint32_t present = 0;
    // The program is not for x86, so there are no facts: set if the profiler asks for some. nullptr
    // for x86.
    bool* lacks_facts = nullptr;
    mutable trace_instr_facts_t facts = {};  // of trace_parser_instr_facts()
};
