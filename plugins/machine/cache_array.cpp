#include "plugins/machine/cache_array.h"

#include <algorithm>
#include <bit>

namespace machine {

CacheArray::CacheArray(std::uint64_t sets, std::uint32_t ways, Hash hash,
                       const Replacement& replacement, bool stamped)
    : ways_(ways),
      hash_(hash),
      order_(replacement.policy == "lru"    ? Order::kRecency
             : replacement.policy == "fifo" ? Order::kArrival
                                            : Order::kFixed),
      set_bits_(static_cast<unsigned>(std::countr_zero(sets))),
      sets_(sets),
      set_mask_(std::has_single_bit(sets) ? sets - 1 : 0),
      entries_(sets * ways),
      stamps_(stamped ? sets * ways : 0) {
    if (order_ == Order::kFixed) policy_ = make_policy(replacement, sets, ways);
}

// Behind the first `place` ways of the set.
void CacheArray::move_to_front(std::uint64_t set, std::uint32_t way, std::uint32_t place) {
    if (way <= place) return;
    const auto moved = [&](auto& rows) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(set * ways_);
        std::rotate(first + place, first + way, first + way + 1);
    };
    moved(entries_);
    if (!stamps_.empty()) moved(stamps_);
}

// Behind the line of the set that was referred to last, which other ways may precede that are free.
void CacheArray::move_behind_last(std::uint64_t set, std::uint32_t way) {
    const std::uint64_t* const first = &entries_[set * ways_];
    std::uint32_t last = 0;
    while (last < ways_ && (last == way || first[last] == 0)) ++last;
    if (last == ways_) return;
    if (last < way) return move_to_front(set, way, last + 1);
    move_to_front(set, last, way);
}

std::uint64_t* CacheArray::referenced(std::uint64_t set, std::uint32_t way, std::uint64_t line,
                                      std::uint64_t pc) {
    if (order_ == Order::kRecency) {
        move_to_front(set, way, 0);
        return &entries_[set * ways_];
    }
    if (policy_) policy_->hit(set, way, {.line = line, .pc = pc});
    return &entries_[set * ways_ + way];
}

std::optional<CacheArray::Line> CacheArray::insert(std::uint64_t line, std::uint64_t flags,
                                                   std::uint64_t pc, bool prefetch) {
    const std::uint64_t set = set_of(line);
    std::uint64_t* const first = &entries_[set * ways_];
    const Policy::Access access{.line = line, .pc = pc, .prefetch = prefetch};
    std::uint32_t way = 0;
    while (way < ways_ && first[way] != 0) ++way;
    std::optional<Line> gone;
    if (way == ways_) {
        way = policy_ ? policy_->victim(set, access) : ways_ - 1;
        gone = Line{.number = first[way] >> kShift, .flags = first[way] & kFlags};
        if (policy_) policy_->leave(set, way);
    }
    first[way] = line << kShift | flags | kValid;
    if (!stamps_.empty()) stamps_[set * ways_ + way] = {};
    if (policy_)
        policy_->fill(set, way, access);
    else if (prefetch && order_ == Order::kRecency)
        move_behind_last(set, way);
    else
        move_to_front(set, way, 0);
    return gone;
}

std::uint64_t CacheArray::remove(std::uint64_t line) {
    std::uint64_t* const entry = find(line);
    if (!entry) return 0;
    const std::uint64_t flags = *entry & kFlags;
    *entry = 0;
    const auto at = static_cast<std::uint64_t>(entry - entries_.data());
    if (policy_) policy_->leave(at / ways_, static_cast<std::uint32_t>(at % ways_));
    return flags;
}

}  // namespace machine
