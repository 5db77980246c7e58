#include "framework/collector/profilers/source_places.h"

#include <map>

namespace assay::collector {

std::span<const trace_frame_t> SourcePlaces::find(std::uint64_t pc) {
    if (!known_.contains(pc)) prepare({&pc, 1});
    return known_[pc];
}

void SourcePlaces::prepare(std::span<const std::uint64_t> pcs) {
    // By object and link-time address, in that order.
    std::map<std::string, std::multimap<std::uint64_t, std::uint64_t>> wanted;
    for (const std::uint64_t pc : pcs) {
        const std::uint32_t index = addresses_.find(pc);
        if (!known_.try_emplace(pc, Frames{{"???", "???", 0, 0}}).second || index == kNoMapping)
            continue;
        const Mapping& mapping = addresses_.mappings()[index];
        const std::uint64_t start = symbolizer_.address_of_offset(*mapping.path, mapping.offset);
        wanted[*mapping.path].emplace(pc - mapping.start + start, pc);
    }
    std::vector<symbols::Request> requests;
    for (const auto& [object, addresses] : wanted) {
        requests.push_back({object, {}});
        for (const auto& [address, pc] : addresses) requests.back().addresses.push_back(address);
    }
    const auto locations = symbolizer_.resolve(requests);
    auto location = locations.begin();
    for (const auto& [object, addresses] : wanted) {
        auto of_object = location++->begin();
        for (const auto& [address, pc] : addresses) known_[pc] = frames_of(*of_object++);
    }
}

SourcePlaces::Frames SourcePlaces::frames_of(const symbols::Location& location) {
    Frames frames;
    for (const symbols::Frame& frame : location.frames)
        frames.push_back({keep(frame.function), keep(frame.file), frame.line, 0});
    return frames;
}

const char* SourcePlaces::keep(std::string_view text) {
    return texts_.emplace_back(text).c_str();
}

}  // namespace assay::collector
