// assay report: writes events files as one self-contained page of HTML.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/profile/display_names.h"
#include "tools/sources/source_finder.h"

#include <string>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int report_main(int argc, char** argv);

namespace report {

struct Options {
    std::string output = "report.html";
    std::vector<std::string> profiles;  // files to add up; for a difference, the new file
    std::string old_profile;            // empty: no difference
    NameStyle names = NameStyle::kShort;
    SourceOptions where, old_where;  // where to look for sources, and for those of the old profile
    // Files of assay's or Valgrind's bbv profiler, and of SimPoint; may be empty.
    std::string block_vectors, simulation_points, weights, labels;
};

std::vector<Option> options();

}  // namespace report
}  // namespace assay
