// Finds the files in which a process names the code that it has made itself, and reads them.
#pragma once

#include "framework/collector/trace/address_map.h"
#include "framework/symbols/generated_code.h"

#include <sys/types.h>

#include <ctime>

namespace assay::collector {

// /tmp/perf-PID.map, and each jit-*.dump that the process has mapped as code: so perf finds them.
// Files that were last written before `begin` are of an earlier process; those of other users than
// this one and root can say anything. Remarks what is wrong with those that are read.
symbols::GeneratedCode read_generated_names(pid_t pid, const AddressMap& addresses,
                                            std::time_t begin);

}  // namespace assay::collector
