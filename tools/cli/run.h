// `assay run`, `assay record` and `assay replay`: their command lines.
#pragma once

#include "tools/command_line/command_line.h"

#include <span>
#include <string>
#include <vector>

namespace assay {

// `arguments` stand behind "run". Ends the process as the program ended if it was ended by a
// signal; otherwise returns the exit status. Throws Error.
int run_main(std::span<const std::string> arguments);

// The options of assay itself, as tables show them.
std::vector<Option> run_options();

// The text of --help.
std::string run_help();

// The text of `assay --version --verbose` (version.cpp): the version, the processor and what
// programs are shown of it, the kernel, and the libraries. `driver` is "" for the installed driver.
// `hidden` is the value of --hide. Throws Error if the driver cannot be run.
std::string version_report(const std::string& driver, const std::string& hidden);

// `assay record`: writes a trace of a program.

// `arguments` stand behind "record". Ends as run_main does. Throws Error.
int record_main(std::span<const std::string> arguments);

std::vector<Option> record_options();

// `assay replay`: profiles a trace.

// `arguments` stand behind "replay". Throws Error.
int replay_main(std::span<const std::string> arguments);

std::vector<Option> replay_options();

}  // namespace assay
