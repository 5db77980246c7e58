#include "framework/driver/native/processor/shown_processor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace assay::native {
namespace {

using trace::CpuLevel;

std::string joined(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
}

std::string or_none(const std::string& text) {
    return text.empty() ? "none" : text;
}

// The text that CPUID returns in registers, without spaces around it.
template <std::size_t kWords>
std::string text_of(const std::array<std::uint32_t, kWords>& words) {
    std::string text(reinterpret_cast<const char*>(words.data()), sizeof words);
    text.resize(std::min(text.size(), text.find('\0')));
    const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
    return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::string vendor_of(const Cpuid& cpuid) {
    const CpuidAnswer first = cpuid(0, 0);
    return text_of(std::array{first.ebx, first.edx, first.ecx});
}

// SDM volume 2, CPUID, leaf 1.
std::string model_of(const Cpuid& cpuid) {
    constexpr std::uint32_t kWithMore = 0xf, kWithModel = 6;
    const std::uint32_t signature = cpuid(1, 0).eax;
    std::uint32_t family = signature >> 8 & 0xf, model = signature >> 4 & 0xf;
    if (family == kWithMore || family == kWithModel) model |= signature >> 12 & 0xf0;
    if (family == kWithMore) family += signature >> 20 & 0xff;
    return "family " + std::to_string(family) + " model " + std::to_string(model) + " stepping " +
           std::to_string(signature & 0xf);
}

std::string brand_of(const Cpuid& cpuid) {
    constexpr std::uint32_t kFirst = kExtendedLeaves + 2, kLast = kExtendedLeaves + 4;
    if (!has_leaf(kLast, cpuid)) return "";
    std::array<CpuidAnswer, kLast - kFirst + 1> answers;
    for (std::uint32_t leaf = kFirst; leaf <= kLast; ++leaf)
        answers[leaf - kFirst] = cpuid(leaf, 0);
    return text_of(std::bit_cast<std::array<std::uint32_t, 4 * answers.size()>>(answers));
}

std::string level_of(const ShownProcessor& processor) {
    std::string highest = "below x86-64-v2";
    for (const CpuLevel level : {CpuLevel::kV2, CpuLevel::kV3, CpuLevel::kV4})
        if (ShownProcessor(processor.real(), level, processor.hiding()).missing().empty())
            highest = name_of(level);
    return highest;
}

// SDM volume 1, 13.1.
std::string names_of(Components components) {
    constexpr const char* kNames[] = {"x87",    "sse",       "avx",      "bndregs", "bndcsr",
                                      "opmask", "zmm_hi256", "hi16_zmm", "pt",      "pkru"};
    std::vector<std::string> names;
    for (unsigned number = 0; number < 64; ++number) {
        if ((components >> number & 1) == 0) continue;
        const bool known = number < std::size(kNames);
        names.push_back(known ? kNames[number] : "component " + std::to_string(number));
    }
    return joined(names);
}

const char* name_of(Saving saving) {
    if (saving == kSavedByFxsave) return "fxsave";
    return saving == kSavedIfChanged ? "xsaveopt" : "xsave";
}

}  // namespace

std::string hidden_features(const ShownProcessor& processor) {
    std::vector<std::string> names;
    for (const Feature& feature : features())
        if (processor.hiding().hides(feature.name) && processor.really_has(feature))
            names.emplace_back(feature.name);
    if (processor.hides_new_instructions()) names.emplace_back("(newer than assay)");
    return joined(names);
}

std::string processor_report(const ShownProcessor& processor) {
    const RealProcessor& real = processor.real();
    const Components hidden = real.xcr0 & ~processor.xcr0();
    return "processor: " + vendor_of(real.cpuid) + ", " + model_of(real.cpuid) + ", " +
           brand_of(real.cpuid) + "\nlevel: " + level_of(processor) +
           "\nstate shown: " + names_of(processor.xcr0()) +
           "\nstate hidden: " + or_none(names_of(hidden)) +
           "\nfeatures hidden: " + or_none(hidden_features(processor)) +
           "\nregisters saved with: " + name_of(processor.saving()) +
           "\nframes of signals: " + std::to_string(processor.frame_bytes()) +
           " bytes of registers, AT_MINSIGSTKSZ " + std::to_string(processor.signal_stack()) +
           "\nwrfsbase: " + (processor.allows_base_instructions() ? "allowed" : "not allowed") +
           '\n';
}

}  // namespace assay::native
