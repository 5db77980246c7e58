// Blocks of the heap, by address and time. Times are numbers of entries of the allocation log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace assay::collector {

class TimedBlocks {
  public:
    struct Block {
        std::uint64_t end;         // of its memory
        std::uint64_t born, died;  // it is there in between
        std::uint32_t object;
    };
    struct Found {
        std::uint64_t start;
        Block block;
    };

    // Blocks are added in the order of `died`. `depth`: how many other blocks it lies in.
    void add(std::uint64_t start, const Block& block, unsigned depth = 0);
    // The innermost block that contains the address at that time: born before it, and not dead
    // before it.
    std::optional<Found> at(std::uint64_t address, std::uint64_t time) const;
    // The block that dies first of those that contain the address and die at `from` or later.
    std::optional<Found> first_at(std::uint64_t address, std::uint64_t from) const;
    // The block that dies last of all that contain the address.
    std::optional<Found> last_at(std::uint64_t address) const;
    // Removes the blocks that have died by then.
    void forget(std::uint64_t until);
    std::size_t size() const { return size_; }

  private:
    // Blocks of one depth that begin at one address follow one another in time.
    using Starts = std::map<std::uint64_t, std::deque<Block>>;
    template <typename Look>
    void look_at(std::uint64_t address, const Look& look) const;

    // By the number of bits of a block's size, and by depth. A block of a group that contains an
    // address therefore begins near it.
    std::map<std::pair<unsigned, unsigned>, Starts> groups_;
    std::size_t size_ = 0;
};

}  // namespace assay::collector
