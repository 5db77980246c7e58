// What a profiler must keep to, checked in a process of its own. See assay/vprofiler.h and
// docs/reference/abi.md for the rules.
#pragma once

#include "tools/check_plugin/subject.h"
#include "tools/check_plugin/trial_trace.h"

#include <span>
#include <string>
#include <string_view>

namespace assay::check {

// What is checked, and with what.
struct Trial {
    std::string path;        // of the profiler
    const TraceFile* trace;  // null: traces that are made up
};

struct Check {
    std::string_view situation;  // for messages about crashes: "in ..."
    void (*run)(const Trial& trial, Report& report);
};
// Those that can be done with the trial's trace.
std::span<const Check> checks(const Trial& trial);

// A run with one option set.
void check_option(const Trial& trial, const std::string& name, const std::string& value,
                  Report& report);
// Values to try.
std::span<const std::string_view> values_of_type(unsigned type);

// Whether the names and tables of a profiler keep to the rules.
void check_tables(const std::string& path, Report& report);

}  // namespace assay::check
