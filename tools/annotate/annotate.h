// assay annotate: totals, functions and annotated sources of events files, for people.
#pragma once

#include "tools/annotate/options.h"
#include "tools/output/output.h"

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int annotate_main(int argc, char** argv);

namespace annotate {

void annotate(const Options& options, Output& output);

}  // namespace annotate
}  // namespace assay
