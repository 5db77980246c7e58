// Describes a machine in words, for the header of a profile.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace machine {

// The way of references through a machine's caches: each core's first caches for fetches and for
// data, and the cache for the misses of another.

// Stands for memory in place of the index of a cache.
inline constexpr std::uint32_t kMemory = UINT32_MAX;

// By index in Machine::caches: the cache that gets its misses, or kMemory.
std::vector<std::uint32_t> next_caches(const Machine& machine);
// The first cache for fetches (kInstructions) or for references to data (kData), or kMemory.
std::uint32_t first_cache(const Machine& machine, Holds holds);
// True if references can come directly to the cache.
bool is_first(const Machine& machine, std::uint32_t cache);
// True if FrontEnd simulates the cache's prefetcher, and turns its requests into wishes.
bool is_of_front_end(const Machine& machine, std::uint32_t cache, const Prefetch& prefetch);

// Names and descriptions of the machine and of each cache and translation buffer.
std::vector<std::pair<std::string, std::string>> describe(const Machine& machine);

}  // namespace machine
