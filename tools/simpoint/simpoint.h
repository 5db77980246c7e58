// assay simpoint: finds the phases of a program in its block vectors, and an interval that stands
// for each.
#pragma once

#include "tools/command_line/command_line.h"

#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int simpoint_main(int argc, char** argv);

namespace simpoint {

std::vector<Option> options();

}  // namespace simpoint
}  // namespace assay
