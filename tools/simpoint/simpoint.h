// assay simpoint: finds the phases of a program in its block vectors, and an interval that stands
// for each.
#pragma once

#include "tools/command_line/command_line.h"

#include <string>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int simpoint_main(int argc, char** argv);

namespace simpoint {

// What the names of all results begin with: that of the vectors, without what says that they are
// compressed.
std::string result_base(std::string vectors);

std::vector<OptionDescription> options();

}  // namespace simpoint
}  // namespace assay
