// Whether the names and tables of a profiler keep to the rules.
#pragma once

#include "tools/check_plugin/subject.h"

#include <string>

namespace assay::check {

void check_tables(const std::string& path, Report& report);

}  // namespace assay::check
