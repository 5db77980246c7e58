#include "framework/driver/native/processor/saved_state.h"

#include "framework/driver/native/processor/cpu_levels.h"

#include <array>
#include <cstring>

namespace assay::native {
namespace {

// State components by their numbers (SDM volume 1, 13.1).
enum Component : std::uint8_t { kSse = 1, kAvx, kOpmask = 5, kUpperHalves, kUpperRegisters };

// Where it begins in the standard format. Those of AVX-512 are where the processor says: Intel's
// leave room before them for MPX, AMD's do not.
std::size_t offset_of(Component component) {
    constexpr std::size_t kXmm0 = 160;
    if (component == kSse) return kXmm0;
    static const std::array<std::uint32_t, kUpperRegisters + 1> offsets = [] {
        std::array<std::uint32_t, kUpperRegisters + 1> found{};
        for (std::uint32_t i = kAvx; i < found.size(); ++i) found[i] = processor_cpuid(0xd, i).ebx;
        return found;
    }();
    return offsets[component];
}

// Copies `bytes` from `at` in the component; nothing if it is in its initial state, which is 0 for
// all registers (SDM volume 1, 13.6).
void copy(const Context& context, Component component, std::size_t at, void* out,
          std::size_t bytes) {
    constexpr std::size_t kHeader = 512;
    std::uint64_t present;
    std::memcpy(&present, context.vector_state + kHeader, sizeof present);
    if (present >> component & 1)
        std::memcpy(out, context.vector_state + offset_of(component) + at, bytes);
}

}  // namespace

void read_vector(const Context& context, unsigned reg, unsigned char out[64]) {
    std::memset(out, 0, 64);
    if (reg >= 16) return copy(context, kUpperRegisters, (reg - 16) * 64ULL, out, 64);
    copy(context, kSse, reg * 16ULL, out, 16);
    copy(context, kAvx, reg * 16ULL, out + 16, 16);
    copy(context, kUpperHalves, reg * 32ULL, out + 32, 32);
}

std::uint64_t read_opmask(const Context& context, unsigned reg) {
    std::uint64_t mask = 0;
    copy(context, kOpmask, reg * 8ULL, &mask, sizeof mask);
    return mask;
}

}  // namespace assay::native
