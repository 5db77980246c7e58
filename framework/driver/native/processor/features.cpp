#include "framework/driver/native/processor/features.h"

#include <algorithm>

namespace assay::native {
namespace {

using trace::CpuLevel;
constexpr std::uint32_t kExt = kExtendedLeaves;
constexpr auto kEax = Feature::kEax, kEbx = Feature::kEbx, kEcx = Feature::kEcx,
               kEdx = Feature::kEdx;

// Parents come before their children. The levels are from the psABI, table 3.1, in its order. The
// bits are from the SDM, volume 2, CPUID.
//
// The psABI's table lacks tsc, clflush, nx and lm, because there is no x86-64 Linux without them.
// cx8 is the table's CMPXCHG8B, and syscall is its SCE. The table's OSFXSR is a bit of CR4. The
// table also lacks xsavec and xgetbv1, but all processors with AVX-512BW have them. glibc saves
// vectors with xsavec at addresses that do not depend on the processor (see
// ShownProcessor::state_leaf()).
constexpr std::array kFeatures{
    Feature{"cmov", kEveryLevel, 1, 0, kEdx, 15}, Feature{"cx8", kEveryLevel, 1, 0, kEdx, 8},
    Feature{"fpu", kEveryLevel, 1, 0, kEdx, 0}, Feature{"fxsr", kEveryLevel, 1, 0, kEdx, 24},
    Feature{"mmx", kEveryLevel, 1, 0, kEdx, 23},
    Feature{"syscall", kEveryLevel, kExt + 1, 0, kEdx, 11},
    Feature{"sse", kEveryLevel, 1, 0, kEdx, 25}, Feature{"sse2", kEveryLevel, 1, 0, kEdx, 26},
    Feature{"tsc", kEveryLevel, 1, 0, kEdx, 4}, Feature{"clflush", kEveryLevel, 1, 0, kEdx, 19},
    Feature{"nx", kEveryLevel, kExt + 1, 0, kEdx, 20},
    Feature{"lm", kEveryLevel, kExt + 1, 0, kEdx, 29},
    Feature{"cx16", CpuLevel::kV2, 1, 0, kEcx, 13},
    Feature{"lahf_lm", CpuLevel::kV2, kExt + 1, 0, kEcx, 0},
    Feature{"popcnt", CpuLevel::kV2, 1, 0, kEcx, 23}, Feature{"sse3", CpuLevel::kV2, 1, 0, kEcx, 0},
    Feature{"ssse3", CpuLevel::kV2, 1, 0, kEcx, 9, 0, "sse3"},
    Feature{"sse4_1", CpuLevel::kV2, 1, 0, kEcx, 19, 0, "ssse3"},
    Feature{"sse4_2", CpuLevel::kV2, 1, 0, kEcx, 20, 0, "sse4_1"},
    Feature{"aes", kNoLevel, 1, 0, kEcx, 25}, Feature{"pclmulqdq", kNoLevel, 1, 0, kEcx, 1},
    Feature{"avx", CpuLevel::kV3, 1, 0, kEcx, 28, kAvxState, "sse4_2"},
    Feature{"avx2", CpuLevel::kV3, 7, 0, kEbx, 5, kAvxState, "avx"},
    Feature{"bmi1", CpuLevel::kV3, 7, 0, kEbx, 3}, Feature{"bmi2", CpuLevel::kV3, 7, 0, kEbx, 8},
    Feature{"f16c", CpuLevel::kV3, 1, 0, kEcx, 29, kAvxState, "avx"},
    Feature{"fma", CpuLevel::kV3, 1, 0, kEcx, 12, kAvxState, "avx"},
    Feature{"lzcnt", CpuLevel::kV3, kExt + 1, 0, kEcx, 5},
    Feature{"movbe", CpuLevel::kV3, 1, 0, kEcx, 22},
    Feature{"xsave", CpuLevel::kV3, 1, 0, kEcx, 26},
    Feature{"osxsave", CpuLevel::kV3, 1, 0, kEcx, 27, 0, "xsave"},
    Feature{"avx512f", CpuLevel::kV4, 7, 0, kEbx, 16, kAvx512State, "avx2"},
    Feature{"avx512bw", CpuLevel::kV4, 7, 0, kEbx, 30, kAvx512State, "avx512f"},
    Feature{"avx512cd", CpuLevel::kV4, 7, 0, kEbx, 28, kAvx512State, "avx512f"},
    Feature{"avx512dq", CpuLevel::kV4, 7, 0, kEbx, 17, kAvx512State, "avx512f"},
    Feature{"avx512vl", CpuLevel::kV4, 7, 0, kEbx, 31, kAvx512State, "avx512f"},
    Feature{"xsavec", CpuLevel::kV4, kStateLeaf, 1, kEax, 1, 0, "osxsave"},
    Feature{"xgetbv1", CpuLevel::kV4, kStateLeaf, 1, kEax, 2, 0, "osxsave"},
    Feature{"xsaveopt", kNoLevel, kStateLeaf, 1, kEax, 0, 0, "osxsave"},
    Feature{"xsaves", kNoLevel, kStateLeaf, 1, kEax, 3, 0, "xsavec"},
    Feature{"xfd", kNoLevel, kStateLeaf, 1, kEax, 4, kTileState, "xsaves"},
    Feature{"shstk", kNoLevel, 7, 0, kEcx, 7, 0, "xsaves"},
    Feature{"ibt", kNoLevel, 7, 0, kEdx, 20, 0, "xsaves"},
    Feature{"uintr", kNoLevel, 7, 0, kEdx, 5, 0, "xsaves"},
    Feature{"vaes", kNoLevel, 7, 0, kEcx, 9, kAvxState, "aes"},
    Feature{"vpclmulqdq", kNoLevel, 7, 0, kEcx, 10, kAvxState, "pclmulqdq"},
    Feature{"xop", kNoLevel, kExt + 1, 0, kEcx, 11, kAvxState, "avx"},
    Feature{"fma4", kNoLevel, kExt + 1, 0, kEcx, 16, kAvxState, "avx"},
    Feature{"avx_vnni", kNoLevel, 7, 1, kEax, 4, kAvxState, "avx2"},
    Feature{"avx512ifma", kNoLevel, 7, 0, kEbx, 21, kAvx512State, "avx512f"},
    Feature{"avx512pf", kNoLevel, 7, 0, kEbx, 26, kAvx512State, "avx512f"},
    Feature{"avx512er", kNoLevel, 7, 0, kEbx, 27, kAvx512State, "avx512f"},
    Feature{"avx512vbmi", kNoLevel, 7, 0, kEcx, 1, kAvx512State, "avx512f"},
    Feature{"avx512_vbmi2", kNoLevel, 7, 0, kEcx, 6, kAvx512State, "avx512f"},
    Feature{"avx512_vnni", kNoLevel, 7, 0, kEcx, 11, kAvx512State, "avx512f"},
    Feature{"avx512_bitalg", kNoLevel, 7, 0, kEcx, 12, kAvx512State, "avx512f"},
    Feature{"avx512_vpopcntdq", kNoLevel, 7, 0, kEcx, 14, kAvx512State, "avx512f"},
    Feature{"avx512_4vnniw", kNoLevel, 7, 0, kEdx, 2, kAvx512State, "avx512f"},
    Feature{"avx512_4fmaps", kNoLevel, 7, 0, kEdx, 3, kAvx512State, "avx512f"},
    Feature{"avx512_vp2intersect", kNoLevel, 7, 0, kEdx, 8, kAvx512State, "avx512f"},
    Feature{"avx512_fp16", kNoLevel, 7, 0, kEdx, 23, kAvx512State, "avx512f"},
    Feature{"avx512_bf16", kNoLevel, 7, 1, kEax, 5, kAvx512State, "avx512f"},
    Feature{"fsgsbase", kNoLevel, 7, 0, kEbx, 0}, Feature{"erms", kNoLevel, 7, 0, kEbx, 9},
    Feature{"fsrm", kNoLevel, 7, 0, kEdx, 4, 0, "erms"}, Feature{"adx", kNoLevel, 7, 0, kEbx, 19},
    Feature{"rdrand", kNoLevel, 1, 0, kEcx, 30}, Feature{"rdseed", kNoLevel, 7, 0, kEbx, 18},
    Feature{"sha_ni", kNoLevel, 7, 0, kEbx, 29}, Feature{"gfni", kNoLevel, 7, 0, kEcx, 8},
    Feature{"pku", kNoLevel, 7, 0, kEcx, 3, kPkruState},
    Feature{"ospke", kNoLevel, 7, 0, kEcx, 4, kPkruState, "pku"},
    // An aborted transaction would bypass the translation.
    Feature{"rtm", kNoLevel, 7, 0, kEbx, 11}, Feature{"mpx", kNoLevel, 7, 0, kEbx, 14, kMpxState},
    Feature{"amx_bf16", kNoLevel, 7, 0, kEdx, 22, kTileState},
    Feature{"amx_tile", kNoLevel, 7, 0, kEdx, 24, kTileState},
    Feature{"amx_int8", kNoLevel, 7, 0, kEdx, 25, kTileState},
    Feature{"lwp", kNoLevel, kExt + 1, 0, kEcx, 15, kLwpState}};
static_assert(kFeatures.size() <= kMostFeatures);

struct StateName {
    std::string_view name;
    Components components;
};
constexpr std::array kStateNames{StateName{"avx", kAvxState}, StateName{"avx512", kAvx512State},
                                 StateName{"opmask", 0x20},   StateName{"zmm_hi256", 0x40},
                                 StateName{"hi16_zmm", 0x80}, StateName{"pkru", kPkruState}};

constexpr std::uint32_t flag(unsigned number) {
    return 1U << number;
}

// Leaves and bits that are always hidden, apart from the features above. Newer processors have more
// bits in some leaves. All bits of these leaves are hidden except known harmless ones: Zydis 4.0
// knows their instructions, or they have no instructions (SDM volume 2, CPUID; Architecture
// Instruction Set Extensions Programming Reference, 1.3).
struct HiddenBits {
    Hidden kind;
    std::uint32_t leaf, subleaf;
    CpuidAnswer bits;
};
constexpr std::uint32_t kAll = ~0U;
constexpr std::uint32_t kShown71Eax = flag(4) | flag(5)                 // AVX-VNNI, AVX512_BF16
                                      | flag(6) | flag(8)               // LASS, ArchPerfmonExt
                                      | flag(10) | flag(11) | flag(12)  // fast rep movsb and others
                                      | flag(17) | flag(18) | flag(20)  // FRED, LKGS, NMI source
                                      | flag(22) | flag(26) |
                                      flag(30);             // HRESET, LAM, of the kernel
constexpr std::uint32_t kShown71Edx = flag(14) | flag(18);  // PREFETCHI, CET_SSS
constexpr CpuidAnswer kWhole{kAll, kAll, kAll, kAll};
constexpr std::array kHiddenBits{
    HiddenBits{Hidden::kInstructions, 7, 1, {~kShown71Eax, ~flag(0), kAll, ~kShown71Edx}},
    HiddenBits{Hidden::kState, 0x1d, 0, kWhole},  // AMX
    HiddenBits{Hidden::kState, 0x1d, 1, kWhole},
    HiddenBits{Hidden::kState, 0x1e, 0, kWhole},
    HiddenBits{Hidden::kInstructions, 0x1e, 1, kWhole},
    HiddenBits{Hidden::kInstructions, 0x24, 0, kWhole},  // AVX10
    HiddenBits{Hidden::kInstructions, 0x24, 1, kWhole},
    HiddenBits{Hidden::kInstructions, 0x29, 0, kWhole},   // APX
    HiddenBits{Hidden::kState, kExt + 0x1c, 0, kWhole}};  // LWP

CpuidAnswer without(const CpuidAnswer& answer, const CpuidAnswer& bits) {
    return {answer.eax & ~bits.eax, answer.ebx & ~bits.ebx, answer.ecx & ~bits.ecx,
            answer.edx & ~bits.edx};
}

bool is_whole_leaf_hidden(std::uint32_t leaf) {
    return std::any_of(kHiddenBits.begin(), kHiddenBits.end(), [leaf](const HiddenBits& hidden) {
        return hidden.leaf == leaf && hidden.bits == kWhole;
    });
}

bool can_be_hidden(const Feature& feature) {
    return feature.since != kEveryLevel;
}

}  // namespace

std::span<const Feature> features() {
    return kFeatures;
}

std::uint32_t& part(CpuidAnswer& answer, Feature::Register where) {
    std::uint32_t CpuidAnswer::*const fields[] = {&CpuidAnswer::eax, &CpuidAnswer::ebx,
                                                  &CpuidAnswer::ecx, &CpuidAnswer::edx};
    return answer.*fields[where];
}

bool has_subleaves(std::uint32_t leaf) {
    constexpr std::uint32_t kMoreFeatures = 7;
    return leaf == kMoreFeatures || leaf == kStateLeaf;
}

bool has_leaf(std::uint32_t leaf, const Cpuid& processor) {
    return processor(leaf & kExt, 0).eax >= leaf;
}

bool has_feature(const Feature& feature, const Cpuid& processor) {
    if (!has_leaf(feature.leaf, processor)) return false;
    CpuidAnswer answer = processor(feature.leaf, feature.subleaf);
    return (part(answer, feature.where) >> feature.bit & 1) != 0;
}

Hiding::Hiding() {
    add("rtm");
}

std::string_view Hiding::add(std::string_view names) {
    std::string_view unknown;
    for (std::size_t begin = 0; begin < names.size();) {
        const std::size_t end = std::min(names.find(',', begin), names.size());
        const std::string_view name = names.substr(begin, end - begin);
        if (!add_one(name) && unknown.empty()) unknown = name;
        begin = end + 1;
    }
    add_dependents();
    return unknown;
}

std::string Hiding::names() {
    std::string all;
    const auto append = [&](std::string_view name) {
        if (!all.empty()) all += ", ";
        all += name;
    };
    for (const StateName& state : kStateNames) append(state.name);
    for (const Feature& feature : kFeatures)
        if (can_be_hidden(feature) && std::string_view(feature.name) != "avx") append(feature.name);
    return all;
}

bool Hiding::hides(std::string_view feature) const {
    for (std::size_t i = 0; i < kFeatures.size(); ++i)
        if (kFeatures[i].name == feature) return features_[i];
    return false;
}

bool Hiding::add_one(std::string_view name) {
    bool known = false;
    for (const StateName& state : kStateNames) {
        if (state.name != name) continue;
        components_ |= state.components;
        known = true;
    }
    for (std::size_t i = 0; i < kFeatures.size(); ++i) {
        if (kFeatures[i].name != name || !can_be_hidden(kFeatures[i])) continue;
        features_.set(i);
        known = true;
    }
    return known;
}

// A component needs the features through which programs use it: AVX-512 needs AVX, and all
// components except x87 and SSE need OSXSAVE.
void Hiding::add_dependents() {
    const auto hide_state = [this](std::string_view without, Components components) {
        if (hides(without)) components_ |= components;
    };
    for (std::size_t i = 0; i < kFeatures.size(); ++i) {
        const Feature& feature = kFeatures[i];
        if ((feature.needs & components_) != 0 ||
            (feature.parent != nullptr && hides(feature.parent)))
            features_.set(i);
    }
    const Components before = components_;
    hide_state("osxsave", ~kX87AndSse);
    hide_state("avx", kAvxState | kAvx512State);
    hide_state("ospke", kPkruState);
    if (components_ != before) add_dependents();
}

CpuidAnswer Hiding::without_features(std::uint32_t leaf, std::uint32_t subleaf,
                                     const CpuidAnswer& answer) const {
    if (is_whole_leaf_hidden(leaf)) return {};
    CpuidAnswer shown = answer;
    for (const HiddenBits& hidden : kHiddenBits)
        if (hidden.leaf == leaf && hidden.subleaf == subleaf) shown = without(shown, hidden.bits);
    for (std::size_t i = 0; i < kFeatures.size(); ++i) {
        const Feature& feature = kFeatures[i];
        if (features_[i] && feature.leaf == leaf &&
            (!has_subleaves(leaf) || feature.subleaf == subleaf))
            part(shown, feature.where) &= ~flag(feature.bit);
    }
    return shown;
}

Hidden Hiding::found_in(const Cpuid& processor, Components xcr0) const {
    constexpr Components kDecoded = kKeptState | kMpxState | kTileState | kLwpState;
    Hidden most = Hidden::kNothing;
    if (xcr0 & components_) most = Hidden::kState;
    if (xcr0 & ~kDecoded) return Hidden::kInstructions;
    for (const HiddenBits& hidden : kHiddenBits) {
        if (hidden.kind <= most || !has_leaf(hidden.leaf, processor)) continue;
        const CpuidAnswer answer = processor(hidden.leaf, hidden.subleaf);
        if (without(answer, hidden.bits) != answer) most = hidden.kind;
    }
    if (most != Hidden::kNothing) return most;
    for (std::size_t i = 0; i < kFeatures.size(); ++i)
        if (features_[i] && has_feature(kFeatures[i], processor)) return Hidden::kState;
    return most;
}

}  // namespace assay::native
