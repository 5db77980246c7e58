// `assay run`: the command line of a run.
#pragma once

#include <span>
#include <string>

namespace assay {

// `arguments` stand behind "run". Ends the process as the program ended if it was ended by a
// signal; otherwise returns the exit status. Throws Error.
int run_main(std::span<const std::string> arguments);

// The text of --help.
std::string run_help();

}  // namespace assay
