// Which translation buffers a page is looked up in, one after the other.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <vector>

namespace machine {

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
        // Nobody comes to the first one but fetches, or data, as the first: it can be asked for
        // many in advance.
        bool first_is_apart = false;
    };
    // Of fetches or of data, for a page whose size has that index in PageSizes; 0 where all pages
    // have one.
    const Way& way(bool data, std::uint32_t size) const { return ways_[data][size]; }
    bool translates(bool data) const;
    // Whether first buffers are asked by fetches only or by data only, and never second: they can
    // be asked for many references in advance.
    bool first_are_apart() const;

  private:
    bool is_apart(bool data, std::uint32_t tlb) const;

    std::vector<Way> ways_[2];
};

}  // namespace machine
