#include "plugins/machine/page_sizes.h"

#include <iterator>

namespace machine {

std::uint32_t PageSizes::size_of(Memory memory) const {
    switch (memory) {
        case Memory::kPrivate:
            return transparent_ == Transparent::kAlways ? 1 : 0;
        case Memory::kAdvised:
            return transparent_ != Transparent::kNever ? 1 : 0;
        case Memory::k2M:
            return 1;
        case Memory::k1G:
            return 2;
        default:
            return 0;
    }
}

void PageSizes::set(std::uint64_t start, std::uint64_t bytes, Memory memory) {
    span_ = {0, 0, 0};
    const std::uint64_t end = start + bytes;
    if (end <= start) return;
    auto at = large_.lower_bound(start);
    if (at != large_.begin()) {
        Large& before = std::prev(at)->second;
        if (before.end > end) at = large_.emplace_hint(at, end, before);
        if (before.end > start) before.end = start;
    }
    while (at != large_.end() && at->first < end) {
        if (at->second.end > end) large_.emplace(end, at->second);
        at = large_.erase(at);
    }
    if (is_large(memory)) large_[start] = {end, size_of(memory)};
}

PageSizes::Span PageSizes::span_of(std::uint64_t address) const {
    const auto above = large_.upper_bound(address);
    std::uint64_t start = 0;
    if (above != large_.begin()) {
        const auto& [first, large] = *std::prev(above);
        if (address < large.end) return {first, large.end - first, large.size};
        start = large.end;
    }
    return {start, (above == large_.end() ? UINT64_MAX : above->first) - start, 0};
}

}  // namespace machine
