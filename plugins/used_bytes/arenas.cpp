#include "plugins/used_bytes/arenas.h"

#include <algorithm>

namespace used_bytes {

void Arenas::add(std::uint64_t address, std::uint64_t bytes, std::string_view owner,
                 std::string_view label) {
    const std::uint64_t end = address + std::min(bytes, UINT64_MAX - address);
    if (end == address) return;
    const auto [known, is_new] = numbers_.try_emplace({std::string(owner), std::string(label)},
                                                      static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back({std::string(owner), std::string(label)});
    cut(address, end);
    regions_[address] = {end, known->second};
}

void Arenas::remove(std::uint64_t address) {
    regions_.erase(address);
}

// Takes the addresses out of the regions.
void Arenas::cut(std::uint64_t address, std::uint64_t end) {
    auto region = regions_.lower_bound(address);
    if (region != regions_.begin()) {
        Region& before = std::prev(region)->second;
        if (before.end > end) regions_[end] = before;
        before.end = std::min(before.end, address);
    }
    for (region = regions_.lower_bound(address); region != regions_.end() && region->first < end;
         region = regions_.erase(region))
        if (region->second.end > end) regions_[end] = region->second;
}

}  // namespace used_bytes
