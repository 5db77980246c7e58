// Finds the files in which a process names the code that it has made itself, and reads them.
//
// Also the names that the linker knows functions by.
#pragma once

#include "framework/collector/trace/address_map.h"
#include "framework/events/writer.h"
#include "framework/symbols/generated_code.h"
#include "framework/symbols/symbolizer.h"

#include <sys/types.h>
#include <cstddef>
#include <ctime>
#include <map>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace assay::collector {

// /tmp/perf-PID.map, and each jit-*.dump that the process has mapped as code: so perf finds them.
// Files that were last written before `begin` are of an earlier process; those of other users than
// this one and root can say anything. Remarks what is wrong with those that are read.
symbols::GeneratedCode read_generated_names(pid_t pid, const AddressMap& addresses,
                                            std::time_t begin);

// The part of the events file that says how the linker knows functions.

class LinkageNames {
  public:
    // Those of the functions of an instruction, a symbolizer's frames.
    void add(std::span<const symbols::Frame> frames);
    void write(events::Writer& writer) const;

  private:
    std::unordered_set<const char*> known_;  // texts of a symbolizer
    std::vector<const char*> last_;          // of the last frames, from the outermost on
    // By function. Where functions of one name have several, the first in the order of bytes: so
    // it does not depend on which of them was executed first.
    std::map<std::string_view, std::string_view> names_;
};

}  // namespace assay::collector
