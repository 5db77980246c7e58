// Which blocks of allocation functions there are. Blocks can lie in another one, out of which they
// were cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace assay::collector {

class HeapBlocks {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Block {
        std::uint64_t start = 0, end = 0;
        std::uint64_t born = 0;        // its entry in the allocation log
        std::uint32_t object = kNone;  // none as long as it is not known where it was allocated
        std::uint32_t outer = kNone;
        std::uint32_t inner = 0;    // how many lie in it
        std::uint32_t version = 0;  // changes whenever what is said of it does

        bool contains(std::uint64_t address) const { return start <= address && address < end; }
    };
    // The records that have referred to it.
    struct Touched {
        std::uint64_t first = UINT64_MAX, last = 0;
    };

    // `ends`: called with a block that is about to be gone, and the entry that tells so.
    using Ends = std::function<void(std::uint32_t block, std::uint64_t died)>;
    explicit HeapBlocks(Ends ends) : ends_(std::move(ends)) {}

    void allocate(std::uint64_t start, std::uint64_t bytes, std::uint64_t born);
    void give_back(std::uint64_t start, std::uint64_t died);

    Block& operator[](std::uint32_t block) { return blocks_[block]; }
    void touch(std::uint32_t block, std::uint64_t record) {
        Touched& touched = touched_[block];
        touched.first = std::min(touched.first, record);
        touched.last = record;
    }
    const Touched& touched(std::uint32_t block) const { return touched_[block]; }

    // The innermost one that contains the address, and that begins there; kNone if there is none.
    std::uint32_t innermost(std::uint64_t address) const;
    std::uint32_t beginning_at(std::uint64_t start) const;
    // Of an address in no block: how far it is so, at most between these.
    std::pair<std::uint64_t, std::uint64_t> gap(std::uint64_t address, std::uint64_t start,
                                                std::uint64_t end) const;
    // All that there are.
    std::vector<std::uint32_t> all() const;
    // Changes whenever any of them does.
    const std::uint32_t& version() const { return version_; }

  private:
    void remove(std::uint32_t block, std::uint64_t died);

    Ends ends_;
    std::deque<Block> blocks_;
    std::vector<Touched> touched_;  // by block
    std::vector<std::uint32_t> free_;
    std::map<std::uint64_t, std::uint32_t> at_;  // by start; the innermost
    std::uint32_t version_ = 0;
};

}  // namespace assay::collector
