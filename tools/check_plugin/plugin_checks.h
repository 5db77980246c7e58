// Checks of the rules for profilers. Each check runs in its own process. assay/vprofiler.h and
// docs/reference/abi.md state the rules.
#pragma once

#include "tools/check_plugin/subject.h"
#include "tools/check_plugin/trial_trace.h"

#include <span>
#include <string>
#include <string_view>

namespace assay::check {

// The profiler to check, and the trace to check it with.
struct Trial {
    std::string path;        // of the profiler
    const TraceFile* trace;  // null: synthetic traces
};

struct Check {
    std::string_view situation;  // for messages about crashes: "in ..."
    void (*run)(const Trial& trial, Report& report);
};
// The checks that can use the trial's trace.
std::span<const Check> checks(const Trial& trial);

// Checks a run with one option set.
void check_option(const Trial& trial, const std::string& name, const std::string& value,
                  Report& report);
// Values to try for options of a type.
std::span<const std::string_view> values_of_type(unsigned type);

// Checks the names and tables of a profiler.
void check_tables(const std::string& path, Report& report);

}  // namespace assay::check
