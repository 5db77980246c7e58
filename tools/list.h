// assay list: the instructions of functions with the counts of each, and the values that profilers
// have seen there; after DCPI's dcpilist.
#pragma once

#include "tools/annotate_output.h"
#include "tools/list_options.h"

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int list_main(int argc, char** argv);

namespace list {

using annotate::Output;

void list(const Options& options, Output& output);

}  // namespace list
}  // namespace assay
