// A machine in words, for the header of a profile.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace machine {

// How references come to a machine's caches: each core's first one of fetches and of data, and the
// one that a cache's misses go to.

// In place of the index of a cache: behind the last one.
inline constexpr std::uint32_t kMemory = UINT32_MAX;

// By index in Machine::caches: the cache that its misses go to, or kMemory.
std::vector<std::uint32_t> next_caches(const Machine& machine);
// The cache that fetches (kInstructions) or references to data (kData) come to first, or kMemory.
std::uint32_t first_cache(const Machine& machine, Holds holds);
// Whether a reference comes to the cache without any other having been asked.
bool is_first(const Machine& machine, std::uint32_t cache);
// Whether FrontEnd knows what the cache's prefetcher asks for, and makes wishes of it.
bool is_of_front_end(const Machine& machine, std::uint32_t cache, const Prefetch& prefetch);

// For the machine, and each cache and translation buffer: a name and what it is.
std::vector<std::pair<std::string, std::string>> describe(const Machine& machine);

}  // namespace machine
