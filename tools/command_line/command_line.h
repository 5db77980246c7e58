// What the command lines of all tools have in common: --help and --version, and the options of
// those that show sources on a terminal.
#pragma once

#include "framework/support/command_line.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct SourceOptions;

// --color and --pager, which are the same everywhere but for when there are colours and what they
// say.
void add_color(CommandLine& line, std::string& color, const char* help);
void add_pager(CommandLine& line, std::string& pager);

// --include, --source-extensions and --map, which are the same for all that show sources.
void add_source_search(CommandLine& line, SourceOptions& where);

// --help and --version.
void add_help(CommandLine& line);

// Takes what is written on it. False if --help or --version was asked for and has been printed.
// Throws Error, which begins with the name of the command.
bool parse(CommandLine& line, int argc, const char* const* argv, Order order = Order::kAny);

// What --version prints.
std::string version_line();

// Whether an argument of --color asks for colours on standard output.
bool wants_color(std::string_view color);

// The options of the subcommand whose command line `add_options` tells.
template <class Arguments>
std::vector<Option> options_of(void (*add_options)(CommandLine&, Arguments&)) {
    Arguments arguments;
    CommandLine line;
    add_options(line, arguments);
    add_help(line);
    return {line.options().begin(), line.options().end()};
}

// What is written on its command line. No value if --help or --version was asked for and has been
// printed. Throws Error.
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
