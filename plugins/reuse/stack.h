// The LRU stack of a thread: how many different lines were referenced since a line was last,
// exactly.
#pragma once

#include "plugins/reuse/order.h"
#include "plugins/reuse/tables.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace reuse {

// Of all threads; summary.h adds them up.
struct Histograms {
    std::vector<std::uint64_t> distances;  // see Tables; may have zeros at the end
    std::vector<std::uint64_t> near =
        std::vector<std::uint64_t>(kAgeBuckets * kNearDistances * kCopies);
    std::vector<std::uint64_t> ages = std::vector<std::uint64_t>(kAgeBuckets);
    std::uint64_t never = 0;  // references to lines that were not referenced before
};

// Whether this processor has the instructions of a kernel.
bool supported(const Kernel& kernel);
// The fastest of those that it supports.
const Kernel& best_kernel();

class Stack {
  public:
    static constexpr std::size_t kBatch = 256;  // touches

    explicit Stack(const Kernel& kernel = best_kernel());

    // References at most kBatch lines one after the other and counts them. Returns those that reach
    // a limit, in no order, valid until the next call. Throws std::length_error if there are more
    // than kMostLines.
    std::span<const Miss> measure(std::span<const Touch> touches,
                                  std::span<const std::uint32_t> limits, Histograms& counted);

    std::uint64_t lines() const { return order_.lines; }

    static constexpr std::uint64_t kMostLines = std::uint64_t{1} << 30;
    static constexpr std::uint64_t kFewestPositions = std::uint64_t{1} << 20;

  private:
    static constexpr std::uint64_t kLinesOfPage = 64, kPagesOfRegion = 512;
    struct Region {
        std::uint64_t key = 0;            // its number + 1; 0: it is free
        std::uint64_t** pages = nullptr;  // of each page its entries, or nullptr
    };
    // Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4.
    std::size_t first_slot(std::uint64_t region) const {
        return region * 0x9E3779B97F4A7C15ULL >> shift_;
    }
    // Where what is known of the line is, which stays there.
    std::uint64_t* entry(std::uint64_t line) {
        const std::uint64_t page = line / kLinesOfPage, region = page / kPagesOfRegion;
        const Region& found = regions_[first_slot(region)];
        if (found.key != region + 1) [[unlikely]]
            return entry_of(line);
        std::uint64_t* const entries = found.pages[page % kPagesOfRegion];
        return entries != nullptr ? entries + line % kLinesOfPage : entry_of(line);
    }
    std::size_t slot_of(std::uint64_t region) const;
    std::uint64_t* entry_of(std::uint64_t line);
    void grow();
    void make_room();
    void age_top();
    void rebuild(std::uint64_t lines, std::uint64_t positions);

    const Kernel& kernel_;
    // Open addressing, a power of two, at most half full. Few, and so soon found: pages that lie
    // together are in one.
    std::vector<Region> regions_;
    unsigned shift_;                                         // 64 - its logarithm
    std::vector<std::unique_ptr<std::uint64_t*[]>> tables_;  // of the regions
    std::vector<std::unique_ptr<std::uint64_t[]>> pages_;
    Top top_;
    Item items_[kBatch];
    Entries entries_[kBatch];
    Miss misses_[kBatch];
    std::vector<std::uint64_t> words_;
    std::vector<std::uint16_t> after_word_, after_2k_;
    std::vector<std::uint32_t> after_64k_, after_2m_;
    Order order_{};
};

}  // namespace reuse
