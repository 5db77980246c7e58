#include "framework/driver/native/memory_map.h"

#include <algorithm>

namespace assay::native {

void MemoryMap::add(const Region& region) {
    remove(region.start, region.end);
    regions_.push_back(region);
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
        Region part = region;
        part.end = start;
        if (region.start < start) kept.push_back(part);
        part.start = end;
        part.end = region.end;
        if (end < region.end) kept.push_back(part);
    }
    if (found) {
        regions_.swap(kept);
        last_ = Region{};
    }
    return found;
}

bool MemoryMap::overlaps(std::uint64_t start, std::uint64_t end) const {
    return std::any_of(regions_.begin(), regions_.end(), [=](const Region& region) {
        return region.start < end && start < region.end;
    });
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
    if (region == nullptr || !region->executable) return {};
    constexpr std::uint64_t kLongest = 15;
    std::uint64_t available = std::min(kLongest, region->end - pc);
    if (available < kLongest) {
        const Region* next = find(region->end);
        if (next != nullptr && next->executable) available = kLongest;
    }
    return {reinterpret_cast<const std::uint8_t*>(pc), available};
}

}  // namespace assay::native
