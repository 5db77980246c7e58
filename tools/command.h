// The subcommands of assay, and what shells and --help can know of each from its own table.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct OptionDescription {
    std::vector<std::string> names;  // with their dashes
    std::string argument;            // what stands for it in --help; empty if there is none
    std::string help;                // one line

    // Words that the argument may be: those of `yes|no`. Empty if it may be anything.
    std::vector<std::string> choices() const;
    // Whether the argument is the name of a file or folder.
    bool takes_file() const;
};

struct Command {
    std::string_view name;
    std::string_view arguments;          // as in a synopsis
    std::string_view summary;            // one line
    int (*main)(int argc, char** argv);  // argv[0] is the name; throws Error
    std::vector<OptionDescription> (*options)();
};

// In the order in which --help shows them.
std::span<const Command> commands();
// Null if there is none of that name.
const Command* find_command(std::string_view name);

// What --version prints.
std::string version_line();

// A row of a table of options: the names, and from column `width` on the help, broken into lines.
std::string help_row(std::string names, std::string_view help, std::size_t width);

}  // namespace assay
