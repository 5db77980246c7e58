#include "framework/collector/trace/timed_blocks.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace assay::collector {
namespace {

// The first that dies at that time or later.
std::deque<TimedBlocks::Block>::const_iterator dying_from(
    const std::deque<TimedBlocks::Block>& blocks, std::uint64_t time) {
    return std::partition_point(
        blocks.begin(), blocks.end(),
        [time](const TimedBlocks::Block& block) { return block.died < time; });
}

}  // namespace

void TimedBlocks::add(std::uint64_t start, const Block& block, unsigned depth) {
    const auto bits = static_cast<unsigned>(std::bit_width(block.end - start));
    groups_[{bits, depth}][start].push_back(block);
    ++size_;
}

// Calls `look(start, blocks)` for each start from which a block can reach the address.
template <typename Look>
void TimedBlocks::look_at(std::uint64_t address, const Look& look) const {
    for (const auto& [group, starts] : groups_) {
        const unsigned bits = group.first;
        const std::uint64_t reach = bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
        const std::uint64_t lowest = address - std::min(address, reach);
        for (auto at = starts.lower_bound(lowest); at != starts.end() && at->first <= address; ++at)
            look(at->first, at->second);
    }
}

std::optional<TimedBlocks::Found> TimedBlocks::at(std::uint64_t address, std::uint64_t time) const {
    std::optional<Found> found;
    look_at(address, [&](std::uint64_t start, const std::deque<Block>& blocks) {
        const auto first = dying_from(blocks, time);
        if (first == blocks.end() || first->born >= time || address >= first->end) return;
        if (!found || first->born > found->block.born) found = Found{start, *first};
    });
    return found;
}

std::optional<TimedBlocks::Found> TimedBlocks::first_at(std::uint64_t address,
                                                        std::uint64_t from) const {
    std::optional<Found> found;
    look_at(address, [&](std::uint64_t start, const std::deque<Block>& blocks) {
        const auto first =
            std::find_if(dying_from(blocks, from), blocks.end(),
                         [address](const Block& block) { return address < block.end; });
        if (first == blocks.end()) return;
        if (!found || first->died < found->block.died) found = Found{start, *first};
    });
    return found;
}

std::optional<TimedBlocks::Found> TimedBlocks::last_at(std::uint64_t address) const {
    std::optional<Found> found;
    look_at(address, [&](std::uint64_t start, const std::deque<Block>& blocks) {
        const auto last =
            std::find_if(blocks.rbegin(), blocks.rend(),
                         [address](const Block& block) { return address < block.end; });
        if (last == blocks.rend()) return;
        if (!found || last->died > found->block.died) found = Found{start, *last};
    });
    return found;
}

void TimedBlocks::forget(std::uint64_t until) {
    for (auto& [group, starts] : groups_)
        for (auto at = starts.begin(); at != starts.end();) {
            std::deque<Block>& blocks = at->second;
            while (!blocks.empty() && blocks.front().died <= until) {
                blocks.pop_front();
                --size_;
            }
            at = blocks.empty() ? starts.erase(at) : std::next(at);
        }
}

}  // namespace assay::collector
