// Which references of the program a machine needs to see, so that what it counts is exact.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>

namespace machine {

// What filters (docs/internals/captures.md) may leave out: references to the most recent line of a set of a
// filter with so many sets; 0: nothing.
struct NeededRecords {
    std::uint32_t fetch_sets = 0;
    std::uint32_t data_sets = 0;  // of data, except first writes
};
NeededRecords needed_records(const Machine& machine);
// Whether a second fetch from the page that was fetched from last changes nothing in buffers.
bool buffers_forget_repetition(const Machine& machine);

}  // namespace machine
