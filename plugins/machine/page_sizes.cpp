#include "plugins/machine/page_sizes.h"

#include <algorithm>
#include <iterator>

namespace machine {

PageBuffer::PageBuffer(const Tlb& tlb) : sets_(tlb.sets()), ways_(tlb.ways) {
    const bool lru = tlb.replacement.policy == "lru";
    entries_.resize(lru ? tlb.entries : 1);
    if (!lru)
        other_.emplace(tlb.sets(), tlb.ways, Hash::kModulus, tlb.replacement, false,
                       PolicyPlace{.name = tlb.name});
}

bool PageBuffer::search(std::uint64_t page) {
    if (other_) return other_->touch(page, {}) != nullptr;
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
        other_->insert(page, 0, {});
        return;
    }
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(page % sets_ * ways_);
    const auto oldest = std::min_element(
        first, first + ways_, [](const Entry& a, const Entry& b) { return a.used < b.used; });
    *oldest = {page, ++clock_};
    found_[slot(page)] = static_cast<std::uint32_t>(oldest - entries_.begin());
}

void MappedMemory::create(std::uint32_t creator, std::uint32_t thread) {
    views_.insert_or_assign(thread, View(view(creator)));
}

void MappedMemory::change(std::uint32_t thread, std::uint64_t start, std::uint64_t bytes,
                          Memory memory) {
    const Change change{++changes_, start, bytes, memory};
    const bool grows = newest_.is_large(memory);
    newest_.set(start, bytes, memory);
    see(thread, changes_);
    for (auto& [number, view] : views_)
        if (number == thread)
            view.sizes.set(start, bytes, memory);
        else
            hear(view, change, grows);
}

// Earlier changes to the same memory take effect first.
void MappedMemory::hear(View& view, const Change& change, bool grows) {
    if (!grows) return view.unseen.push_back(change);
    std::erase_if(view.unseen, [&](const Change& before) {
        const bool same = before.start < change.start + change.bytes &&
                          change.start < before.start + before.bytes;
        if (same) view.sizes.set(before.start, before.bytes, before.memory);
        return same;
    });
    view.sizes.set(change.start, change.bytes, change.memory);
}

void MappedMemory::see(std::uint32_t thread, std::uint64_t changes) {
    View& known = view(thread);
    for (; !known.unseen.empty() && known.unseen.front().number <= changes;
         known.unseen.pop_front()) {
        const Change& change = known.unseen.front();
        known.sizes.set(change.start, change.bytes, change.memory);
    }
}

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
