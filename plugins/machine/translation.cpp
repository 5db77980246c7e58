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

// The largest size of at most `bytes` that a buffer holds: a page of more is several of these. 0 if
// there is none.
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

bool takes_same(const Translation::Way& a, const Translation::Way& b) {
    const auto same = [](const Translation::Step& x, const Translation::Step& y) {
        return x.tlb == y.tlb;
    };
    return a.shift == b.shift &&
           std::equal(a.tlbs.begin(), a.tlbs.end(), b.tlbs.begin(), b.tlbs.end(), same);
}

}  // namespace

Translation::Translation(const Machine& machine) {
    // Numbers of pages have at most 52 bits, and a buffer 2^20 sets at most; see CacheArray.
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
    one_slot_ = std::equal(ways_[0].begin(), ways_[0].end(), ways_[1].begin(), &takes_same);
    for (std::vector<Way>& ways : ways_)
        for (Way& way : ways)
            way.repeats = !way.tlbs.empty() &&
                          (one_slot_ || machine.tlbs[way.tlbs[0].tlb].holds != Holds::kBoth);
}

bool Translation::translates(bool data) const {
    return std::any_of(ways_[data].begin(), ways_[data].end(),
                       [](const Way& way) { return !way.tlbs.empty(); });
}

}  // namespace machine
