// The command line of assay annotate.
#pragma once

#include "tools/command.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::annotate {

// An event to sort by. With a threshold it also selects functions: those with at least that
// percentage of the event's total are shown.
struct SortEvent {
    std::string name;
    std::optional<double> threshold;
};

struct Options {
    std::vector<std::string> profiles;  // events files; their counts are added up
    std::vector<std::string> sources;   // to annotate, whatever they count
    std::vector<std::string> show;      // event names; empty: all
    std::vector<SortEvent> sort;        // empty: all, in the order of the file
    double threshold = 0.1;             // of the first sort event, if none has its own
    bool percentages = true;
    bool automatic = true;                  // annotate the files of the functions shown
    unsigned context = 8;                   // lines around each line with counts
    std::vector<std::string> include_dirs;  // where to look for sources, too
    bool color = false;
};

// The table of the options.
std::vector<OptionDescription> options();

// No value if --help was asked for and has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

}  // namespace assay::annotate
