// assay list: lists the instructions of functions with their counts, and the values that profilers
// have recorded there. Modelled on DCPI's dcpilist.
#pragma once

#include "tools/code/object_code.h"
#include "tools/command_line/command_line.h"
#include "tools/expressions/expressions.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
#include "tools/sources/source_finder.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::list {

// The command line of assay list.
struct Options {
    std::string profile;
    std::string program;              // replaces one of the profile's objects; may be empty
    std::optional<Pattern> function;  // lists all functions with such names, whatever their counts
    double threshold = 0.1;           // otherwise lists what has so many per cent of the first sort
                                      // event: instructions, or functions if `full`
    std::vector<std::string> show;    // event names; empty: those that matter, or all if `full`
    std::vector<std::string> sort;    // empty: as `show`, or all in the order of the file
    SourceOptions where;              // where to look for sources
    std::vector<std::string> plugins;  // profilers that print values, by path or name
    std::size_t values = 8;            // most values to print of each list
    Syntax syntax = Syntax::kAtt;
    NameStyle names = NameStyle::kShort;
    bool full = false;    // list whole functions and all events
    bool series = false;  // print only series, as tables
    bool source = false;  // print source lines between the instructions
    bool percentages = true;
    bool color = false;
    bool pager = false;

    // Lists only instructions that matter.
    bool brief() const { return !full && !function; }
};

// For the table of commands.
std::vector<Option> options();

// No value if --help was given and its text has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

}  // namespace assay::list

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int list_main(int argc, char** argv);

namespace list {

void list(const Options& options, Output& output);

}  // namespace list

}  // namespace assay
