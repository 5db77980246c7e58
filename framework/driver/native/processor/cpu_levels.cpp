#include "framework/driver/native/processor/features.h"

#include <array>
#include <cstring>

namespace assay::native {
namespace {

using trace::CpuLevel;

constexpr std::uint32_t kExtended = kExtendedLeaves;
constexpr std::uint32_t kLastLeaf = kStateLeaf, kLastExtendedLeaf = kExtended + 8;

// --- Identity. glibc chooses some functions by the model (sysdeps/x86/cpu-features.c,
// init_cpu_features). A level therefore has the identity of a processor of exactly this level.

// Family 6 with model and stepping, in the format of leaf 1: Westmere, Haswell and Skylake servers.
std::uint32_t signature(CpuLevel level) {
    if (level == CpuLevel::kV2) return 0x206c2;
    return level == CpuLevel::kV3 ? 0x306f2 : 0x50654;
}

CpuidAnswer vendor(std::uint32_t last) {  // "GenuineIntel" in ebx, edx, ecx
    return {last, 0x756e6547, 0x6c65746e, 0x49656e69};
}

CpuidAnswer brand_string(CpuLevel level, std::uint32_t leaf) {
    char text[48] = "x86-64-v0 (assay --cpu)";
    text[8] = static_cast<char>('0' + static_cast<unsigned>(level));
    CpuidAnswer answer;
    std::memcpy(&answer, text + (leaf - (kExtended + 2)) * sizeof answer, sizeof answer);
    return answer;
}

// --- Caches and topology: one core of two threads, which share all caches. With a single thread,
// glibc before 2.33 computes a threshold of 0 for stores that bypass the caches
// (sysdeps/x86/cacheinfo.c, __x86_shared_non_temporal_threshold).

constexpr std::uint32_t kLineBytes = 64, kThreads = 2;

struct Cache {
    unsigned type;  // 1 data, 2 instructions, 3 both
    unsigned level, ways, sets;
};
constexpr std::array kCaches{Cache{1, 1, 8, 64}, Cache{2, 1, 8, 64}, Cache{3, 2, 16, 1024},
                             Cache{3, 3, 16, 8192}};

// Leaf 4. The last level includes the others; otherwise glibc adds their sizes to it.
CpuidAnswer cache_parameters(std::uint32_t subleaf) {
    if (subleaf >= kCaches.size()) return {};
    const Cache& cache = kCaches[subleaf];
    constexpr std::uint32_t kSelfInitialising = 1U << 8, kInclusive = 2;
    return {cache.type | cache.level << 5 | kSelfInitialising | (kThreads - 1) << 14,
            (kLineBytes - 1) | (cache.ways - 1) << 22, cache.sets - 1,
            cache.level == 3 ? kInclusive : 0};
}

// Extended leaf 6, for the level-2 cache: size in KiB, the code for 16 ways, and the line size.
CpuidAnswer level2_cache() {
    const Cache& cache = kCaches[2];
    const std::uint32_t kib = cache.ways * cache.sets * kLineBytes / 1024;
    return {0, 0, kib << 16 | 8U << 12 | kLineBytes, 0};
}

// Leaf 0xb: bits to shift an APIC id by, threads, the level's number and type (1 thread, 2 core).
CpuidAnswer topology(std::uint32_t subleaf) {
    if (subleaf > 1) return {0, 0, subleaf & 0xff, 0};
    return {1, kThreads, (subleaf + 1) << 8 | subleaf, 0};
}

CpuidAnswer constants(CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf) {
    switch (leaf) {
        case 0:
            return vendor(kLastLeaf);
        case 1: {
            constexpr std::uint32_t kHyperThreading = 1U << 28;
            return {signature(level), kThreads << 16 | kLineBytes / 8 << 8, 0, kHyperThreading};
        }
        case 2:
            return {0xff01, 0, 0, 0};  // see leaf 4
        case 4:
            return cache_parameters(subleaf);
        case 0xb:
            return topology(subleaf);
        case kExtended:
            return {kLastExtendedLeaf, 0, 0, 0};
        case kExtended + 2:
        case kExtended + 3:
        case kExtended + 4:
            return brand_string(level, leaf);
        case kExtended + 6:
            return level2_cache();
        case kExtended + 8:
            return {48U << 8 | 46U, 0, 0, 0};  // bits of linear and physical addresses
        default:
            return {};
    }
}

}  // namespace

std::uint32_t level_leaf(std::uint32_t leaf) {
    const bool known = leaf <= kLastLeaf || (leaf >= kExtended && leaf <= kLastExtendedLeaf);
    return known ? leaf : kLastLeaf;
}

CpuidAnswer level_cpuid(CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf) {
    leaf = level_leaf(leaf);
    CpuidAnswer answer = constants(level, leaf, subleaf);
    for (const Feature& feature : features())
        if (feature.since <= level && feature.leaf == leaf &&
            (!has_subleaves(leaf) || feature.subleaf == subleaf))
            part(answer, feature.where) |= 1U << feature.bit;
    return answer;
}

Components level_xcr0(CpuLevel level) {
    if (level < CpuLevel::kV3) return kX87AndSse;
    return kX87AndSse | kAvxState | (level < CpuLevel::kV4 ? 0 : kAvx512State);
}

}  // namespace assay::native
