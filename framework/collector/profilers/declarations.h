// What a profiler declares: its columns, figures, lists of values and options.
#pragma once

#include "assay/vprofiler.h"
#include "framework/collector/profilers/profiler_handle.h"

#include <cstddef>
#include <string>

namespace assay::collector {

inline constexpr std::size_t kLongestText = 4096;  // in bytes

inline std::string text_or_empty(const char* text) {
    return text ? text : "";
}

// Each calls the function of the table that has its name, and appends what that returns. The
// function can crash.
void read_events(const vp_dispatch_t& table, ProfilerFacts& facts);
void read_derived(const vp_dispatch_t& table, ProfilerFacts& facts);
void read_value_lists(const vp_dispatch_t& table, ProfilerFacts& facts);
void read_options(const vp_dispatch_t& table, ProfilerFacts& facts);

// Throws Error, which says what is wrong, if a name, text or formula is illegal.
void check_declarations(const ProfilerFacts& facts);

}  // namespace assay::collector
