#include "framework/driver/native/memory/free_addresses.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace assay::native {
namespace {

// The index into by_size_ for a range of this size, which is not 0.
std::size_t size_class(std::uint64_t bytes) {
    return static_cast<std::size_t>(std::bit_width(bytes)) - 1;
}

}  // namespace

std::set<std::uint64_t>& FreeAddresses::of_size(const Range& range) {
    return by_size_[size_class(range.end - range.start)];
}

void FreeAddresses::insert(const Range& range) {
    if (range.start >= range.end) return;
    ranges_.emplace(range.start, range.end);
    of_size(range).insert(range.start);
}

FreeAddresses::Ranges::iterator FreeAddresses::erase(Ranges::iterator range) {
    of_size({range->first, range->second}).erase(range->first);
    return ranges_.erase(range);
}

// The most frequent change, because the highest free address is the end of a range.
void FreeAddresses::move_end(Ranges::iterator range, std::uint64_t end) {
    std::set<std::uint64_t>& before = of_size({range->first, range->second});
    std::set<std::uint64_t>& after = of_size({range->first, end});
    range->second = end;
    if (&before != &after) after.insert(before.extract(range->first));
}

// Joins the range with all ranges that touch it.
void FreeAddresses::add(const Range& range) {
    if (range.start >= range.end) return;
    auto it = ranges_.upper_bound(range.start);
    const bool continues = it != ranges_.begin() && std::prev(it)->second >= range.start;
    const auto before = continues ? std::prev(it) : ranges_.end();
    std::uint64_t end = continues ? std::max(range.end, before->second) : range.end;
    while (it != ranges_.end() && it->first <= end) {
        end = std::max(end, it->second);
        it = erase(it);
    }
    if (continues)
        move_end(before, end);
    else
        insert({range.start, end});
}

void FreeAddresses::remove(const Range& range) {
    if (range.start >= range.end) return;
    auto it = ranges_.lower_bound(range.start);
    if (it != ranges_.begin() && std::prev(it)->second > range.start) --it;
    while (it != ranges_.end() && it->first < range.end) {
        const std::uint64_t end = it->second;
        if (it->first < range.start)
            move_end(it++, range.start);
        else
            it = erase(it);
        insert({range.end, end});
    }
}

std::optional<std::uint64_t> FreeAddresses::highest(std::uint64_t bytes,
                                                    std::uint64_t alignment) const {
    std::optional<std::uint64_t> best;
    for (std::size_t i = size_class(bytes); i < by_size_.size(); ++i) {
        const std::set<std::uint64_t>& starts = by_size_[i];
        for (auto start = starts.rbegin(); start != starts.rend(); ++start) {
            if (best && *start < *best) break;
            const std::uint64_t end = ranges_.find(*start)->second;
            if (end - *start < bytes) continue;
            const std::uint64_t place = (end - bytes) & ~(alignment - 1);
            if (place < *start) continue;
            best = place;
            break;
        }
    }
    return best;
}

std::optional<std::uint64_t> FreeAddresses::lowest(std::uint64_t bytes, const Range& within) const {
    auto it = ranges_.upper_bound(within.start);
    if (it != ranges_.begin()) --it;
    for (; it != ranges_.end() && it->first < within.end; ++it) {
        const std::uint64_t start = std::max(it->first, within.start);
        const std::uint64_t end = std::min(it->second, within.end);
        if (start < end && end - start >= bytes) return start;
    }
    return std::nullopt;
}

namespace {

bool have_common(const Range& a, const Range& b) {
    return a.start < b.end && b.start < a.end;
}

}  // namespace

void CodePlaces::add(const Range& range, const MappedFile& file) {
    const bool known = std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
        return place.file == file && place.range.start <= range.start &&
               range.end <= place.range.end;
    });
    if (!known) places_.push_back({range, file});
}

bool CodePlaces::overlap(const Range& range) const {
    return std::any_of(places_.begin(), places_.end(),
                       [&](const Place& place) { return have_common(place.range, range); });
}

bool CodePlaces::are_of_others(const Range& range, const std::optional<MappedFile>& file) const {
    return std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
        return have_common(place.range, range) && place.file != file;
    });
}

std::optional<Range> CodePlaces::below(Range range) const {
    const std::uint64_t size = range.end - range.start;
    for (bool moved = true; moved;) {
        moved = false;
        for (const Place& place : places_) {
            if (!have_common(place.range, range)) continue;
            if (place.range.start < size) return std::nullopt;
            range = {place.range.start - size, place.range.start};
            moved = true;
        }
    }
    return range;
}

}  // namespace assay::native
