// Feeds garbage to the reader of events files. Besides crashes it looks for wrong acceptance: see
// totals.h.
#include "tests/fuzz/totals.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::check<assay::events::Parser>(data, size);
}
