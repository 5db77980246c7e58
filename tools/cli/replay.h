// `assay replay`: profiles a trace.
#pragma once

#include "tools/command_line/command_line.h"

#include <span>
#include <string>
#include <vector>

namespace assay {

// `arguments` stand behind "replay". Throws Error.
int replay_main(std::span<const std::string> arguments);

std::vector<Option> replay_options();

}  // namespace assay
