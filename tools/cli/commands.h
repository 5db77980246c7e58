// The subcommands of assay, and the commands that describe them: completion and plugins.
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

// In the order of --help.
std::span<const Command> commands();
// Null if no command has that name.
const Command* find_command(std::string_view name);
// The command whose name is nearest to `word`; "" if no name is similar.
std::string nearest_command(std::string_view word);

// `assay completion`: prints scripts that complete assay's commands and options in shells.

// argv[0] is the command's name. Throws Error.
int completion_main(int argc, char** argv);

// For bash, zsh or fish; throws Error for another shell.
std::string completion_script(std::string_view shell);

// `assay plugins`: lists the profilers, or the options, events and captures of a profiler.

// Options that a profiler adds to the command line of a run. `profiler` is a name or a path. Throws
// Error.
std::vector<Option> profiler_options(const std::string& profiler);

// `arguments` follow the word "plugins". Returns the exit status. Throws Error.
int plugins_main(std::span<const std::string> arguments);

}  // namespace assay
