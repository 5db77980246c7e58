#include "framework/collector/results/profile_sites.h"

#include <algorithm>
#include <numeric>

namespace assay::collector {

std::uint32_t Sites::add(std::span<const symbols::Frame> frames) {
    std::uint32_t site = 0;
    for (std::size_t i = frames.size(); i-- > 1;) {
        const symbols::Frame& frame = frames[i];
        const auto [known, is_new] =
            indices_.try_emplace({site, frame.line, frame.function, frame.file},
                                 static_cast<std::uint32_t>(sites_.size()));
        if (is_new)
            sites_.push_back(
                {site, sites_[site].depth + 1, frame.line, frame.file, frame.function});
        site = known->second;
    }
    return site;
}

void Sites::sort() {
    order_.resize(sites_.size());
    numbers_.resize(sites_.size());
    std::iota(order_.begin(), order_.end(), 0);
    // A parent is less deep than what is in it, and so comes before it.
    const auto position = [this](std::uint32_t index) {
        const Site& site = sites_[index];
        return std::tuple(site.depth, site.file, site.function, numbers_[site.parent], site.line);
    };
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return position(a) < position(b); };
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
        return sites_[a].depth < sites_[b].depth;
    });
    for (auto begin = order_.begin(); begin != order_.end();) {
        const auto end = std::find_if(begin, order_.end(), [&](std::uint32_t index) {
            return sites_[index].depth != sites_[*begin].depth;
        });
        std::sort(begin, end, before);
        for (; begin != end; ++begin)
            numbers_[*begin] = static_cast<std::uint32_t>(begin - order_.begin());
    }
}

void Sites::write(events::Writer& writer) const {
    for (std::uint32_t i = 1; i < order_.size(); ++i) {
        const Site& site = sites_[order_[i]];
        writer.site({i, numbers_[site.parent], site.line, site.file, site.function});
    }
}

}  // namespace assay::collector
