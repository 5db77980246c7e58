#include "framework/collector/results/linkage_names.h"

namespace assay::collector {

void LinkageNames::add(std::span<const symbols::Frame> frames) {
    if (last_.size() < frames.size()) last_.resize(frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::string_view name = frames[frames.size() - 1 - i].linkage;
        // Mostly it is what it was.
        if (name.empty() || last_[i] == name.data()) continue;
        last_[i] = name.data();
        if (!known_.insert(name.data()).second) continue;
        const auto [known, is_new] =
            names_.try_emplace(frames[frames.size() - 1 - i].function, name);
        if (!is_new && name < known->second) known->second = name;
    }
}

void LinkageNames::write(events::Writer& writer) const {
    for (const auto& [function, name] : names_) writer.linkage(function, name);
}

}  // namespace assay::collector
