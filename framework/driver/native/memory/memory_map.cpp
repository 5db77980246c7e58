#include "framework/driver/native/memory/memory_map.h"

#include "framework/driver/native/machine/target_memory.h"

#include <algorithm>
#include <iterator>

namespace assay::native {

void MemoryMap::add(const Region& region) {
    remove(region.start, region.end);
    Region joined = region;
    const auto after = regions_.find(region.end);
    if (after != regions_.end() && after->second.is_like(region)) {
        joined.end = after->second.end;
        regions_.erase(after);
    }
    const auto next = regions_.lower_bound(region.start);
    if (next != regions_.begin()) {
        const Region& before = std::prev(next)->second;
        if (before.end == region.start && before.is_like(region)) joined.start = before.start;
    }
    regions_[joined.start] = joined;
    last_ = Region{};
}

bool MemoryMap::remove(std::uint64_t start, std::uint64_t end) {
    auto at = regions_.upper_bound(start);
    if (at != regions_.begin()) --at;
    bool found = false;
    while (at != regions_.end() && at->first < end) {
        const Region region = at->second;
        if (region.end <= start) {
            ++at;
            continue;
        }
        found = true;
        at = regions_.erase(at);
        Region part = region;
        part.end = start;
        if (region.start < start) regions_[part.start] = part;
        part.start = end;
        part.end = region.end;
        if (end < region.end) regions_[part.start] = part;
    }
    if (found) last_ = Region{};
    return found;
}

bool MemoryMap::overlaps(std::uint64_t start, std::uint64_t end) const {
    const auto after = regions_.lower_bound(end);
    return after != regions_.begin() && std::prev(after)->second.end > start;
}

const Region* MemoryMap::find(std::uint64_t pc) const {
    if (pc - last_.start < last_.end - last_.start) return &last_;
    const auto after = regions_.upper_bound(pc);
    if (after == regions_.begin() || pc >= std::prev(after)->second.end) return nullptr;
    last_ = std::prev(after)->second;
    return &last_;
}

std::uint64_t MemoryMap::end_of_part(std::uint64_t address) const {
    if (const Region* region = find(address)) return region->end;
    const auto after = regions_.upper_bound(address);
    return after == regions_.end() ? UINT64_MAX : after->first;
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
    // The file may end within its mapping, and pages may have guards.
    const std::uint64_t in_page = std::min(available, kPage - pc % kPage);
    std::uint8_t byte = 0;
    if (!read_target(pc, &byte, 1)) return {};
    if (in_page < available && !read_target(pc + in_page, &byte, 1)) available = in_page;
    return {reinterpret_cast<const std::uint8_t*>(pc), available};
}

}  // namespace assay::native
