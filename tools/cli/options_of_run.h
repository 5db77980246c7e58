// The options of assay itself, as tables show them.
#pragma once

#include "tools/command_line/command_line.h"

#include <vector>

namespace assay {

std::vector<OptionDescription> options_of_run();

}  // namespace assay
