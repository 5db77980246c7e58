// assay merge: the sum of events files as an events file.
#pragma once

#include "tools/command_line/command_line.h"

#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int merge_main(int argc, char** argv);

std::vector<Option> merge_options();

}  // namespace assay
