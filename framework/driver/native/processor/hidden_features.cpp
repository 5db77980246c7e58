#include "framework/driver/native/processor/hidden_features.h"

#include <algorithm>
#include <array>

namespace assay::native {
namespace {

constexpr std::uint32_t bit(unsigned number) {
    return 1U << number;
}

// State components (SDM volume 1, 13.1): x87, SSE, AVX, the three of AVX-512, and the rights by
// protection keys. Hidden are those of MPX, AMX and LWP, whose instructions the decoder knows, of
// APX, and of what is not known yet.
constexpr std::uint64_t kShownComponents = 0x2e7;
constexpr std::uint64_t kTileComponents = 0x60000, kApxComponent = 0x80000;
constexpr std::uint64_t kDecodedComponents =
    kShownComponents | 0x18 | kTileComponents | std::uint64_t{1} << 62;

struct HiddenBits {
    Hidden kind;
    std::uint32_t leaf, subleaf;
    CpuidAnswer bits;
};

constexpr std::uint32_t kExtended = 0x80000000;
constexpr std::uint32_t kAll = ~0U;

// SDM volume 2, CPUID; Architecture Instruction Set Extensions Programming Reference, 1.3. Of the
// leaves that grow, all bits are hidden but for those that are known and harmless: Zydis 4.0 knows
// the instructions, or there are none.
constexpr std::uint32_t kShown71Eax = bit(4) | bit(5)                 // AVX-VNNI, AVX512_BF16
                                      | bit(6) | bit(8)               // LASS, ArchPerfmonExt
                                      | bit(10) | bit(11) | bit(12)   // fast rep movsb and others
                                      | bit(17) | bit(18) | bit(20)   // FRED, LKGS, NMI source
                                      | bit(22) | bit(26) | bit(30);  // HRESET, LAM, of the kernel
constexpr std::uint32_t kShown71Edx = bit(14) | bit(18);              // PREFETCHI, CET_SSS
constexpr CpuidAnswer kWhole{kAll, kAll, kAll, kAll};
constexpr std::array kHidden{
    // RTM, whose aborts would lead behind the translation, MPX; AMX with bfloat16, tiles and int8.
    HiddenBits{Hidden::kState, 7, 0, {0, bit(11) | bit(14), 0, bit(22) | bit(24) | bit(25)}},
    HiddenBits{Hidden::kInstructions, 7, 1, {~kShown71Eax, ~bit(0), kAll, ~kShown71Edx}},
    HiddenBits{Hidden::kState, 0x1d, 0, kWhole},  // AMX
    HiddenBits{Hidden::kState, 0x1d, 1, kWhole},
    HiddenBits{Hidden::kState, 0x1e, 0, kWhole},
    HiddenBits{Hidden::kInstructions, 0x1e, 1, kWhole},
    HiddenBits{Hidden::kInstructions, 0x24, 0, kWhole},  // AVX10
    HiddenBits{Hidden::kInstructions, 0x24, 1, kWhole},
    HiddenBits{Hidden::kInstructions, 0x29, 0, kWhole},                // APX
    HiddenBits{Hidden::kState, kExtended + 1, 0, {0, 0, bit(15), 0}},  // LWP
    HiddenBits{Hidden::kState, kExtended + 0x1c, 0, kWhole}};

CpuidAnswer without(const CpuidAnswer& answer, const CpuidAnswer& bits) {
    return {answer.eax & ~bits.eax, answer.ebx & ~bits.ebx, answer.ecx & ~bits.ecx,
            answer.edx & ~bits.edx};
}

bool is_empty(const CpuidAnswer& answer) {
    return (answer.eax | answer.ebx | answer.ecx | answer.edx) == 0;
}

// Beyond the last leaf there are the data of another one.
bool has_leaf(std::uint32_t leaf, Cpuid processor) {
    return processor(leaf & kExtended, 0).eax >= leaf;
}

}  // namespace

Hidden hidden_features() {
    static const Hidden hidden = hidden_features(processor_cpuid, processor_xcr0());
    return hidden;
}

Hidden hidden_features(Cpuid processor, std::uint64_t xcr0) {
    Hidden most = Hidden::kNothing;
    if (xcr0 & ~kShownComponents) most = Hidden::kState;
    if (xcr0 & ~kDecodedComponents) most = Hidden::kInstructions;
    for (const HiddenBits& hidden : kHidden) {
        if (!has_leaf(hidden.leaf, processor)) continue;
        const CpuidAnswer answer = processor(hidden.leaf, hidden.subleaf);
        if (!is_empty(without(answer, without(answer, hidden.bits))))
            most = std::max(most, hidden.kind);
    }
    return most;
}

CpuidAnswer shown_cpuid(std::uint32_t leaf, std::uint32_t subleaf, Cpuid processor) {
    const CpuidAnswer answer = processor(leaf, subleaf);
    if (!has_leaf(leaf, processor)) return answer;
    constexpr std::uint32_t kState = 0xd, kFirstComponent = 2;
    if (leaf == kState && subleaf == 0)
        return {answer.eax & static_cast<std::uint32_t>(kShownComponents), answer.ebx, answer.ecx,
                0};
    constexpr std::uint32_t kSupervisor = 1;  // of ecx: a component of IA32_XSS
    if (leaf == kState && subleaf >= kFirstComponent && subleaf < 64 &&
        !(answer.ecx & kSupervisor) && !(kShownComponents >> subleaf & 1))
        return {};
    const auto found = std::find_if(kHidden.begin(), kHidden.end(), [=](const HiddenBits& hidden) {
        return hidden.leaf == leaf && hidden.subleaf == subleaf;
    });
    return found == kHidden.end() ? answer : without(answer, found->bits);
}

std::uint64_t shown_xcr0(std::uint64_t xcr0) {
    return xcr0 & kShownComponents;
}

// SDM volume 2, CPUID, leaf 7; exception class AMX-E1: undefined unless both components are
// enabled.
bool has_extension(ProcessorExtension extension, Cpuid processor, std::uint64_t xcr0) {
    constexpr std::uint32_t kRtm = 1U << 11;
    switch (extension) {
        case ProcessorExtension::kTransactions:
            return has_leaf(7, processor) && (processor(7, 0).ebx & kRtm) != 0;
        case ProcessorExtension::kTiles:
            return (xcr0 & kTileComponents) == kTileComponents;
        case ProcessorExtension::kNone:
            return true;
    }
    return true;
}

// No level has one.
bool has_extension(ProcessorExtension extension, trace::CpuLevel level) {
    if (extension != ProcessorExtension::kNone && level != trace::CpuLevel::kHost) return false;
    return has_extension(extension, processor_cpuid, processor_xcr0());
}

const char* name_of(ProcessorExtension extension) {
    switch (extension) {
        case ProcessorExtension::kTransactions:
            return "RTM";
        case ProcessorExtension::kTiles:
            return "AMX";
        case ProcessorExtension::kNone:
            return "";
    }
    return "";
}

const char* newer_instruction(std::span<const std::uint8_t> code) {
    return newer_instruction(code, hidden_features(), processor_xcr0());
}

// APX Architecture Specification: REX2 is the last prefix, and map 4 of EVEX is APX's. Both are
// undefined unless XCR0 has its component.
const char* newer_instruction(std::span<const std::uint8_t> code, Hidden hidden,
                              std::uint64_t xcr0) {
    constexpr std::array<std::uint8_t, 11> kLegacyPrefixes{0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e,
                                                           0x36, 0x3e, 0x26, 0x64, 0x65};
    constexpr std::uint8_t kRex2 = 0xd5, kEvex = 0x62, kMap = 7, kApxMap = 4;
    const auto first = std::find_if(code.begin(), code.end(), [&](std::uint8_t byte) {
        return std::find(kLegacyPrefixes.begin(), kLegacyPrefixes.end(), byte) ==
               kLegacyPrefixes.end();
    });
    const auto left = code.end() - first;
    const bool has_apx = xcr0 & kApxComponent;
    if (left > 0 && first[0] == kRex2)
        return has_apx ? "one of APX, with the prefix REX2" : nullptr;
    if (left > 1 && first[0] == kEvex && (first[1] & kMap) == kApxMap)
        return has_apx ? "one of APX, with the prefix EVEX" : nullptr;
    if (hidden != Hidden::kInstructions) return nullptr;
    return "none, or newer than assay: this processor has such, like APX and AVX10";
}

}  // namespace assay::native
