#include "framework/driver/native/processor/shown_processor.h"

#include "framework/driver/native/processor/features.h"

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace assay::native {
namespace {

using trace::CpuLevel;

constexpr std::uint32_t kLegacyAndHeader = 576;
constexpr std::uint32_t kLargestWithAvx512 = 2688;  // on Intel's processors

CpuidAnswer own_cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
    CpuidAnswer answer;
    __cpuid_count(leaf, subleaf, answer.eax, answer.ebx, answer.ecx, answer.edx);
    return answer;
}

// Without OSXSAVE xgetbv is undefined (SDM volume 2, CPUID).
Components own_xcr0() {
    constexpr std::uint32_t kOsXsave = 1U << 27;
    if ((own_cpuid(1, 0).ecx & kOsXsave) == 0) return kX87AndSse;
    std::uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

// The kernel's value: getauxval(3) returns glibc's value for AT_HWCAP.
std::uint64_t own_hwcap() {
    std::array<Elf64_auxv_t, 64> vector{};
    const int file = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = read(file, vector.data(), sizeof vector);
    if (file >= 0) close(file);
    const auto found = std::find_if(vector.begin(), vector.end(), [](const Elf64_auxv_t& entry) {
        return entry.a_type == AT_HWCAP;
    });
    return bytes > 0 && found != vector.end() ? found->a_un.a_val : own_cpuid(1, 0).edx;
}

// Asks for each answer only once, because CPUID takes microseconds in a virtual machine.
Cpuid remembering(const Cpuid& cpuid) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, CpuidAnswer> answers;
    return [=](std::uint32_t leaf, std::uint32_t subleaf) mutable {
        const auto [found, is_new] = answers.try_emplace({leaf, subleaf});
        if (is_new) found->second = cpuid(leaf, subleaf);
        return found->second;
    };
}

const Feature& feature_called(std::string_view name) {
    return *std::find_if(features().begin(), features().end(),
                         [name](const Feature& feature) { return feature.name == name; });
}

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// arch/x86/kernel/signal.c, init_sigframe_size(), with CONFIG_IA32_EMULATION. kRest is the size of
// the largest frame without the registers and the mark at their end.
std::uint64_t signal_stack_for(std::size_t frame_bytes) {
    constexpr std::uint64_t kRest = 928, kEndMark = 4, kUnit = 16;
    return round_up(kRest + frame_bytes + (frame_bytes > kLegacyBytes ? kEndMark : 0), kUnit);
}

}  // namespace

RealProcessor RealProcessor::own() {
    return {.cpuid = own_cpuid,
            .xcr0 = own_xcr0(),
            .hwcap = own_hwcap(),
            .hwcap2 = getauxval(AT_HWCAP2),
            .signal_stack = getauxval(AT_MINSIGSTKSZ)};
}

ShownProcessor::ShownProcessor(RealProcessor real, CpuLevel level, Hiding hiding)
    : real_(std::move(real)),
      level_(level),
      hiding_(hiding),
      known_(remembering(real_.cpuid)),
      host_xcr0_(real_.xcr0 & ~hiding_.components()),
      xcr0_(level == CpuLevel::kHost ? host_xcr0_ : level_xcr0(level)),
      hidden_(hiding_.found_in(known_, real_.xcr0)),
      allows_base_instructions_(real_.allows_base_instructions() && !hiding_.hides("fsgsbase")),
      emulates_identification_(level != CpuLevel::kHost || hidden_ != Hidden::kNothing) {
    if (has_leaf(kStateLeaf, known_)) {
        const CpuidAnswer user = known_(kStateLeaf, 0), more = known_(kStateLeaf, 1);
        const Components known = Components{user.edx | more.edx} << 32 | user.eax | more.ecx;
        for (unsigned number = 2; number < kComponents; ++number) {
            if ((known >> number & 1) == 0) continue;
            const CpuidAnswer found = known_(kStateLeaf, number);
            components_[number] = {found.eax, found.ebx, (found.ecx & 1) != 0,
                                   (found.ecx & 2) != 0};
        }
    }
    const bool can_xsave =
        has_feature(feature_called("osxsave"), known_) && !hiding_.hides("osxsave");
    const bool can_xsaveopt =
        has_feature(feature_called("xsaveopt"), known_) && !hiding_.hides("xsaveopt");
    saving_ = !can_xsave ? kSavedByFxsave : can_xsaveopt ? kSavedIfChanged : kSavedPlainly;
    saved_components_ = host_xcr0_ & ~kPkruState;
    // If Linux was started with nopku, XCR0 may have PKRU although its instructions are undefined.
    Components usable = host_xcr0_;
    if (!has_feature(feature_called("ospke"), known_)) usable &= ~kPkruState;
    frame_components_ = usable & xcr0_;
    frame_bytes_ = has_xsave() ? area_bytes(frame_components_, false) : kLegacyBytes;
}

std::string ShownProcessor::missing() const {
    if (level_ == CpuLevel::kHost) return {};
    for (const Feature& feature : features())
        if (feature.since <= level_ &&
            (hiding_.hides(feature.name) || !has_feature(feature, known_)))
            return feature.name;
    const Components wanted = level_ >= CpuLevel::kV3 ? xcr0_ : 0;
    if ((host_xcr0_ & wanted) == wanted) return {};
    return host_xcr0_ & kAvxState ? "AVX-512 state, which the system has not enabled"
                                  : "AVX state, which the system has not enabled";
}

// Translated code saves flags with lahf.
std::string ShownProcessor::missing_for_driver() const {
    const Feature& needed = feature_called("lahf_lm");
    return has_feature(needed, known_) ? "" : needed.name;
}

bool ShownProcessor::has(std::string_view name) const {
    const Feature& feature = feature_called(name);
    if (level_ != CpuLevel::kHost) return feature.since <= level_;
    return !hiding_.hides(name) && has_feature(feature, known_);
}

// --- CPUID.

CpuidAnswer ShownProcessor::cpuid(std::uint32_t leaf, std::uint32_t subleaf) const {
    if (level_ == CpuLevel::kHost) return host_cpuid(leaf, subleaf);
    const CpuidAnswer answer = level_cpuid(level_, leaf, subleaf);
    return level_leaf(leaf) == kStateLeaf ? state_leaf(subleaf, answer) : answer;
}

// Beyond the last leaf, Intel's processors repeat the highest basic leaf, with hidden features.
CpuidAnswer ShownProcessor::host_cpuid(std::uint32_t leaf, std::uint32_t subleaf) const {
    const CpuidAnswer answer = real_.cpuid(leaf, subleaf);
    if (!has_leaf(leaf, known_)) {
        const std::uint32_t last = known_(0, 0).eax;
        const bool repeats = leaf != last && answer == real_.cpuid(last, subleaf);
        return repeats ? host_cpuid(last, subleaf) : answer;
    }
    const CpuidAnswer shown = hiding_.without_features(leaf, subleaf, answer);
    return leaf == kStateLeaf && hidden_ != Hidden::kNothing ? state_leaf(subleaf, shown) : shown;
}

// SDM volume 2, CPUID. `features` is the answer without hidden features; subleaf 1 keeps its eax.
//
// The sizes are those of the shown components, as with an IA32_XSS of 0. At a level the sizes are
// the same on all processors, like the addresses in signal frames. The offset of AVX-512 is the
// real one, because XSAVE uses it: Intel's processors leave a gap for MPX before it.
CpuidAnswer ShownProcessor::state_leaf(std::uint32_t subleaf, const CpuidAnswer& features) const {
    if (!has_xsave()) return {};
    const bool is_host = level_ == CpuLevel::kHost;
    const bool compacts = has("xsavec"), has_supervisor = is_host && has("xsaves");
    const CpuidAnswer& all = known_(kStateLeaf, 0);
    const Components supported =
        is_host ? (Components{all.edx} << 32 | all.eax) & ~hiding_.components() : xcr0_;
    if (subleaf == 0)
        return {static_cast<std::uint32_t>(supported), area_bytes(xcr0_, false),
                area_bytes(supported, false), static_cast<std::uint32_t>(supported >> 32)};
    if (subleaf == 1)
        return {features.eax, compacts ? area_bytes(xcr0_, true) : 0,
                has_supervisor ? features.ecx : 0, has_supervisor ? features.edx : 0};
    if (subleaf >= kComponents) return {};
    const StateComponent& found = components_[subleaf];
    const bool is_shown = found.is_supervisor ? has_supervisor : (supported >> subleaf & 1) != 0;
    return is_shown ? known_(kStateLeaf, subleaf) : CpuidAnswer{};
}

std::uint32_t ShownProcessor::area_bytes(Components components, bool compacted) const {
    std::uint32_t end = kLegacyAndHeader;
    for (unsigned number = 2; number < kComponents; ++number) {
        const StateComponent& found = components_[number];
        if ((components >> number & 1) == 0 || found.bytes == 0) continue;
        if (compacted && found.is_aligned) end = static_cast<std::uint32_t>(round_up(end, 64));
        end = compacted ? end + found.bytes : std::max(end, found.offset + found.bytes);
    }
    if (!compacted && level_ == CpuLevel::kV4) end = std::max(end, kLargestWithAvx512);
    return end;
}

// --- The auxiliary vector.

std::uint64_t ShownProcessor::hwcap() const {
    return level_ == CpuLevel::kHost ? real_.hwcap : level_cpuid(level_, 1, 0).edx;
}

std::uint64_t ShownProcessor::hwcap2() const {
    constexpr std::uint64_t kFsGsBase = 2;
    if (level_ != CpuLevel::kHost) return 0;  // no level has FSGSBASE
    return allows_base_instructions_ ? real_.hwcap2 : real_.hwcap2 & ~kFsGsBase;
}

// A kernel with another configuration adds another size than signal_stack_for().
std::uint64_t ShownProcessor::signal_stack() const {
    if (level_ != CpuLevel::kHost) return signal_stack_for(frame_bytes_);
    if (real_.signal_stack == 0 || real_.xcr0 == xcr0_) return real_.signal_stack;
    const std::size_t real_bytes = area_bytes(real_.xcr0, false);
    if (signal_stack_for(real_bytes) == real_.signal_stack) return signal_stack_for(frame_bytes_);
    return round_up(real_.signal_stack - real_bytes + frame_bytes_, 16);
}

// --- Instructions.

// RTM: SDM volume 2, CPUID, leaf 7. AMX: exception class AMX-E1, undefined unless both components
// are enabled. No level has RTM or AMX.
bool ShownProcessor::executes(const Form& form) const {
    if ((form.reads_base || form.sets_base) && !allows_base_instructions_) return false;
    const bool needs_xsave =
        form.processor_use == ProcessorUse::kSaveState || form.mnemonic == ZYDIS_MNEMONIC_XGETBV;
    if (needs_xsave && !has_xsave()) return false;
    if (form.extension == ProcessorExtension::kNone) return true;
    if (level_ != CpuLevel::kHost) return false;
    return form.extension == ProcessorExtension::kTransactions
               ? really_has(feature_called("rtm"))
               : (real_.xcr0 & kTileState) == kTileState;
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

// APX Architecture Specification: REX2 is the last prefix, and map 4 of EVEX is APX's. Both are
// undefined unless XCR0 has APX's component.
const char* ShownProcessor::newer_instruction(std::span<const std::uint8_t> code) const {
    constexpr std::array<std::uint8_t, 11> kLegacyPrefixes{0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e,
                                                           0x36, 0x3e, 0x26, 0x64, 0x65};
    constexpr std::uint8_t kRex2 = 0xd5, kEvex = 0x62, kMap = 7, kApxMap = 4;
    const auto first = std::find_if(code.begin(), code.end(), [&](std::uint8_t byte) {
        return std::find(kLegacyPrefixes.begin(), kLegacyPrefixes.end(), byte) ==
               kLegacyPrefixes.end();
    });
    const auto left = code.end() - first;
    const bool has_apx = real_.xcr0 & kApxState;
    if (left > 0 && first[0] == kRex2)
        return has_apx ? "one of APX, with the prefix REX2" : nullptr;
    if (left > 1 && first[0] == kEvex && (first[1] & kMap) == kApxMap)
        return has_apx ? "one of APX, with the prefix EVEX" : nullptr;
    if (hidden_ != Hidden::kInstructions) return nullptr;
    return "no instruction, or newer than assay: this processor has newer ones, such as APX or "
           "AVX10";
}

// --- The shown processor of this process.

namespace {
std::optional<ShownProcessor>& current() {
    static std::optional<ShownProcessor> processor;
    return processor;
}
}  // namespace

const ShownProcessor& shown_processor() {
    std::optional<ShownProcessor>& processor = current();
    if (!processor) processor.emplace(RealProcessor::own(), CpuLevel::kHost);
    return *processor;
}

void show_processor(CpuLevel level, const Hiding& hiding) {
    current().emplace(RealProcessor::own(), level, hiding);
}

}  // namespace assay::native
