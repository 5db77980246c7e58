// What there is to say at the end of a run.
#pragma once

#include "plugins/working_set/touched.h"

#include <assay/series.hpp>

#include <cstdint>
#include <string>

namespace working_set {

std::string summarise(const Touched& touched, std::uint32_t line_bytes,
                      std::uint64_t interval_size);

// Lines of `THREAD,INSTRUCTIONS,LINES,PAGES`: a thread, how many instructions it had executed when
// the interval began, and its working set. What is behind the last complete interval is not there.
std::string csv(const Touched& touched, std::uint64_t interval_size);

// The same of one thread, for the events file.
assay::Series series(std::uint32_t number, const Touched::Thread& thread,
                     std::uint64_t interval_size);

}  // namespace working_set
