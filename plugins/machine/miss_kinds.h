// Classifies misses: compulsory, capacity and conflict misses (Hill, "Aspects of cache memory and
// instruction buffer performance", 1987).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace machine {

// A hash table by line number, with open addressing and linear probing. Removed elements leave no
// marker (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithm R). Lines are
// below 2^64 - 1. Pointers are valid until the next call of a function that is not const.
template <typename T>
class LineMap {
  public:
    LineMap() : slots_(64) {}

    T* find(std::uint64_t line) {
        const std::size_t at = place(line);
        return slots_[at].key == 0 ? nullptr : &slots_[at].value;
    }
    // The value of the line, or a new T{}.
    T& operator[](std::uint64_t line) {
        if ((size_ + 1) * 4 > slots_.size() * 3) grow();
        Slot& slot = slots_[place(line)];
        if (slot.key == 0) {
            slot.key = line + 1;
            ++size_;
        }
        return slot.value;
    }
    void erase(std::uint64_t line) {
        std::size_t hole = place(line);
        if (slots_[hole].key == 0) return;
        --size_;
        for (std::size_t at = next(hole); slots_[at].key != 0; at = next(at)) {
            const std::size_t home = hash(slots_[at].key - 1);
            // True if the hole is on the way from the element's home slot to the element.
            if (((at - home) & mask()) < ((at - hole) & mask())) continue;
            slots_[hole] = std::move(slots_[at]);
            hole = at;
        }
        slots_[hole] = Slot{};
    }
    std::size_t size() const { return size_; }

  private:
    struct Slot {
        std::uint64_t key = 0;  // line + 1; 0: free
        T value{};
    };

    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t next(std::size_t at) const { return (at + 1) & mask(); }
    // Fibonacci hashing: the same volume, section 6.4.
    std::size_t hash(std::uint64_t line) const {
        return static_cast<std::size_t>(line * 0x9E3779B97F4A7C15 >> 20) & mask();
    }
    std::size_t place(std::uint64_t line) const {
        std::size_t at = hash(line);
        while (slots_[at].key != 0 && slots_[at].key != line + 1) at = next(at);
        return at;
    }
    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        for (Slot& slot : old)
            if (slot.key != 0) slots_[place(slot.key - 1)] = std::move(slot);
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
};

enum class MissKind { kCold, kCapacity, kConflict };

// Follows one instance of a cache, beside a fully associative LRU cache of the same number of
// lines.
class MissKinds {
  public:
    explicit MissKinds(std::uint64_t lines) : nodes_(lines) {}

    // Takes a reference to the line. Returns the kind that a miss of it has.
    MissKind refer(std::uint64_t line);

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX, kGone = UINT32_MAX - 1;
    struct Node {
        std::uint64_t line = 0;
        std::uint32_t newer = kNone, older = kNone;
    };

    void unlink(std::uint32_t node);
    void make_newest(std::uint32_t node);

    LineMap<std::uint32_t> node_of_;  // of each line referenced so far; kGone: no node
    std::vector<Node> nodes_;
    std::uint32_t used_ = 0;
    std::uint32_t newest_ = kNone, oldest_ = kNone;
};

}  // namespace machine
