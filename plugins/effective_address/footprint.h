// The number of different lines and pages that were referenced, in bounded memory.
//
// The count is exact at first: each page has a bitmap of its lines. With more than kMostPages
// pages, or when the budget that all footprints share is used up, the footprint becomes two
// HyperLogLog sketches, one of lines and one of pages (Flajolet, Fusy, Gandouet and Meunier,
// "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm", AofA 2007). Their
// standard error is 1.04 / sqrt(registers): 1.6 % with 4096.
//
// Also the most frequent items of a stream, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

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

// The most frequent items of a stream of 64-bit items, in bounded memory.
//
// The algorithm is that of Anderson, Bevan, Lang, Liberty, Rhodes and Thaler, "A High-Performance
// Algorithm for Identifying Frequent Items in Data Streams" (IMC 2017), after Misra and Gries
// (1982). It has a hash table of counters. When the table is full, it subtracts the median counter
// from all counters, and drops those that become 0. Counts are exact while there are at most
// `capacity` different items. After that, a count is at most the true one, and at most error()
// below it. error() is at most total() * 2 / capacity.

// Hash functions.

// Each bit of the result depends on all bits of `x`. This is the finaliser of splitmix64 (Steele,
// Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
inline std::uint64_t hash(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
    return x ^ x >> 31;
}

// A slot in a table of 2^bits slots, by a multiplication with 2^64 over the golden ratio (Knuth,
// The Art of Computer Programming, volume 3, section 6.4).
inline std::size_t slot_by_hash(std::uint64_t x, unsigned bits) {
    return static_cast<std::size_t>(x * 0x9E3779B97F4A7C15ULL >> (64 - bits));
}

struct Item {
    std::uint64_t value;
    std::uint64_t count;  // at least so many
    bool operator==(const Item&) const = default;
};

class FrequentItems {
  public:
    // `capacity` is the most different items in the table, a power of two and at least 4.
    void add(std::uint64_t value, std::uint64_t weight, std::uint32_t capacity);

    // Counts the value if it is in the table. Otherwise returns false.
    bool count_known(std::uint64_t value) {
        if (slots_ == 0) return false;
        Item& item = slot_of(value);
        if (item.count == 0) return false;
        ++item.count;
        ++total_;
        return true;
    }

    bool exact() const { return error_ == 0; }
    std::uint64_t error() const { return error_; }
    std::uint64_t total() const { return total_; }
    // At most `most` items, by descending count, then by value.
    std::vector<Item> top(std::size_t most) const;

  private:
    Item& slot_of(std::uint64_t value) const {
        std::size_t slot = slot_by_hash(value, bits_);
        while (items_[slot].count != 0 && items_[slot].value != value)
            slot = (slot + 1) & (slots_ - 1);
        return items_[slot];
    }
    void make_room(std::uint32_t capacity);
    void rehash(std::uint32_t slots, std::uint64_t less);

    std::unique_ptr<Item[]> items_;  // open addressing; a count of 0 marks a free slot
    std::uint32_t slots_ = 0, used_ = 0;
    unsigned bits_ = 0;  // slots_ is 2^bits_
    std::uint64_t error_ = 0, total_ = 0;
};

}  // namespace effective_address
