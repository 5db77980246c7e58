// The values of options of a run: text that is understood, or refused by an Error that says what is
// expected.
#pragma once

#include "framework/collector/run/settings.h"
#include "framework/trace/launch.h"
#include "framework/trace/segment_layout.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace assay::collector {

trace::CpuLevel cpu_level(const Setting& setting);
// A number of instructions, as 4000000, 4000k or 4M, at least 1.
std::uint64_t instructions_of(const Setting& setting);
// The same from 0 on.
std::uint64_t warm_up_of(const Setting& setting);
std::uint32_t recursion(const Setting& setting);
std::chrono::milliseconds duration(const Setting& setting);
ShowProgress progress(const Setting& setting);
// Spec::slice.
std::uint32_t slice(const Setting& setting);
void set_sampling(trace::Regions& regions, const Setting& setting);
// Adds functions of --toggle, --alloc-functions and --hide.
void add_functions(trace::Regions& regions, const Setting& setting);
void add_allocation_functions(std::string& all, const Setting& setting);

}  // namespace assay::collector
