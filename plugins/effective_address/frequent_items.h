// The most frequent items of a stream of 64-bit items, in bounded memory.
//
// The algorithm is that of Anderson, Bevan, Lang, Liberty, Rhodes and Thaler, "A High-Performance
// Algorithm for Identifying Frequent Items in Data Streams" (IMC 2017), after Misra and Gries
// (1982): a hash table of counters. When it is full, the median counter is subtracted from all
// counters, and counters that become 0 are removed. Counts are exact while there are not more
// different items than the capacity. After that, a count is at most the true one, and too low by at
// most error(), which is at most total() * 2 / capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace effective_address {

// Every bit of the result depends on every bit of x: the finaliser of splitmix64 (Steele, Lea and
// Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
inline std::uint64_t hash(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
    return x ^ x >> 31;
}

// A slot in a table of 2^bits, with one multiplication, by 2^64 divided by the golden ratio (Knuth,
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
    // `capacity` is the number of different items to keep, a power of two of at least 4.
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
    // At most `most` items, by descending count and then by value.
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
