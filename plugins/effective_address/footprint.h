// The number of different lines and pages that were referenced, in bounded memory.
//
// The count is exact at first: each page has a bitmap of its lines. With more than kMostPages
// pages, or when the budget that all footprints share is used up, the footprint becomes two
// HyperLogLog sketches, one of lines and one of pages (Flajolet, Fusy, Gandouet and Meunier,
// "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm", AofA 2007). Their
// standard error is 1.04 / sqrt(registers): 1.6 % with 4096.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace effective_address {

inline constexpr unsigned kLineShift = 6, kPageShift = 12;
inline constexpr std::uint64_t kLineBytes = 1 << kLineShift;
inline constexpr unsigned kLinesOfPageShift = kPageShift - kLineShift;

class Footprint {
  public:
    Footprint();

    static constexpr std::uint32_t kMostPages = 4096;

    // The bytes that the bitmaps of all footprints may use together.
    struct Budget {
        std::size_t bytes = std::size_t{256} << 20;
    };

    // `line` is an address divided by kLineBytes.
    void add(std::uint64_t line, Budget& budget) {
        const std::uint64_t page = line >> kLinesOfPageShift, bit = std::uint64_t{1} << (line % 64);
        Page& first = table_[page & mask_];
        if (first.number != page) return add_to_page(page, bit, budget);
        first.lines |= bit;
    }
    // Adds all lines from `first` to `last`.
    void add_range(std::uint64_t first, std::uint64_t last, Budget& budget);

    bool exact() const { return registers_ == nullptr; }
    std::uint64_t lines() const;
    std::uint64_t pages() const;

  private:
    static constexpr std::uint32_t kRegisters = 4096;
    struct Page {
        std::uint64_t number = UINT64_MAX;
        std::uint64_t lines = 0;  // one bit each; 0: a free slot
    };

    // Adds the lines of the mask to the page.
    void add_to_page(std::uint64_t page, std::uint64_t lines, Budget& budget);
    Page& slot_of(std::uint64_t page) const {
        std::size_t slot = page & mask_;
        while (table_[slot].lines != 0 && table_[slot].number != page) slot = (slot + 1) & mask_;
        return table_[slot];
    }
    void grow(std::uint32_t slots, Budget& budget);
    void estimate_from_now_on(Budget& budget);
    void add_to_sketches(std::uint64_t page, std::uint64_t lines);

    // Open addressing, at most half full. A page's number is its hash, so that neighbouring pages,
    // the most frequent case, never collide.
    std::unique_ptr<Page[]> table_;
    std::unique_ptr<std::uint8_t[]> registers_;  // for lines, then for pages
    std::uint32_t mask_ = 0;                     // slots - 1
    std::uint32_t used_ = 0;
};

}  // namespace effective_address
