#include "framework/driver/native/processor/cpu_levels.h"

#include <cpuid.h>
#include <sys/auxv.h>
#include <algorithm>
#include <array>
#include <cstring>

namespace assay::native {
namespace {

using trace::CpuLevel;

enum Register : std::uint8_t { kEax, kEbx, kEcx, kEdx };

struct Feature {
    const char* name;  // the psABI's, in lower case
    CpuLevel since;    // the first level that has it
    std::uint32_t leaf, subleaf;
    Register where;
    unsigned bit;
};

constexpr std::uint32_t kExtended = 0x80000000;
// The baseline x86-64 is part of every level.
constexpr CpuLevel kBaseline = CpuLevel::kV2;

// psABI, table 3.1, in its order; the bits are those of the SDM, volume 2, CPUID. What the table
// does not have: tsc, clflush, nx and lm, without which there is no x86-64 Linux; cx8 counts as its
// CMPXCHG8B, syscall as SCE. The table's OSFXSR is a bit of CR4, and OSXSAVE the one that is read
// by XGETBV. xsavec is not the table's but that of all processors with AVX-512BW, and glibc saves
// vectors with it at addresses that do not depend on the processor (see extended_state()).
constexpr std::array kFeatures{
    Feature{"cmov", kBaseline, 1, 0, kEdx, 15},
    Feature{"cx8", kBaseline, 1, 0, kEdx, 8},
    Feature{"fpu", kBaseline, 1, 0, kEdx, 0},
    Feature{"fxsr", kBaseline, 1, 0, kEdx, 24},
    Feature{"mmx", kBaseline, 1, 0, kEdx, 23},
    Feature{"syscall", kBaseline, kExtended + 1, 0, kEdx, 11},
    Feature{"sse", kBaseline, 1, 0, kEdx, 25},
    Feature{"sse2", kBaseline, 1, 0, kEdx, 26},
    Feature{"tsc", kBaseline, 1, 0, kEdx, 4},
    Feature{"clflush", kBaseline, 1, 0, kEdx, 19},
    Feature{"nx", kBaseline, kExtended + 1, 0, kEdx, 20},
    Feature{"lm", kBaseline, kExtended + 1, 0, kEdx, 29},
    Feature{"cx16", CpuLevel::kV2, 1, 0, kEcx, 13},
    Feature{"lahf_lm", CpuLevel::kV2, kExtended + 1, 0, kEcx, 0},
    Feature{"popcnt", CpuLevel::kV2, 1, 0, kEcx, 23},
    Feature{"sse3", CpuLevel::kV2, 1, 0, kEcx, 0},
    Feature{"sse4_1", CpuLevel::kV2, 1, 0, kEcx, 19},
    Feature{"sse4_2", CpuLevel::kV2, 1, 0, kEcx, 20},
    Feature{"ssse3", CpuLevel::kV2, 1, 0, kEcx, 9},
    Feature{"avx", CpuLevel::kV3, 1, 0, kEcx, 28},
    Feature{"avx2", CpuLevel::kV3, 7, 0, kEbx, 5},
    Feature{"bmi1", CpuLevel::kV3, 7, 0, kEbx, 3},
    Feature{"bmi2", CpuLevel::kV3, 7, 0, kEbx, 8},
    Feature{"f16c", CpuLevel::kV3, 1, 0, kEcx, 29},
    Feature{"fma", CpuLevel::kV3, 1, 0, kEcx, 12},
    Feature{"lzcnt", CpuLevel::kV3, kExtended + 1, 0, kEcx, 5},
    Feature{"movbe", CpuLevel::kV3, 1, 0, kEcx, 22},
    Feature{"xsave", CpuLevel::kV3, 1, 0, kEcx, 26},
    Feature{"osxsave", CpuLevel::kV3, 1, 0, kEcx, 27},
    Feature{"avx512f", CpuLevel::kV4, 7, 0, kEbx, 16},
    Feature{"avx512bw", CpuLevel::kV4, 7, 0, kEbx, 30},
    Feature{"avx512cd", CpuLevel::kV4, 7, 0, kEbx, 28},
    Feature{"avx512dq", CpuLevel::kV4, 7, 0, kEbx, 17},
    Feature{"avx512vl", CpuLevel::kV4, 7, 0, kEbx, 31},
    Feature{"xsavec", CpuLevel::kV4, 0xd, 1, kEax, 1},
    Feature{"xgetbv1", CpuLevel::kV4, 0xd, 1, kEax, 2},
};

std::uint32_t& part(CpuidAnswer& answer, Register which) {
    std::uint32_t CpuidAnswer::*const fields[] = {&CpuidAnswer::eax, &CpuidAnswer::ebx,
                                                  &CpuidAnswer::ecx, &CpuidAnswer::edx};
    return answer.*fields[which];
}

constexpr std::uint32_t kLastLeaf = 0xd, kLastExtendedLeaf = kExtended + 8;

// --- Identity. glibc prefers some functions by model (sysdeps/x86/cpu-features.c,
// init_cpu_features), so a level has that of a processor that is just of this level.

// Family 6 with model and stepping, as leaf 1 puts them: Westmere, Haswell and Skylake servers.
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

// --- Caches and topology: one core of two threads, which share everything. With a single thread,
// glibc before 2.33 computes a threshold of 0 for stores that bypass the caches
// (sysdeps/x86/cacheinfo.c, __x86_shared_non_temporal_threshold).

constexpr std::uint32_t kLineBytes = 64, kThreads = 2;

struct Cache {
    unsigned type;  // 1 data, 2 instructions, 3 both
    unsigned level, ways, sets;
};
constexpr std::array kCaches{Cache{1, 1, 8, 64}, Cache{2, 1, 8, 64}, Cache{3, 2, 16, 1024},
                             Cache{3, 3, 16, 8192}};

// Leaf 4. The last level includes the others, or else glibc adds their sizes to it.
CpuidAnswer cache_parameters(std::uint32_t subleaf) {
    if (subleaf >= kCaches.size()) return {};
    const Cache& cache = kCaches[subleaf];
    constexpr std::uint32_t kSelfInitialising = 1U << 8, kInclusive = 2;
    return {cache.type | cache.level << 5 | kSelfInitialising | (kThreads - 1) << 14,
            (kLineBytes - 1) | (cache.ways - 1) << 22, cache.sets - 1,
            cache.level == 3 ? kInclusive : 0};
}

// Extended leaf 6: KiB, the code for 16 ways, and the line's size of the level-2 cache.
CpuidAnswer level2_cache() {
    const Cache& cache = kCaches[2];
    const std::uint32_t kib = cache.ways * cache.sets * kLineBytes / 1024;
    return {0, 0, kib << 16 | 8U << 12 | kLineBytes, 0};
}

// Leaf 0xb: bits to shift an APIC id by, threads, level's number and type (1 thread, 2 core).
CpuidAnswer topology(std::uint32_t subleaf) {
    if (subleaf > 1) return {0, 0, subleaf & 0xff, 0};
    return {1, kThreads, (subleaf + 1) << 8 | subleaf, 0};
}

// --- State components: leaf 0xd (SDM volume 1, 13.2). Offset and size of AVX are the same on all
// processors. AVX-512 lies where this one puts it, since XSAVE and signal frames do: Intel's leave
// room for MPX before it, AMD's do not. Its sizes, all that XSAVEC needs, are the same everywhere,
// and so is what a level says an area takes: that decides where the frames of signals lie.

constexpr std::uint64_t kX87Sse = 3, kAvx = 4, kAvx512 = 0xe0;
constexpr std::uint32_t kLegacyAndHeader = 576;
constexpr std::uint32_t kLargestWithAvx512 = 2688;  // Intel's

CpuidAnswer component(std::uint64_t xcr0, std::uint32_t number, Cpuid processor) {
    if (number > 63 || !(xcr0 >> number & 1)) return {};
    if (number == 2) return {256, kLegacyAndHeader, 0, 0};
    return processor(0xd, number);
}

std::uint32_t area_bytes(std::uint64_t xcr0, bool compacted, Cpuid processor) {
    std::uint32_t end = kLegacyAndHeader;
    for (std::uint32_t number = 2; number < 63; ++number) {
        const CpuidAnswer found = component(xcr0, number, processor);
        if (found.eax == 0) continue;
        constexpr std::uint32_t kAligned = 2;
        if (compacted && found.ecx & kAligned) end = (end + 63) & ~63U;
        end = compacted ? end + found.eax : std::max(end, found.ebx + found.eax);
    }
    return end;
}

CpuidAnswer extended_state(CpuLevel level, std::uint32_t subleaf, Cpuid processor) {
    if (level < CpuLevel::kV3) return {};
    const std::uint64_t xcr0 = level_xcr0(level);
    if (subleaf > 1) return component(xcr0, subleaf, processor);
    const bool compacted = subleaf == 1;
    if (compacted && level < CpuLevel::kV4) return {};
    const std::uint32_t bytes = compacted ? area_bytes(xcr0, compacted, processor)
                                          : state_area_bytes(level, xcr0, processor);
    if (compacted) return {0, bytes, 0, 0};
    return {static_cast<std::uint32_t>(xcr0), bytes, bytes, 0};
}

CpuidAnswer constants(CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf, Cpuid processor) {
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
        case 0xd:
            return extended_state(level, subleaf, processor);
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

CpuidAnswer processor_cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
    CpuidAnswer answer;
    __cpuid_count(leaf, subleaf, answer.eax, answer.ebx, answer.ecx, answer.edx);
    return answer;
}

bool allows_base_instructions() {
    constexpr std::uint64_t kHwcap2FsGsBase = 2;
    return getauxval(AT_HWCAP2) & kHwcap2FsGsBase;
}

std::uint64_t processor_xcr0() {
    // SDM volume 2, CPUID: without it xgetbv is undefined.
    constexpr std::uint32_t kOsXsave = 1U << 27;
    if ((processor_cpuid(1, 0).ecx & kOsXsave) == 0) return kX87Sse;
    std::uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

CpuidAnswer level_cpuid(CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf,
                        Cpuid processor) {
    // SDM volume 2, CPUID: beyond the last leaf, the data of the highest basic one.
    const bool known = leaf <= kLastLeaf || (leaf >= kExtended && leaf <= kLastExtendedLeaf);
    if (!known) leaf = kLastLeaf;
    CpuidAnswer answer = constants(level, leaf, subleaf, processor);
    const bool has_subleaves = leaf == 7 || leaf == 0xd;
    for (const Feature& feature : kFeatures)
        if (feature.since <= level && feature.leaf == leaf &&
            (!has_subleaves || feature.subleaf == subleaf))
            part(answer, feature.where) |= 1U << feature.bit;
    return answer;
}

std::uint64_t level_xcr0(CpuLevel level) {
    switch (level) {
        case CpuLevel::kHost:
            return processor_xcr0();
        case CpuLevel::kV2:
            return kX87Sse;
        case CpuLevel::kV3:
            return kX87Sse | kAvx;
        case CpuLevel::kV4:
            return kX87Sse | kAvx | kAvx512;
    }
    return 0;
}

std::uint32_t state_area_bytes(CpuLevel level, std::uint64_t components, Cpuid processor) {
    const std::uint32_t bytes = area_bytes(components, false, processor);
    return level == CpuLevel::kV4 ? std::max(bytes, kLargestWithAvx512) : bytes;
}

std::string missing_for(CpuLevel level, Cpuid processor, std::uint64_t xcr0) {
    if (level == CpuLevel::kHost) return {};
    const std::uint32_t last = processor(0, 0).eax, last_extended = processor(kExtended, 0).eax;
    const auto has = [&](const Feature& feature) {
        if (feature.leaf > (feature.leaf < kExtended ? last : last_extended)) return false;
        CpuidAnswer answer = processor(feature.leaf, feature.subleaf);
        return (part(answer, feature.where) >> feature.bit & 1) != 0;
    };
    for (const Feature& feature : kFeatures)
        if (feature.since <= level && !has(feature)) return feature.name;
    const std::uint64_t wanted = level >= CpuLevel::kV3 ? level_xcr0(level) : 0;
    if ((xcr0 & wanted) == wanted) return {};
    return xcr0 & kAvx ? "AVX-512 state, which the system has not enabled"
                       : "AVX state, which the system has not enabled";
}

HardwareCapabilities capabilities(CpuLevel level) {
    // At least what a signal frame takes. No FSGSBASE in AT_HWCAP2: no level has it.
    constexpr std::uint64_t kWithoutAvx512 = 2048, kWithAvx512 = 4096;
    if (level == CpuLevel::kHost) {
        const std::uint64_t known = getauxval(AT_MINSIGSTKSZ);  // since Linux 5.14
        return {getauxval(AT_HWCAP), getauxval(AT_HWCAP2), known ? known : kWithoutAvx512};
    }
    return {level_cpuid(level, 1, 0).edx, 0, level < CpuLevel::kV4 ? kWithoutAvx512 : kWithAvx512};
}

}  // namespace assay::native
