// assay annotate: totals, functions and annotated sources of events files, for people.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/expressions/expressions.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
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
    std::vector<std::string> sources;  // to annotate even if below the threshold
    bool difference = false;           // show the second of two profiles less the first
    bool match = true;  // with `difference`: match functions whose names have changed
    std::vector<Replacement> file_names, function_names;

    std::vector<std::string> show;  // names of events and derived figures; empty: all events
    std::vector<SortEvent> sort;    // empty: all, in the order of the file
    double threshold = 0.1;  // in percent of the first sort event, unless a sort event has its own
    Cells cells = Cells::kShares;

    // Show everything: all events, functions and lines with counts, in rows of any width.
    bool full = false;
    bool wide = false;      // show all events
    std::size_t top = 0;    // unless `full`: functions to show; 0: as many as fit a page
    std::size_t width = 0;  // of a row; 0: unlimited

    bool automatic = true;      // annotate the files of the functions shown
    bool instructions = false;  // below their lines
    bool calls = false;         // show callers and callees instead of sources
    bool tree = false;          // show calling contexts instead of sources
    std::string by;             // the kind of groups to show instead of sources
    bool lines = false;         // with `by`: show the lines that counted
    bool by_context() const { return calls || tree; }
    bool without_sources() const { return by_context() || !by.empty(); }
    unsigned context = 2;  // lines shown around each line that is shown
    SourceOptions where;   // where to look for sources

    OwnOptions own;
    NameStyle names = NameStyle::kShort;  // JSON has the full names
    bool json = false;
    bool color = false;
    bool pager = false;
};

std::vector<Option> options();

// No value if --help was given and the help has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

void annotate(const Options& options, Output& output);

}  // namespace assay::annotate

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int annotate_main(int argc, char** argv);

}  // namespace assay
