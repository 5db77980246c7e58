// Policies and prefetchers of the user's own: libraries behind assay/cache_policy.h.
#pragma once

#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"

#include <memory>
#include <string>
#include <vector>

namespace machine {

struct Machine;

// The libraries that the machine's caches and TLBs load, each once.
std::vector<std::string> libraries(const Machine& machine);

// Both throw std::runtime_error, with the library's name, if it is unusable.
std::unique_ptr<Policy> load_policy(const Replacement& replacement, std::uint64_t sets,
                                    std::uint32_t ways);
std::unique_ptr<Prefetcher> load_prefetcher(const Prefetch& prefetch, std::uint32_t line_bytes);

}  // namespace machine
