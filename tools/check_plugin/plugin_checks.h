// What a profiler must keep to, checked in a process of its own. See assay/vprofiler.h and
// docs/abi.md for the rules.
#pragma once

#include "tools/check_plugin/report.h"

#include <span>
#include <string>
#include <string_view>

namespace assay::check {

struct Check {
    std::string_view situation;  // for messages about crashes: "in ..."
    void (*run)(const std::string& path, Report& report);
};
std::span<const Check> checks();

// A run with one option set.
void check_option(const std::string& path, const std::string& name, const std::string& value,
                  Report& report);
// Values to try.
std::span<const std::string_view> values_of_type(unsigned type);

}  // namespace assay::check
