// The policies and prefetchers that machine files name: built-in ones, and those of the user, which
// are libraries with the interface assay/cache_policy.h.
#pragma once

#include "plugins/machine/machine.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace machine {

// The libraries that the machine's caches and TLBs load, without repetitions.
std::vector<std::string> libraries(const Machine& machine);

// Both throw std::runtime_error with the library's name if it is unusable.
std::unique_ptr<Policy> make_policy(const Replacement& replacement, std::uint64_t sets,
                                    std::uint32_t ways, const PolicyPlace& place);
std::unique_ptr<Prefetcher> make_prefetcher(const Prefetch& prefetch, const PolicyPlace& place);

}  // namespace machine
