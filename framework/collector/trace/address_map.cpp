#include "framework/collector/trace/address_map.h"

#include <algorithm>
#include <iterator>

namespace assay::collector {

void AddressMap::map(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                     std::string_view path) {
    split(start);
    split(end);
    parts_.erase(parts_.lower_bound(start), parts_.lower_bound(end));
    auto known = std::find(paths_.begin(), paths_.end(), path);
    if (known == paths_.end()) known = paths_.emplace(paths_.end(), path);
    const auto index = static_cast<std::uint32_t>(mappings_.size());
    mappings_.push_back({start, offset, &*known});
    parts_.emplace(start, Part{{start, end, offset, known->c_str()}, index, true});
}

void AddressMap::unmap(std::uint64_t start, std::uint64_t end) {
    split(start);
    split(end);
    for (auto part = parts_.lower_bound(start); part != parts_.lower_bound(end); ++part)
        part->second.mapped = false;
}

std::uint32_t AddressMap::find(std::uint64_t pc) const {
    const auto part = part_of(pc);
    return part == parts_.end() ? kNoMapping : part->second.mapping;
}

const trace_object_t* AddressMap::object(std::uint64_t pc) const {
    const auto part = part_of(pc);
    return part == parts_.end() || !part->second.mapped ? nullptr : &part->second.object;
}

void AddressMap::split(std::uint64_t address) {
    const auto part = part_of(address);
    if (part == parts_.end() || part->first == address) return;
    Part upper = part->second;
    upper.object.start = address;
    upper.object.offset += address - part->first;
    parts_.at(part->first).object.end = address;
    parts_.emplace(address, upper);
}

AddressMap::Parts::const_iterator AddressMap::part_of(std::uint64_t pc) const {
    auto part = parts_.upper_bound(pc);
    if (part == parts_.begin()) return parts_.end();
    --part;
    return pc < part->second.object.end ? part : parts_.end();
}

}  // namespace assay::collector
