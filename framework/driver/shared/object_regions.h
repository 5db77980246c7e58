// Memory whose addresses belong to one object, and the function with which translated code begins
// a run of references to it (trace::ObjectRun). No standard containers: translated code calls it.
#pragma once

#include "framework/trace/object_sites.h"

#include <cstdint>

namespace assay::driver {

struct ObjectRegions {
    static constexpr std::uint64_t kPage = 4096;
    static constexpr std::uint32_t kPages = 65536;
    static constexpr std::uint32_t kMost = 4096;

    struct Region {
        std::uint64_t start, bytes;
        bool of_variables;  // each address has its own object, and keeps it
        bool used;          // a run may have begun there
    };

    volatile std::uint64_t* cursor;  // of the only thread: ThreadSlot::cursor
    trace::ObjectRun* runs;          // of the only thread, by number; the slot owns them
    Region regions[kMost];           // number 0 is empty
    std::uint16_t of_page[kPages];   // the number of a region of the page, by the page's low bits
};

// The argument `extent` of a call. `below` is how far the lowest address of the group is below the
// first one. `span` is how far the highest one is above the lowest.
inline constexpr unsigned kExtentBits = 12;
inline constexpr std::uint32_t kHasConstants = 1U << (2 * kExtentBits);
inline constexpr std::uint32_t object_extent(std::int64_t below, std::int64_t span,
                                             bool constants) {
    return static_cast<std::uint32_t>(below) | static_cast<std::uint32_t>(span) << kExtentBits |
           (constants ? kHasConstants : 0);
}

}  // namespace assay::driver

extern "C" {
// Ends the group's run, appends a record of the address at the cursor, and begins a run if a region
// has all addresses of the group. Stores the new cursor. The buffer must have room for two
// records.
void assay_object_reference(assay::driver::ObjectRegions* regions, std::uint64_t address,
                            std::uint64_t cursor, std::uint64_t site, std::uint64_t run,
                            std::uint64_t extent);
}
