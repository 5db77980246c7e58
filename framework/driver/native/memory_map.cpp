#include "framework/driver/native/memory_map.h"

#include <algorithm>

namespace assay::native {

void MemoryMap::add(std::uint64_t start, std::uint64_t end, bool writable) {
    remove(start, end);
    regions_.push_back(Region{start, end, writable});
}

bool MemoryMap::remove(std::uint64_t start, std::uint64_t end) {
    bool found = false;
    std::vector<Region> kept;
    for (const Region& region : regions_) {
        if (region.end <= start || end <= region.start) {
            kept.push_back(region);
            continue;
        }
        found = true;
        if (region.start < start) kept.push_back(Region{region.start, start, region.writable});
        if (end < region.end) kept.push_back(Region{end, region.end, region.writable});
    }
    if (found) {
        regions_.swap(kept);
        last_ = Region{};
    }
    return found;
}

const Region* MemoryMap::find(std::uint64_t pc) const {
    if (pc - last_.start < last_.end - last_.start) return &last_;
    for (const Region& region : regions_) {
        if (pc - region.start < region.end - region.start) {
            last_ = region;
            return &last_;
        }
    }
    return nullptr;
}

std::span<const std::uint8_t> MemoryMap::code_at(std::uint64_t pc) const {
    const Region* region = find(pc);
    if (region == nullptr) return {};
    constexpr std::uint64_t kLongest = 15;
    std::uint64_t available = std::min(kLongest, region->end - pc);
    if (available < kLongest && find(region->end) != nullptr) available = kLongest;
    return {reinterpret_cast<const std::uint8_t*>(pc), available};
}

}  // namespace assay::native
