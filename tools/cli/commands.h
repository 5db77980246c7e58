// The subcommands of assay, what shells and --help can know of each from its own table, and two
// that tell of these tables.
#pragma once

#include "tools/command_line/command_line.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Command {
    std::string_view name;
    std::string_view arguments;          // as in a synopsis
    std::string_view summary;            // one line
    int (*main)(int argc, char** argv);  // argv[0] is the name; throws Error
    std::vector<Option> (*options)();
};

// In the order in which --help shows them.
std::span<const Command> commands();
// Null if there is none of that name.
const Command* find_command(std::string_view name);
// The nearest name of a command; "" if none is meant.
std::string nearest_command(std::string_view word);

// `assay completion`: scripts by which shells complete assay's commands and options.

// argv[0] is the command's name. Throws Error.
int completion_main(int argc, char** argv);

// For bash, zsh or fish; throws Error for another shell.
std::string completion_script(std::string_view shell);

// `assay plugins`: which profilers there are, and what one has to offer.

// What a profiler, by its name or path, takes on the command line of a run. Throws Error.
std::vector<Option> profiler_options(const std::string& profiler);

// `arguments` stand behind "plugins". Returns the exit status. Throws Error.
int plugins_main(std::span<const std::string> arguments);

}  // namespace assay
