// `assay plugins`: which profilers there are, and what one has to offer.
#pragma once

#include "tools/command_line/command_line.h"

#include <span>
#include <string>
#include <vector>

namespace assay {

// What a profiler, by its name or path, takes on the command line of a run. Throws Error.
std::vector<Option> profiler_options(const std::string& profiler);

// `arguments` stand behind "plugins". Returns the exit status. Throws Error.
int plugins_main(std::span<const std::string> arguments);

}  // namespace assay
