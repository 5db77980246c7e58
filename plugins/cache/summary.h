// The end-of-run summary, laid out as Cachegrind's.
#pragma once

#include <cstdint>
#include <string>

namespace cache {

// In the order of the events file.
enum EventIndex : std::uint32_t { kIr, kI1mr, kILmr, kDr, kD1mr, kDLmr, kDw, kD1mw, kDLmw };
inline constexpr std::uint32_t kEvents = 9;

// `totals` has kEvents elements. Without `simulated` only Ir is shown.
std::string summarise(const std::uint64_t* totals, bool simulated, bool with_ll);

}  // namespace cache
