// assay list: the instructions of functions with the counts of each, and the values that profilers
// have seen there; after DCPI's dcpilist.
#pragma once

#include "tools/list/options.h"
#include "tools/output/output.h"

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int list_main(int argc, char** argv);

namespace list {

void list(const Options& options, Output& output);

}  // namespace list
}  // namespace assay
