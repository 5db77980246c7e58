// assay report: events files as one page of HTML that needs nothing else.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/sources/source_finder.h"

#include <string>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int report_main(int argc, char** argv);

namespace report {

struct Options {
    std::string output = "report.html";
    std::vector<std::string> profiles;  // added up; for a difference, the new one
    std::string old_profile;            // empty: no difference
    SourceOptions where, old_where;     // to look for sources; for those of the old profile
    // What assay's or Valgrind's bbv profiler, and SimPoint, have written; may be empty.
    std::string block_vectors, simulation_points, weights, labels;
};

// For --help and completion.
std::vector<Option> options();

}  // namespace report
}  // namespace assay
