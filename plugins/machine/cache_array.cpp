#include "plugins/machine/cache_array.h"

#include "plugins/machine/policy_library.h"

namespace machine {

CacheArray::CacheArray(std::uint64_t sets, std::uint32_t ways, Hash hash,
                       const Replacement& replacement, bool stamped, const PolicyPlace& place)
    : ways_(ways),
      row_((ways + kRow - 1) / kRow * kRow),
      hash_(hash),
      order_(ways > WayOrder::kMost         ? Order::kPolicy
             : replacement.policy == "lru"  ? Order::kRecency
             : replacement.policy == "fifo" ? Order::kArrival
                                            : Order::kPolicy),
      set_bits_(static_cast<unsigned>(std::countr_zero(sets))),
      sets_(sets),
      set_mask_(std::has_single_bit(sets) ? sets - 1 : 0),
      entries_(sets * ways),
      digests_(sets * row_),
      stamps_(stamped ? sets * ways : 0) {
    if (order_ == Order::kPolicy)
        policy_ = make_policy(replacement, sets, ways, place);
    else
        orders_.assign(sets, WayOrder(ways));
}

std::uint32_t CacheArray::way_by_policy(std::uint64_t set, const Policy::Access& access) {
    const std::uint64_t* const first = &entries_[set * ways_];
    std::uint32_t way = 0;
    while (way < ways_ && first[way] != 0) ++way;
    if (way < ways_) return way;
    way = policy_->victim(set, access);
    if (way != Policy::kBypass) policy_->leave(set, way);
    return way;
}

CacheArray::Inserted CacheArray::insert(std::uint64_t line, std::uint64_t flags, const Referrer& by,
                                        bool prefetch) {
    const std::uint64_t set = set_of(line);
    const Policy::Access access{
        .line = line, .by = by, .prefetch = prefetch, .dirty = (flags & kDirty) != 0};
    // In a WayOrder, free ways come after all others.
    const std::uint32_t way =
        order_ == Order::kPolicy ? way_by_policy(set, access) : orders_[set].take_last(ways_);
    if (way == Policy::kBypass) return {{}, nullptr};
    std::uint64_t& entry = entries_[set * ways_ + way];
    const std::uint64_t gone = entry;
    entry = line << kShift | flags | kValid;
    digests_[set * row_ + way] = digest(line);
    if (!stamps_.empty()) stamps_[set * ways_ + way] = {};
    if (order_ == Order::kPolicy)
        policy_->fill(set, way, access);
    else if (prefetch && order_ == Order::kRecency && ways_ > 1 &&
             entries_[set * ways_ + orders_[set].second()] != 0)
        orders_[set].swap_first_two();  // second to the most recent line
    for (Prefetcher* const watcher : watchers_) {
        if (gone != 0) watcher->leave(line_of(gone).number, gone & kDirty, gone & kPrefetched);
        watcher->fill(line, by, prefetch, (flags & kDirty) != 0);
    }
    return {line_of(gone), &entry};
}

std::uint64_t CacheArray::remove(std::uint64_t line) {
    const std::uint64_t set = set_of(line);
    const std::uint32_t way = way_of(set, line);
    if (way == kNowhere) return 0;
    std::uint64_t& entry = entries_[set * ways_ + way];
    const std::uint64_t flags = entry & kFlags;
    entry = 0;
    if (order_ == Order::kPolicy)
        policy_->leave(set, way);
    else
        orders_[set].move_to_back(way, ways_);
    for (Prefetcher* const watcher : watchers_)
        watcher->leave(line, flags & kDirty, flags & kPrefetched);
    return flags;
}

}  // namespace machine
