// assay trace: what is in a trace, as text.
#pragma once

#include "tools/trace/options.h"

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int trace_main(int argc, char** argv);

}  // namespace assay
