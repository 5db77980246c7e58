// A machine to be simulated: cores, caches, translation buffers and what keeps them coherent, as a
// machine file describes them. docs/reference/machine-file.md says what each means.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace machine {

// What a cache or translation buffer holds.
enum class Holds { kInstructions, kData, kBoth };

// Who shares an instance of it.
enum class Of { kCore, kCluster, kMachine };

enum class Inclusion { kNone, kInclusive, kExclusive };

enum class Hash { kModulus, kXor };

struct Replacement {
    // lru, fifo, random, lfu, plru, bit-plru, srrip, brrip, drrip, ship; or the path of a library
    // (assay/cache_policy.h).
    std::string policy = "lru";
    std::uint64_t seed = 1;
};

struct Prefetch {
    // next-line, stride, stream, best-offset; or the path of a library.
    std::string kind;
    std::uint32_t degree = 1;    // lines that one reference asks for
    std::uint32_t distance = 1;  // how far ahead the first of them is
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
    std::uint32_t late = 0;  // instructions of a core; 0: not told
    bool classify = false;   // tells cold, capacity, conflict and coherence misses apart
    std::uint32_t latency = 0;

    std::uint64_t sets(std::uint32_t line) const { return size / line / ways; }
};

struct Tlb {
    std::string name;
    std::uint32_t level = 1;
    Holds holds = Holds::kBoth;
    std::uint32_t entries = 0;
    std::uint32_t ways = 0;            // `entries` if it is fully associative
    std::vector<std::uint64_t> pages;  // bytes of those that it holds; none: all
    Replacement replacement;
    std::uint32_t latency = 0;

    std::uint32_t sets() const { return entries / ways; }
    bool holds_pages_of(std::uint64_t bytes) const {
        return pages.empty() || std::find(pages.begin(), pages.end(), bytes) != pages.end();
    }
};

// Which memory has transparent huge pages, as /sys/kernel/mm/transparent_hugepage/enabled says it.
enum class Transparent { kAlways, kMadvise, kNever };

enum class Protocol { kNone, kMesi, kMoesi };
enum class Placement { kAsTheyCome, kRoundRobin, kList };

inline constexpr std::uint32_t kMostCores = 64;
inline constexpr std::uint32_t kMostLevels = 8;

struct Machine {
    std::string name;
    std::uint32_t cores = 0;  // 0: one for each thread
    std::uint32_t clusters = 1;
    Placement placement = Placement::kAsTheyCome;
    std::vector<std::uint32_t> core_of_thread;  // kList: by thread, from the beginning again
    std::uint32_t line = 64;                    // bytes
    std::uint64_t page = 4096;                  // bytes; 0: as the program's mappings have them
    Transparent transparent = Transparent::kMadvise;  // where `page` is 0
    Protocol protocol = Protocol::kNone;
    bool directory = false;  // else a request goes to all other cores
    bool sharing = true;     // with a protocol, tells true and false sharing
    std::uint32_t memory_latency = 0;
    std::uint32_t walk_latency = 0;
    std::vector<Cache> caches;  // by level, those of instructions first
    std::vector<Tlb> tlbs;      // likewise

    std::uint32_t cores_of_cluster() const { return cores / clusters; }
    std::uint32_t cluster_of(std::uint32_t core) const {
        return cores == 0 ? 0 : core / cores_of_cluster();
    }
    // Whether it matters which words of a line are written.
    bool tells_sharing() const { return protocol != Protocol::kNone && cores > 1 && sharing; }
    // Whether it matters how many instructions a core has executed.
    bool tells_late() const {
        return std::any_of(caches.begin(), caches.end(), [](const Cache& cache) {
            return cache.late != 0 && !cache.prefetch.empty();
        });
    }
};

}  // namespace machine
