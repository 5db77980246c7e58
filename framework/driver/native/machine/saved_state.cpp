#include "framework/driver/native/machine/saved_state.h"

#include "framework/driver/native/processor/shown_processor.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace assay::native {
namespace {

// State components by their numbers (SDM volume 1, 13.1).
enum Component : std::uint8_t {
    kX87,
    kSse,
    kAvx,
    kOpmask = 5,
    kUpperHalves,
    kUpperRegisters,
    kPkru = 9
};

constexpr std::size_t kMxcsr = 24, kXmm0 = 160;
constexpr std::uint16_t kInitialControl = 0x37f;  // x87's
constexpr std::uint32_t kInitialMxcsr = 0x1f80;

// The offset of a component in the standard format. The processor gives the offsets of AVX-512:
// Intel leaves room before them for MPX, AMD does not.
std::size_t offset_of(Component component) {
    if (component == kX87) return 0;
    if (component == kSse) return kXmm0;
    return shown_processor().component(component).offset;
}

std::uint64_t components_in(const unsigned char* area) {
    std::uint64_t present;
    std::memcpy(&present, area + kLegacyBytes, sizeof present);
    return present;
}

// Copies `bytes` from `at` in the component. Leaves `out` as it is if the component is in its
// initial state, which is 0 for all registers (SDM volume 1, 13.6).
void copy(const Context& context, Component component, std::size_t at, void* out,
          std::size_t bytes) {
    if (components_in(context.vector_state) >> component & 1)
        std::memcpy(out, context.vector_state + offset_of(component) + at, bytes);
}

// SDM volume 1, 10.5.1. Registers are in stack order. Bits of the tag word and MMX registers are
// numbered from the bottom.
constexpr std::size_t kX87Registers = 32, kX87RegisterBytes = 16;

struct X87Stack {
    unsigned top;
    unsigned full;  // one bit for each register
};

X87Stack x87_stack(const Context& context) {
    constexpr unsigned kStatusHigh = 3, kTags = 4;
    unsigned char head[kTags + 1] = {};
    copy(context, kX87, 0, head, sizeof head);
    return {head[kStatusHigh] >> 3 & 7U, head[kTags]};
}

// The integer nearest to value / 2^bits, and the even one of two.
std::uint64_t shift_and_round(std::uint64_t value, unsigned bits) {
    const std::uint64_t half = std::uint64_t{1} << (bits - 1);
    const std::uint64_t rest = value & (half | (half - 1));
    const std::uint64_t whole = bits == 64 ? 0 : value >> bits;
    return whole + (rest > half || (rest == half && whole & 1) ? 1 : 0);
}

// The processor's result for invalid operands (SDM volume 1, 4.8.3.7).
constexpr std::uint64_t kDefaultNan = 0xfff8000000000000;

}  // namespace

void reset_state(Context& context) {
    constexpr std::size_t kHeaderBytes = 64;
    std::memset(context.vector_state, 0,
                std::max(context.frame_bytes, kLegacyBytes + kHeaderBytes));
    std::memcpy(context.vector_state, &kInitialControl, sizeof kInitialControl);
    std::memcpy(context.vector_state + kMxcsr, &kInitialMxcsr, sizeof kInitialMxcsr);
    if (context.saving != kSavedByFxsave) return;
    // XSTATE_BV. fxsave does not write it.
    std::memcpy(context.vector_state + kLegacyBytes, &kX87AndSse, sizeof kX87AndSse);
}

std::uint32_t read_pkru() {
    std::uint32_t rights = 0;
    asm volatile("rdpkru" : "=a"(rights) : "c"(0) : "edx");
    return rights;
}

void write_pkru(std::uint32_t rights) {
    asm volatile("wrpkru" : : "a"(rights), "c"(0), "d"(0) : "memory");
}

std::size_t pkru_offset() {
    return offset_of(kPkru);
}

void write_out_legacy(unsigned char* area) {
    constexpr std::size_t kXmmEnd = kXmm0 + 16 * 16;
    const std::uint64_t present = components_in(area);
    if (!(present >> kX87 & 1)) {
        std::memset(area, 0, kMxcsr);
        std::memcpy(area, &kInitialControl, sizeof kInitialControl);
        std::memset(area + kX87Registers, 0, kXmm0 - kX87Registers);
    }
    if (!(present >> kSse & 1)) std::memset(area + kXmm0, 0, kXmmEnd - kXmm0);
}

// arch/x86/kernel/fpu/xstate.c, __copy_xstate_to_uabi_buf().
void write_out(const Context& context, unsigned char* out, std::size_t bytes) {
    constexpr std::size_t kSoftware = 464;
    constexpr unsigned kComponents = 63;
    std::array<unsigned char, sizeof context.vector_state> area;
    std::memcpy(area.data(), context.vector_state, area.size());
    write_out_legacy(area.data());
    const std::uint64_t present = components_in(area.data()) & context.frame_components;
    std::memcpy(area.data() + kLegacyBytes, &present, sizeof present);
    for (unsigned component = kAvx; component < kComponents; ++component) {
        const StateComponent& known = shown_processor().component(component);
        if (!(present >> component & 1) && known.offset >= kLegacyBytes &&
            known.offset + known.bytes <= area.size())
            std::memset(area.data() + known.offset, 0, known.bytes);
    }
    std::memcpy(out, area.data(), std::min(bytes, kSoftware));
    if (bytes > kLegacyBytes)
        std::memcpy(out + kLegacyBytes, area.data() + kLegacyBytes,
                    std::min(bytes, area.size()) - kLegacyBytes);
}

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

std::uint64_t read_mmx(const Context& context, unsigned reg) {
    const unsigned number = (reg - x87_stack(context).top) & 7;
    std::uint64_t value = 0;
    copy(context, kX87, kX87Registers + number * kX87RegisterBytes, &value, sizeof value);
    return value;
}

std::uint64_t read_x87(const Context& context, unsigned number) {
    const X87Stack stack = x87_stack(context);
    if (!(stack.full >> ((stack.top + number) & 7) & 1)) return kDefaultNan;
    const std::size_t at = kX87Registers + number * kX87RegisterBytes;
    std::uint64_t low = 0;
    std::uint16_t high = 0;
    copy(context, kX87, at, &low, sizeof low);
    copy(context, kX87, at + sizeof low, &high, sizeof high);
    return nearest_double(high, low);
}

// SDM volume 1, 4.2.2 and 8.2.2. Uses integers only, because the x87 registers still hold the
// program's values.
std::uint64_t nearest_double(std::uint16_t high, std::uint64_t low) {
    constexpr unsigned kFraction = 52, kMore = 11;  // bits of a double's fraction, and the further
                                                    // bits of `low`
    constexpr int kBias = 16383, kDoubleBias = 1023, kSpecial = 0x7fff;
    constexpr std::uint64_t kInfinity = std::uint64_t{0x7ff} << kFraction;
    constexpr std::uint64_t kQuiet = std::uint64_t{1} << (kFraction - 1);
    const std::uint64_t sign = std::uint64_t{high} >> 15 << 63;
    const int exponent = high & kSpecial;
    const bool has_integer_bit = low >> 63 != 0;
    if (exponent != 0 && !has_integer_bit) return kDefaultNan;
    const std::uint64_t fraction = low << 1;
    if (exponent == kSpecial && fraction == 0) return sign | kInfinity;
    if (exponent == kSpecial) return sign | kInfinity | kQuiet | fraction >> (kMore + 1);
    const int scaled = exponent - kBias + kDoubleBias;
    if (scaled > 2 * kDoubleBias) return sign | kInfinity;
    if (scaled < 1) {
        const int bits = int{kMore} + 1 - scaled;
        return bits > 64 ? sign : sign | shift_and_round(low, static_cast<unsigned>(bits));
    }
    // The integer bit adds 1 to the exponent. A carry of the rounding also adds 1.
    const std::uint64_t below = static_cast<std::uint64_t>(scaled - 1) << kFraction;
    return sign | (below + shift_and_round(low, kMore));
}

}  // namespace assay::native
