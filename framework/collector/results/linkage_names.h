// The part of the events file that says how the linker knows functions.
#pragma once

#include "framework/events/writer.h"
#include "framework/symbols/symbolizer.h"

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace assay::collector {

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
