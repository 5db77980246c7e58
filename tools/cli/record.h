// `assay record`: writes a trace of a program.
#pragma once

#include "tools/command_line/command_line.h"

#include <span>
#include <string>
#include <vector>

namespace assay {

// `arguments` stand behind "record". Ends as run_main does. Throws Error.
int record_main(std::span<const std::string> arguments);

std::vector<Option> record_options();

}  // namespace assay
