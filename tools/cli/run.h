// `assay run`, `assay record` and `assay replay`: their command lines.
#pragma once

#include "tools/command_line/command_line.h"

#include <span>
#include <string>
#include <vector>

namespace assay {

// `arguments` follow the word "run". If a signal ended the program, ends this process in the same
// way. Otherwise returns the exit status. Throws Error.
int run_main(std::span<const std::string> arguments);

// The options of assay itself, without those of profilers.
std::vector<Option> run_options();

// The text of `assay --help`: first steps and all commands.
std::string first_help();

// The text of `assay --version --verbose` (version.cpp): version, processor, features that programs
// see, kernel and libraries. `driver` is "" for the installed driver. `hidden` is the value of
// --hide. Throws Error if the driver cannot be run.
std::string version_report(const std::string& driver, const std::string& hidden);

// `assay record`: writes a trace of a program.

// `arguments` follow the word "record". Ends as run_main does. Throws Error.
int record_main(std::span<const std::string> arguments);

std::vector<Option> record_options();

// `assay replay`: profiles a trace.

// `arguments` follow the word "replay". Throws Error.
int replay_main(std::span<const std::string> arguments);

std::vector<Option> replay_options();

}  // namespace assay
