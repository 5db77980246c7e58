// Why a cache misses a line: compulsory, capacity and conflict misses (Hill, "Aspects of cache
// memory and instruction buffer performance", 1987).
#pragma once

#include "plugins/machine/line_map.h"

#include <cstdint>
#include <vector>

namespace machine {

enum class MissKind { kCold, kCapacity, kConflict };

// Follows one instance of a cache beside a fully associative one of as many lines, with LRU.
class MissKinds {
  public:
    explicit MissKinds(std::uint64_t lines) : nodes_(lines) {}

    // A reference to the line; returns what a miss of it is.
    MissKind refer(std::uint64_t line);

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX, kGone = UINT32_MAX - 1;
    struct Node {
        std::uint64_t line = 0;
        std::uint32_t newer = kNone, older = kNone;
    };

    void unlink(std::uint32_t node);
    void make_newest(std::uint32_t node);

    LineMap<std::uint32_t> node_of_;  // of each line that was ever referred to; kGone: in none
    std::vector<Node> nodes_;
    std::uint32_t used_ = 0;
    std::uint32_t newest_ = kNone, oldest_ = kNone;
};

}  // namespace machine
