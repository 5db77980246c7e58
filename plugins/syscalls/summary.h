// The end-of-run summary: a table of system calls.
#pragma once

#include "plugins/syscalls/tally.h"

#include <map>
#include <string>

namespace syscalls {

// `by_number`: of each call that was made. Those with the most calls first, or with times those
// that took longest.
std::string summarise(const std::map<std::uint64_t, Tally>& by_number, bool times);
// "read 120, write 12", the most frequent ones.
std::string in_one_line(const std::map<std::uint64_t, Tally>& by_number);

}  // namespace syscalls
