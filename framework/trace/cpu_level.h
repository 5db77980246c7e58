// The processor that a program is shown: the real one, or what an x86-64 level promises (psABI,
// section 3.1.1, "Micro-architecture levels") and nothing beyond it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace assay::trace {

// In order: each has all features of those before it.
enum class CpuLevel : std::uint32_t { kHost = 0, kV2 = 2, kV3 = 3, kV4 = 4 };

struct CpuLevelName {
    std::string_view name;
    CpuLevel level;
};
inline constexpr std::array kCpuLevels{
    CpuLevelName{"host", CpuLevel::kHost}, CpuLevelName{"x86-64-v2", CpuLevel::kV2},
    CpuLevelName{"x86-64-v3", CpuLevel::kV3}, CpuLevelName{"x86-64-v4", CpuLevel::kV4}};

constexpr std::string_view name_of(CpuLevel level) {
    for (const CpuLevelName& known : kCpuLevels)
        if (known.level == level) return known.name;
    return "an unknown level";
}

}  // namespace assay::trace
