#include "framework/collector/trace/heap_blocks.h"

#include <iterator>

namespace assay::collector {

std::uint32_t HeapBlocks::innermost(std::uint64_t address) const {
    auto at = at_.upper_bound(address);
    if (at == at_.begin()) return kNone;
    std::uint32_t block = std::prev(at)->second;
    while (block != kNone && !blocks_[block].contains(address)) block = blocks_[block].outer;
    return block;
}

std::uint32_t HeapBlocks::beginning_at(std::uint64_t start) const {
    const auto found = at_.find(start);
    return found == at_.end() ? kNone : found->second;
}

std::pair<std::uint64_t, std::uint64_t> HeapBlocks::gap(std::uint64_t address, std::uint64_t start,
                                                        std::uint64_t end) const {
    const auto next = at_.upper_bound(address);
    if (next != at_.end()) end = std::min(end, next->first);
    if (next != at_.begin())
        start = std::max(start, std::min(address, blocks_[std::prev(next)->second].end));
    return {start, end};
}

// A free one has neither start nor end.
std::vector<std::uint32_t> HeapBlocks::all() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t block = 0; block < blocks_.size(); ++block)
        if (blocks_[block].end != 0) all.push_back(block);
    return all;
}

// A block that reaches into a new one, and does not contain it, is gone: nobody has told.
void HeapBlocks::allocate(std::uint64_t start, std::uint64_t bytes, std::uint64_t born) {
    if (bytes == 0) return;
    const std::uint64_t end = start + bytes;
    for (auto at = at_.lower_bound(start); at != at_.end() && at->first < end;
         at = at_.lower_bound(start)) {
        const Block& there = blocks_[at->second];
        if (there.start == start && there.end > end) break;
        remove(at->second, born);
    }
    std::uint32_t outer = innermost(start);
    while (outer != kNone && blocks_[outer].end < end) {
        remove(outer, born);
        outer = innermost(start);
    }
    auto number = static_cast<std::uint32_t>(blocks_.size());
    if (free_.empty()) {
        blocks_.emplace_back();
        touched_.emplace_back();
    } else {
        number = free_.back();
        free_.pop_back();
        touched_[number] = {};
    }
    Block& block = blocks_[number];
    block = {.start = start, .end = end, .born = born, .outer = outer, .version = block.version};
    if (outer != kNone) {
        ++blocks_[outer].inner;
        ++blocks_[outer].version;
    }
    at_[start] = number;
    ++version_;
}

void HeapBlocks::give_back(std::uint64_t start, std::uint64_t died) {
    if (const std::uint32_t block = beginning_at(start); block != kNone) remove(block, died);
}

// With those that lie in it.
void HeapBlocks::remove(std::uint32_t number, std::uint64_t died) {
    Block& block = blocks_[number];
    while (block.inner != 0) {
        // The one that begins last is in it, or in one that is.
        const auto last = std::prev(at_.lower_bound(block.end));
        if (last->second == number) break;
        remove(last->second, died);
    }
    ends_(number, died);
    const auto at = at_.find(block.start);
    if (block.outer != kNone) {
        --blocks_[block.outer].inner;
        ++blocks_[block.outer].version;
    }
    if (at != at_.end() && at->second == number) {
        if (block.outer != kNone && blocks_[block.outer].start == block.start)
            at->second = block.outer;
        else
            at_.erase(at);
    }
    ++block.version;
    block.object = kNone;
    block.start = block.end = 0;
    free_.push_back(number);
    ++version_;
}

}  // namespace assay::collector
