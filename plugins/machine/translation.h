// Which translation buffers a page is looked up in, one after the other.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <vector>

namespace machine {

// The page of the reference before, where it needs not be looked up again; else none.
struct RecentPage {
    std::uint64_t number = ~std::uint64_t{0};
    unsigned shift = 12;

    bool has(std::uint64_t address) const { return address >> shift == number; }
};

class Translation {
  public:
    explicit Translation(const Machine& machine);

    struct Step {
        std::uint32_t tlb;  // in Machine::tlbs
        // That is added to the page's number there: pages of different sizes are different ones,
        // and each is in the set of its number.
        std::uint64_t key;
    };
    struct Way {
        unsigned shift = 0;      // of the page, as buffers have it
        std::vector<Step> tlbs;  // none if no buffer holds such pages
        bool repeats = false;    // the page of the reference before is the most recent one there
    };
    // Of fetches or of data, for a page whose size has that index in PageSizes; 0 where all pages
    // have one.
    const Way& way(bool data, std::uint32_t size) const { return ways_[data][size]; }
    bool translates(bool data) const;
    // Which of two RecentPages is that of fetches or of data.
    std::uint32_t slot(bool data) const { return data && !one_slot_; }

  private:
    std::vector<Way> ways_[2];
    bool one_slot_ = true;  // fetches and data take the same way
};

}  // namespace machine
