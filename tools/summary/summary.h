// assay summary: shows the slow parts of a profile and the reasons on one screen.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"

#include <string>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int summary_main(int argc, char** argv);

namespace summary {
std::vector<Option> options();
// Writes the summary of these events files or indices. Throws Error.
void write(const std::vector<std::string>& paths, NameStyle style, const OwnOptions& own,
           Output& output);
}  // namespace summary

}  // namespace assay
