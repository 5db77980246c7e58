// assay check-plugin: checks that profilers keep to the rules of the interface.
#pragma once

#include "tools/command_line/command_line.h"

#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Returns 1 if a profiler breaks a rule. Throws Error.
int check_plugin_main(int argc, char** argv);

namespace check {

std::vector<Option> options();

}  // namespace check
}  // namespace assay
