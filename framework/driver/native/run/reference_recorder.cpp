#include "framework/driver/native/run/reference_recorder.h"

namespace assay::native {

// In any number of lines. See filtered_references.cpp.
void ReferenceRecorder::footprint(std::uint64_t address, unsigned bytes, std::uint32_t site,
                                  std::uint64_t first, std::uint64_t last) {
    if (first == last && entry(first) == first) {
        const std::uint64_t bits = ~std::uint64_t{0} >> (64 - bytes) << (address % line_);
        trace_.touched(place(first)) |= bits;
        return;
    }
    const std::uint64_t lines = (last - first) / line_ + 1;
    trace_.make_room(lines + 1);
    std::uint64_t line = first;
    for (std::uint64_t i = 0; i < lines; ++i, line += line_) {
        const std::uint64_t at = place(line);
        trace_.append(trace_.touched(at).exchange(0), footprint_site_,
                      static_cast<std::uint32_t>(at));
        entry(line) = line;
    }
    trace_.append(address, site);
}

}  // namespace assay::native
