// assay annotate: totals, functions and annotated sources of events files, for people.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/expressions/expressions.h"
#include "tools/output/output.h"
#include "tools/profile/profile_files.h"
#include "tools/sources/source_finder.h"
#include "tools/table/table.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::annotate {

struct Options {
    std::vector<std::string> profiles;  // events files or indices, as they were named
    // Events files whose counts are added up; of a difference, the new ones and the old ones.
    ProfileFiles files, old_files;
    std::vector<std::string> sources;  // to annotate, whatever they count
    bool difference = false;           // of two profiles: the second less the first
    bool match = true;                 // then: functions whose names have changed, too
    std::vector<Replacement> file_names, function_names;

    std::vector<std::string> show;  // names of events and derived figures; empty: all events
    std::vector<SortEvent> sort;    // empty: all, in the order of the file
    double threshold = 0.1;         // of the first sort event, if none has its own
    bool percentages = true;

    bool automatic = true;      // annotate the files of the functions shown
    bool instructions = false;  // below their lines
    bool calls = false;         // callers and callees, instead of all this
    bool tree = false;          // calling contexts, the same
    std::string by;             // a kind of groups: counts by these, the same
    bool lines = false;         // then: with the lines that they are of
    bool by_context() const { return calls || tree; }
    bool without_sources() const { return by_context() || !by.empty(); }
    unsigned context = 8;  // lines around each line with counts
    SourceOptions where;   // to look for sources

    bool json = false;
    bool color = false;
    bool pager = false;
};

// The table of the options.
std::vector<Option> options();

// No value if --help was asked for and has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

void annotate(const Options& options, Output& output);

}  // namespace assay::annotate

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int annotate_main(int argc, char** argv);

}  // namespace assay
