// Options that the command lines of several tools share: --help and --version, and those of tools
// that show sources on a terminal.
#pragma once

#include "framework/support/command_line.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct SourceOptions;

// Adds --color and --pager. Only the help of --color differs between tools.
void add_color(CommandLine& line, std::string& color, const char* help);
void add_pager(CommandLine& line, std::string& pager);

// Adds --names=short|full.
void add_names(CommandLine& line, std::string& names);

// Which code to show.
struct OwnOptions {
    bool only = false;               // count library code for the own code that called it
    std::vector<std::string> paths;  // of OwnCode
    bool wanted() const { return only || !paths.empty(); }
};

// Adds --only-own and --own.
void add_own(CommandLine& line, OwnOptions& own);

// Adds --include, --source-extensions and --map.
void add_source_search(CommandLine& line, SourceOptions& where);

// Adds --help and --version.
void add_help(CommandLine& line);

// Parses the arguments. Returns false if --help or --version was given and its text has been
// printed. Throws Error with the name of the command first.
bool parse(CommandLine& line, int argc, const char* const* argv, Order order = Order::kAny);

// What --version prints.
std::string version_line();

// True if this value of --color asks for colours on standard output.
bool wants_color(std::string_view color);

// The options that `add_options` defines, with --help and --version.
template <class Arguments>
std::vector<Option> options_of(void (*add_options)(CommandLine&, Arguments&)) {
    Arguments arguments;
    CommandLine line;
    add_options(line, arguments);
    add_help(line);
    return {line.options().begin(), line.options().end()};
}

// Parses the command line. No value if --help or --version was given and its text has been printed.
// Throws Error.
template <class Arguments>
std::optional<Arguments> parse_arguments(void (*add_options)(CommandLine&, Arguments&), int argc,
                                         const char* const* argv) {
    std::optional<Arguments> arguments(std::in_place);
    CommandLine line;
    add_options(line, *arguments);
    add_help(line);
    if (!parse(line, argc, argv)) arguments.reset();
    return arguments;
}

}  // namespace assay
