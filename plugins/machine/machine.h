// A simulated machine as a machine file describes it: cores, caches, translation buffers and
// coherence. docs/reference/machine-file.md explains each value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace machine {

// The content of a cache or translation buffer.
enum class Holds { kInstructions, kData, kBoth };

// The cores that share an instance.
enum class Of { kCore, kCluster, kMachine };

enum class Inclusion { kNone, kInclusive, kExclusive };

enum class Hash { kModulus, kXor };

// Of a library's policy or prefetcher: keys that assay does not know, and their values.
using Parameters = std::vector<std::pair<std::string, std::string>>;

struct Replacement {
    // lru, fifo, random, lfu, plru, bit-plru, srrip, brrip, drrip, ship, or the path of a library
    // (assay/cache_policy.h).
    std::string policy = "lru";
    std::uint64_t seed = 1;
    Parameters parameters;
};

struct Prefetch {
    // next-line, stride, stream, best-offset, or the path of a library.
    std::string kind;
    std::uint32_t degree = 1;    // lines requested after one reference
    std::uint32_t distance = 1;  // distance of the first requested line
    Parameters parameters;
};

struct Cache {
    std::string name;
    std::uint32_t level = 1;
    Holds holds = Holds::kBoth;
    Of of = Of::kMachine;
    std::uint64_t size = 0;  // bytes
    std::uint32_t ways = 0;
    Hash hash = Hash::kModulus;
    Inclusion inclusion = Inclusion::kNone;
    bool counts_writes = false;  // the file has `writes`
    bool write_back = true;
    bool write_allocate = true;
    Replacement replacement;
    std::vector<Prefetch> prefetch;
    std::uint32_t late = 0;  // instructions of a core; 0: late prefetches are not counted
    bool classify = false;   // counts cold, capacity, conflict and coherence misses separately
    std::uint32_t latency = 0;

    std::uint64_t sets(std::uint32_t line) const { return size / line / ways; }
};

struct Tlb {
    std::string name;
    std::uint32_t level = 1;
    Holds holds = Holds::kBoth;
    std::uint32_t entries = 0;
    std::uint32_t ways = 0;            // `entries` if it is fully associative
    std::vector<std::uint64_t> pages;  // sizes of the pages that it holds, in bytes; empty: all
    Replacement replacement;
    std::uint32_t latency = 0;

    std::uint32_t sets() const { return entries / ways; }
    bool holds_pages_of(std::uint64_t bytes) const {
        return pages.empty() || std::find(pages.begin(), pages.end(), bytes) != pages.end();
    }
};

// The memory that has transparent huge pages, in the words of
// /sys/kernel/mm/transparent_hugepage/enabled.
enum class Transparent { kAlways, kMadvise, kNever };

enum class Protocol { kNone, kMesi, kMoesi };
enum class Placement { kAsTheyCome, kRoundRobin, kList };

inline constexpr std::uint32_t kMostCores = 64;
inline constexpr std::uint32_t kMostLevels = 8;

// Memory whose references go past all caches and take no time.
struct Uncached {
    std::uint64_t from = 0, size = 0;
};

struct Machine {
    std::string name;
    std::uint32_t cores = 0;  // 0: one for each thread
    std::uint32_t clusters = 1;
    Placement placement = Placement::kAsTheyCome;
    std::vector<std::uint32_t> core_of_thread;  // for kList: by thread, repeated from the start
    std::uint32_t line = 64;                    // bytes
    std::uint64_t page = 4096;                  // bytes; 0: from the program's mappings
    Transparent transparent = Transparent::kMadvise;  // for `page` 0
    Protocol protocol = Protocol::kNone;
    bool directory = false;  // without it, a request goes to all other cores
    bool sharing = true;     // with a protocol: counts true and false sharing
    std::uint32_t memory_latency = 0;
    std::uint32_t walk_latency = 0;
    std::vector<Cache> caches;  // by level, instruction caches first
    std::vector<Tlb> tlbs;      // by level, instruction buffers first
    std::vector<Uncached> uncached;

    std::uint32_t cores_of_cluster() const { return cores / clusters; }
    std::uint32_t cluster_of(std::uint32_t core) const {
        return cores == 0 ? 0 : core / cores_of_cluster();
    }
    bool is_uncached(std::uint64_t address) const {
        for (const Uncached& range : uncached)
            if (address - range.from < range.size) return true;
        return false;
    }
    // True if the written words of a line matter.
    bool tells_sharing() const { return protocol != Protocol::kNone && cores > 1 && sharing; }
    // True if the number of instructions that a core has executed matters.
    bool tells_late() const {
        return std::any_of(caches.begin(), caches.end(), [](const Cache& cache) {
            return cache.late != 0 && !cache.prefetch.empty();
        });
    }
};

}  // namespace machine
