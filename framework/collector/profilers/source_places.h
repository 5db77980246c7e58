// The places in the source that profilers ask for, with strings as the C ABI wants them.
#pragma once

#include "assay/trace_types.h"
#include "framework/collector/trace/address_map.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class SourcePlaces {
  public:
    SourcePlaces(const AddressMap& addresses, symbols::Symbolizer& symbolizer)
        : addresses_(addresses), symbolizer_(symbolizer) {}

    // Innermost first, never empty. Valid as long as this object.
    std::span<const trace_frame_t> find(std::uint64_t pc);
    // Finds many at once.
    void prepare(std::span<const std::uint64_t> pcs);

  private:
    using Frames = std::vector<trace_frame_t>;

    Frames frames_of(const symbols::Location& location);
    const char* keep(std::string_view text);

    const AddressMap& addresses_;
    symbols::Symbolizer& symbolizer_;
    std::unordered_map<std::uint64_t, Frames> known_;  // by pc
    std::deque<std::string> texts_;
};

}  // namespace assay::collector
