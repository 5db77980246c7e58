#include "plugins/machine/translation.h"

#include "plugins/machine/page_sizes.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace machine {
namespace {

bool serves(const Tlb& tlb, bool data) {
    return tlb.holds == Holds::kBoth || (tlb.holds == Holds::kData) == data;
}

// The largest size up to `bytes` that a buffer holds; larger pages take several entries of this
// size. 0 if there is no such size.
std::uint64_t held_size(const Machine& machine, bool data, std::uint64_t bytes) {
    std::uint64_t largest = 0;
    for (const Tlb& tlb : machine.tlbs) {
        if (!serves(tlb, data)) continue;
        if (tlb.pages.empty()) return bytes;
        for (const std::uint64_t size : tlb.pages)
            if (size <= bytes) largest = std::max(largest, size);
    }
    return largest;
}

}  // namespace

Translation::Translation(const Machine& machine) {
    // Page numbers have at most 52 bits, and a buffer at most 2^20 sets; see CacheArray.
    constexpr std::uint64_t kStep = std::uint64_t{1} << 53;
    std::vector<std::uint64_t> sizes(std::begin(PageSizes::kSizes), std::end(PageSizes::kSizes));
    if (machine.page != 0) sizes = {machine.page};
    std::vector<std::uint64_t> known;
    for (const bool data : {false, true})
        for (const std::uint64_t size : sizes) {
            Way& way = ways_[data].emplace_back();
            const std::uint64_t held = held_size(machine, data, size);
            if (held == 0) continue;
            way.shift = static_cast<unsigned>(std::countr_zero(held));
            if (std::find(known.begin(), known.end(), held) == known.end()) known.push_back(held);
            const auto number = static_cast<std::uint64_t>(
                std::find(known.begin(), known.end(), held) - known.begin());
            for (std::uint32_t i = 0; i < machine.tlbs.size(); ++i) {
                const Tlb& tlb = machine.tlbs[i];
                if (!serves(tlb, data) || !tlb.holds_pages_of(held)) continue;
                way.tlbs.push_back({i, number * (kStep / tlb.sets() * tlb.sets())});
            }
        }
    for (const bool data : {false, true})
        for (Way& way : ways_[data])
            way.first_is_apart = !way.tlbs.empty() && is_apart(data, way.tlbs[0].tlb);
}

bool Translation::is_apart(bool data, std::uint32_t tlb) const {
    const auto comes_otherwise = [&](bool of_data) {
        return std::any_of(ways_[of_data].begin(), ways_[of_data].end(), [&](const Way& way) {
            return std::any_of(way.tlbs.begin(), way.tlbs.end(), [&](const Step& step) {
                return step.tlb == tlb && (of_data != data || &step != way.tlbs.data());
            });
        });
    };
    return !comes_otherwise(false) && !comes_otherwise(true);
}

bool Translation::translates(bool data) const {
    return std::any_of(ways_[data].begin(), ways_[data].end(),
                       [](const Way& way) { return !way.tlbs.empty(); });
}

}  // namespace machine
