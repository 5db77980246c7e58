// The end-of-run summary, laid out as Cachegrind's.
#pragma once

#include <cstdint>
#include <string>

namespace branch {

enum Event { kBc, kBcm, kBi, kBim, kBr, kBrm, kEvents };

// `totals` has one element per event. With `returns` those follow.
std::string summarise(const std::uint64_t* totals, bool returns);

}  // namespace branch
