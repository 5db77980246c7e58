#include "framework/collector/trace/data_objects.h"

#include <algorithm>

namespace assay::collector {

using Kind = DataObject::Kind;

std::uint32_t DataObjects::add(const DataObject& object) {
    all_.push_back(object);
    return static_cast<std::uint32_t>(all_.size() - 1);
}

std::uint32_t DataObjects::of(Kind kind, std::uint32_t key) {
    const auto [found, is_new] = numbers_.try_emplace({kind, key}, 0);
    if (!is_new) return found->second;
    DataObject object{.kind = kind};
    if (kind == Kind::kHeap || kind == Kind::kMapping) object.context = key;
    if (kind == Kind::kStack) object.thread = key;
    if (kind == Kind::kFile) object.file = key;
    return found->second = add(object);
}

std::uint32_t DataObjects::of_variable(const symbols::DataSymbol& variable, Kind kind,
                                       std::uint32_t file) {
    const auto [found, is_new] = variables_.try_emplace(&variable, 0);
    if (is_new)
        found->second =
            add({.kind = kind, .file = file, .symbol = &variable, .size = variable.size});
    return found->second;
}

void DataObjects::add_block(std::uint32_t number, std::uint64_t bytes, std::uint64_t time) {
    DataObject& object = all_[number];
    object.size = object.blocks == 0 || object.size == bytes ? bytes : 0;
    ++object.blocks;
    object.bytes += bytes;
    object.live += bytes;
    object.peak = std::max(object.peak, object.live);
    object.first = std::min(object.first, time);
}

std::uint32_t DataObjects::of_entry(std::uint64_t entry) {
    const auto [found, is_new] = unsettled_.try_emplace(entry, 0);
    if (is_new) found->second = add({.kind = Kind::kHeap});
    return found->second;
}

void DataObjects::settle(std::uint64_t entry, std::uint32_t object) {
    const auto unsettled = unsettled_.extract(entry);
    if (!unsettled) return;
    final_.resize(all_.size(), kAsItIs);
    final_[unsettled.mapped()] = object;
}

std::uint32_t DataObjects::final_number(std::uint32_t number) const {
    return number < final_.size() && final_[number] != kAsItIs ? final_[number] : number;
}

}  // namespace assay::collector
