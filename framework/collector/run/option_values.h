// Reads the values of a run's options. Each function throws Error for an invalid text; the message
// names the valid ones.
#pragma once

#include "framework/collector/run/settings.h"
#include "framework/trace/launch.h"
#include "framework/trace/segment_layout.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace assay::collector {

// The value of --driver.
std::string driver(const Setting& setting);

trace::CpuLevel cpu_level(const Setting& setting);
// A number of instructions, at least 1: 4000000, 4000k or 4M.
std::uint64_t instructions_of(const Setting& setting);
// A number of instructions, which can be 0.
std::uint64_t warm_up_of(const Setting& setting);
std::uint32_t recursion(const Setting& setting);
std::chrono::milliseconds duration(const Setting& setting);
ShowProgress progress(const Setting& setting);
// Returns Spec::slice.
std::uint32_t slice(const Setting& setting, bool is_replay);
void set_sampling(trace::Regions& regions, const Setting& setting);
// Adds the functions of --toggle, --alloc-functions and --hide.
void add_functions(trace::Regions& regions, const Setting& setting);
void add_allocation_functions(std::string& all, const Setting& setting);

}  // namespace assay::collector
