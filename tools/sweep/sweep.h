// assay sweep: runs of one program with every combination of some options' values.
#pragma once

#include "tools/command_line/command_line.h"

#include <vector>

namespace assay::sweep {

// The subcommand. argv[0] is its name. Returns 1 if a point has failed. Throws Error.
int sweep_main(int argc, char** argv);

std::vector<Option> options();

}  // namespace assay::sweep
