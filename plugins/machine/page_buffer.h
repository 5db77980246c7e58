// The pages that one translation buffer holds.
#pragma once

#include "plugins/machine/cache_array.h"
#include "plugins/machine/machine.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace machine {

// Pages are numbers of up to 56 bits.
class PageBuffer {
  public:
    // Throws std::bad_alloc.
    explicit PageBuffer(const Tlb& tlb);

    // Whether the page is there, which becomes a referenced one.
    bool touch(std::uint64_t page) {
        Entry& found = entries_[found_[slot(page)]];
        if (found.page != page) [[unlikely]]
            return search(page);
        found.used = ++clock_;
        return true;
    }
    // Puts a page in that is not there.
    void insert(std::uint64_t page);

  private:
    static constexpr std::size_t kSlots = 1024;

    struct Entry {
        std::uint64_t page = ~std::uint64_t{0};
        std::uint64_t used = 0;  // when it was last; 0: it is free
    };

    static std::size_t slot(std::uint64_t page) { return (page ^ page >> 10) % kSlots; }
    bool search(std::uint64_t page);

    // With LRU, of which an order of some hundred entries takes long to keep: times instead, and
    // where a page was found last. Other policies have an array of lines.
    std::optional<CacheArray> other_;
    std::uint64_t sets_;
    std::uint32_t ways_;
    std::uint64_t clock_ = 0;
    std::vector<Entry> entries_;  // set by set; with another policy one that is always free
    std::array<std::uint32_t, kSlots> found_{};
};

}  // namespace machine
