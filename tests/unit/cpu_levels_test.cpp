// The x86-64 levels: what CPUID answers at each, and which processors can have them.
#include "framework/driver/native/processor/features.h"
#include "framework/driver/native/processor/shown_processor.h"

#include <doctest/doctest.h>
#include <cstring>
#include <string>
#include <vector>

namespace cpu_levels_test {

using namespace assay::native;
using assay::trace::CpuLevel;

namespace {

constexpr CpuLevel kLevels[] = {CpuLevel::kV2, CpuLevel::kV3, CpuLevel::kV4};
constexpr std::uint32_t kExtended = 0x80000000;

// Where AVX-512 lies on Intel's processors and, without the gap that MPX left, on AMD's.
constexpr CpuidAnswer kAvx{256, 576, 0, 0};
CpuidAnswer intel(std::uint32_t leaf, std::uint32_t subleaf) {
    if (leaf == 0) return {0xd, 0, 0, 0};
    if (leaf != 0xd) return {};
    if (subleaf == 0) return {0xff, 2688, 2688, 0};
    if (subleaf == 2) return kAvx;
    if (subleaf == 5) return {64, 1088, 0, 0};
    if (subleaf == 6) return {512, 1152, 0, 0};
    return subleaf == 7 ? CpuidAnswer{1024, 1664, 0, 0} : CpuidAnswer{};
}
CpuidAnswer amd(std::uint32_t leaf, std::uint32_t subleaf) {
    if (leaf == 0) return {0xd, 0, 0, 0};
    if (leaf != 0xd) return {};
    if (subleaf == 0) return {0xe7, 2432, 2432, 0};
    if (subleaf == 2) return kAvx;
    if (subleaf == 5) return {64, 832, 0, 0};
    if (subleaf == 6) return {512, 896, 0, 0};
    return subleaf == 7 ? CpuidAnswer{1024, 1408, 0, 0} : CpuidAnswer{};
}

ShownProcessor at(CpuLevel level, const Cpuid& processor, Components xcr0 = 0xff) {
    return {{.cpuid = processor, .xcr0 = xcr0}, level};
}

CpuidAnswer ask(CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf = 0) {
    return at(level, intel).cpuid(leaf, subleaf);
}

// Processors that are just of a level.
Cpuid processor_of(CpuLevel level) {
    return [level](std::uint32_t leaf, std::uint32_t subleaf) { return ask(level, leaf, subleaf); };
}

}  // namespace

// psABI, table 3.1; the bits as in the SDM, volume 2, tables 3-8 to 3-11.
TEST_CASE("a level has the features of the psABI's list") {
    constexpr std::uint32_t kV2Ecx =
        1U << 0 | 1U << 9 | 1U << 13 | 1U << 19 | 1U << 20 | 1U << 23;  // sse3 to popcnt
    constexpr std::uint32_t kV3Ecx = kV2Ecx | 1U << 12 | 1U << 22 | 1U << 26 | 1U << 27 | 1U << 28 |
                                     1U << 29;  // fma movbe xsave osxsave avx f16c
    constexpr std::uint32_t kV3Ebx = 1U << 3 | 1U << 5 | 1U << 8;  // bmi1 avx2 bmi2
    constexpr std::uint32_t kV4Ebx =
        kV3Ebx | 1U << 16 | 1U << 17 | 1U << 28 | 1U << 30 | 1U << 31;  // avx512 f dq cd bw vl
    CHECK(ask(CpuLevel::kV2, 1).ecx == kV2Ecx);
    CHECK(ask(CpuLevel::kV3, 1).ecx == kV3Ecx);
    CHECK(ask(CpuLevel::kV4, 1).ecx == kV3Ecx);
    CHECK(ask(CpuLevel::kV2, 7).ebx == 0);
    CHECK(ask(CpuLevel::kV3, 7).ebx == kV3Ebx);
    CHECK(ask(CpuLevel::kV4, 7).ebx == kV4Ebx);
    CHECK(ask(CpuLevel::kV2, kExtended + 1).ecx == 1);     // lahf_lm
    CHECK(ask(CpuLevel::kV3, kExtended + 1).ecx == 0x21);  // and lzcnt
    CHECK(ask(CpuLevel::kV4, kExtended + 1).ecx == 0x21);
    for (const CpuLevel level : kLevels) {
        // fpu tsc cx8 cmov clflush mmx fxsr sse sse2 htt
        CHECK(ask(level, 1).edx == 0x17888111);
        CHECK(ask(level, kExtended + 1).edx == (1U << 11 | 1U << 20 | 1U << 29));
        CHECK(ask(level, 7).eax == 0);
        CHECK(ask(level, 7).ecx == 0);
        CHECK(ask(level, 7).edx == 0);
        CHECK(ask(level, 7, 1) == CpuidAnswer{});
        CHECK(at(level, intel).hwcap() == 0x17888111);
        CHECK(at(level, intel).hwcap2() == 0);
    }
}

TEST_CASE("the vendor, the brand and the caches are the same on every processor") {
    const CpuidAnswer first = ask(CpuLevel::kV3, 0);
    CHECK(first.eax == 0xd);
    CHECK(std::memcmp(&first.ebx, "Genu", 4) == 0);
    CHECK(std::memcmp(&first.edx, "ineI", 4) == 0);
    CHECK(std::memcmp(&first.ecx, "ntel", 4) == 0);
    std::string brand;
    for (std::uint32_t leaf = kExtended + 2; leaf <= kExtended + 4; ++leaf) {
        const CpuidAnswer part = ask(CpuLevel::kV3, leaf);
        brand.append(reinterpret_cast<const char*>(&part), sizeof part);
    }
    CHECK(brand.substr(0, brand.find('\0')) == "x86-64-v3 (assay --cpu)");

    // Sizes by SDM's formula for leaf 4: ways * partitions * line * sets.
    std::vector<unsigned> kib;
    for (std::uint32_t i = 0; ask(CpuLevel::kV3, 4, i).eax & 0x1f; ++i) {
        const CpuidAnswer cache = ask(CpuLevel::kV3, 4, i);
        CHECK((cache.ebx & 0xfff) == 63);
        kib.push_back(((cache.ebx >> 22) + 1) * 64 * (cache.ecx + 1) / 1024);
    }
    CHECK(kib == std::vector<unsigned>{32, 32, 1024, 8192});
    for (std::uint32_t leaf : {0U, 1U, 2U, 4U, 7U, 0xbU, kExtended, kExtended + 6})
        CHECK(ask(CpuLevel::kV4, leaf) == at(CpuLevel::kV4, amd).cpuid(leaf, 0));
}

TEST_CASE("threads end where the topology says") {
    CHECK((ask(CpuLevel::kV3, 0xb, 0).ecx >> 8 & 0xff) == 1);
    CHECK((ask(CpuLevel::kV3, 0xb, 1).ecx >> 8 & 0xff) == 2);
    CHECK(ask(CpuLevel::kV3, 0xb, 2) == CpuidAnswer{0, 0, 2, 0});
}

TEST_CASE("beyond the last leaf stands the highest basic one") {
    for (const std::uint32_t leaf : {0xeU, 0x14U, 0x1fU, 0x40000000U, kExtended + 9})
        CHECK(ask(CpuLevel::kV3, leaf) == ask(CpuLevel::kV3, 0xd));
}

TEST_CASE("the state components fit what XGETBV says") {
    CHECK(level_xcr0(CpuLevel::kV3) == 7);
    CHECK(level_xcr0(CpuLevel::kV4) == 0xe7);
    CHECK(ask(CpuLevel::kV2, 0xd) == CpuidAnswer{});
    CHECK(ask(CpuLevel::kV3, 0xd) == CpuidAnswer{7, 832, 832, 0});
    CHECK(ask(CpuLevel::kV3, 0xd, 1) == CpuidAnswer{});
    CHECK(ask(CpuLevel::kV3, 0xd, 2) == CpuidAnswer{256, 576, 0, 0});
    CHECK(ask(CpuLevel::kV3, 0xd, 5) == CpuidAnswer{});
    CHECK(ask(CpuLevel::kV4, 0xd, 9) == CpuidAnswer{});
    CHECK(ask(CpuLevel::kV4, 0xd, 40) == CpuidAnswer{});
    CHECK(ask(CpuLevel::kV4, 0xd) == CpuidAnswer{0xe7, 2688, 2688, 0});
    CHECK(at(CpuLevel::kV4, amd).cpuid(0xd, 0) == ask(CpuLevel::kV4, 0xd));
    CHECK(at(CpuLevel::kV4, amd).cpuid(0xd, 7) == CpuidAnswer{1024, 1408, 0, 0});
    // Compacted, as glibc uses it, they take the same room everywhere.
    CHECK(ask(CpuLevel::kV4, 0xd, 1) == CpuidAnswer{6, 2432, 0, 0});
    CHECK(at(CpuLevel::kV4, amd).cpuid(0xd, 1) == ask(CpuLevel::kV4, 0xd, 1));
}

TEST_CASE("frames of signals take the room that CPUID says") {
    for (const Cpuid& processor : {Cpuid(intel), Cpuid(amd)}) {
        CHECK(at(CpuLevel::kV2, processor).frame_bytes() == 512);
        CHECK(at(CpuLevel::kV2, processor).signal_stack() == 1440);
        CHECK(at(CpuLevel::kV3, processor).frame_bytes() == 832);
        CHECK(at(CpuLevel::kV3, processor).signal_stack() == 1776);
        CHECK(at(CpuLevel::kV4, processor).frame_bytes() == 2688);
        CHECK(at(CpuLevel::kV4, processor).signal_stack() == 3632);
    }
}

TEST_CASE("a processor can have its level and the ones below") {
    const auto missing_for = [](CpuLevel wanted, CpuLevel own, Components xcr0) {
        return at(wanted, processor_of(own), xcr0).missing();
    };
    for (const CpuLevel own : kLevels)
        for (const CpuLevel wanted : kLevels)
            CHECK(missing_for(wanted, own, level_xcr0(own)).empty() == (wanted <= own));
    CHECK(missing_for(CpuLevel::kV3, CpuLevel::kV2, 3) == "avx");
    CHECK(missing_for(CpuLevel::kV4, CpuLevel::kV3, 7) == "avx512f");
    CHECK(missing_for(CpuLevel::kV4, CpuLevel::kV4, 7) ==
          "AVX-512 state, which the system has not enabled");
    CHECK(missing_for(CpuLevel::kV3, CpuLevel::kV4, 3) ==
          "AVX state, which the system has not enabled");
    CHECK(missing_for(CpuLevel::kHost, CpuLevel::kV2, 3).empty());
}

}  // namespace cpu_levels_test
