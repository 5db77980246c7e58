#include "plugins/machine/page_buffer.h"

#include <algorithm>

namespace machine {

PageBuffer::PageBuffer(const Tlb& tlb) : sets_(tlb.sets()), ways_(tlb.ways) {
    const bool lru = tlb.replacement.policy == "lru";
    entries_.resize(lru ? tlb.entries : 1);
    if (!lru) other_.emplace(tlb.sets(), tlb.ways, Hash::kModulus, tlb.replacement);
}

bool PageBuffer::search(std::uint64_t page) {
    if (other_) return other_->touch(page, 0) != nullptr;
    const std::size_t first = page % sets_ * ways_;
    for (std::size_t i = first; i < first + ways_; ++i)
        if (entries_[i].page == page) {
            entries_[i].used = ++clock_;
            found_[slot(page)] = static_cast<std::uint32_t>(i);
            return true;
        }
    return false;
}

void PageBuffer::insert(std::uint64_t page) {
    if (other_) {
        other_->insert(page, 0, 0);
        return;
    }
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(page % sets_ * ways_);
    const auto oldest = std::min_element(
        first, first + ways_, [](const Entry& a, const Entry& b) { return a.used < b.used; });
    *oldest = {page, ++clock_};
    found_[slot(page)] = static_cast<std::uint32_t>(oldest - entries_.begin());
}

}  // namespace machine
