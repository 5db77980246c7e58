// What a profiler declares: its columns, figures, lists of values and options.
#pragma once

#include "assay/vprofiler.h"
#include "framework/collector/profilers/profiler_handle.h"

#include <cstddef>
#include <string>

namespace assay::collector {

// In bytes. Texts become lines of the events file, and its readers refuse lines above 1 MB.
inline constexpr std::size_t kLongestName = 256, kLongestText = 4096;

inline std::string text_or_empty(const char* text) {
    return text ? text : "";
}

// read_events() calls vp_events of the table, read_derived() calls vp_derived, and so on. They
// append what the profiler declares. The profiler can crash: call them under a CrashGuard.
void read_events(const vp_dispatch_t& table, ProfilerFacts& facts);
void read_derived(const vp_dispatch_t& table, ProfilerFacts& facts);
void read_value_lists(const vp_dispatch_t& table, ProfilerFacts& facts);
void read_options(const vp_dispatch_t& table, ProfilerFacts& facts);

// Throws Error, which says what is wrong, if a name, text or formula is illegal.
void check_declarations(const ProfilerFacts& facts);

}  // namespace assay::collector
