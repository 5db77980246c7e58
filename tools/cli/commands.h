// The subcommands of assay, and what shells and --help can know of each from its own table.
#pragma once

#include "tools/command_line/command_line.h"

#include <span>
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

}  // namespace assay
