// The series of an events file as tables of numbers.
#pragma once

#include "framework/events/series.h"
#include "tools/output/output.h"

#include <string>

namespace assay::list {

void write_series(const events::Series& series, Output& output);

// Those of a file, one behind the other. Throws Error if it cannot be read or has none.
void list_series(const std::string& path, Output& output);

}  // namespace assay::list
