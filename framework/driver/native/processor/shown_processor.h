// The processor that a program is shown: the real one without hidden features, or an x86-64 level
// (--cpu=). All questions about the processor are answered here. So CPUID, XGETBV, the auxiliary
// vector, signal frames and ptrace(2) agree, and instructions behave accordingly.
#pragma once

#include "framework/driver/native/processor/features.h"
#include "framework/x86/instruction.h"

namespace assay::native {

// The answers of the machine and its kernel.
struct RealProcessor {
    Cpuid cpuid;
    Components xcr0 = kX87AndSse;  // the components that the kernel has enabled
    // Entries of the auxiliary vector. AT_MINSIGSTKSZ is 0 before Linux 5.14.
    std::uint64_t hwcap = 0, hwcap2 = 0, signal_stack = 0;

    // The processor that this code runs on.
    static RealProcessor own();
    // True if the kernel allows rdfsbase, wrfsbase, rdgsbase and wrgsbase: since Linux 5.9, except
    // with nofsgsbase (arch/x86/include/uapi/asm/hwcap2.h).
    bool allows_base_instructions() const { return (hwcap2 & 2) != 0; }
};

// The place of a component in XSAVE's area (SDM volume 1, 13.5). All 0 if the processor lacks it.
struct StateComponent {
    std::uint32_t bytes = 0, offset = 0;  // the offset in the standard format
    bool is_supervisor = false, is_aligned = false;
};

class ShownProcessor {
  public:
    ShownProcessor(RealProcessor real, trace::CpuLevel level, Hiding hiding = Hiding());

    // The first feature that the level needs and the processor lacks, or "".
    std::string missing() const;
    // A feature that the driver needs and the processor lacks, or "".
    std::string missing_for_driver() const;

    // --- What the program sees.

    CpuidAnswer cpuid(std::uint32_t leaf, std::uint32_t subleaf) const;
    bool has_xgetbv_of_used() const { return has("xgetbv1"); }
    Components xcr0() const { return xcr0_; }
    // Registers in signal frames and for tracers. Without XSAVE the size is FXSAVE's.
    Components frame_components() const { return frame_components_; }
    std::size_t frame_bytes() const { return frame_bytes_; }
    bool has_protection_keys() const { return (frame_components_ & kPkruState) != 0; }
    // Entries of the auxiliary vector.
    std::uint64_t hwcap() const;
    std::uint64_t hwcap2() const;
    // AT_MINSIGSTKSZ; 0 if the kernel has no such entry.
    std::uint64_t signal_stack() const;
    // True if the program is told of the vDSO. ld.so searches its code for functions, and this code
    // differs between kernels. At a level libc makes system calls instead.
    bool has_vdso() const { return level_ == trace::CpuLevel::kHost; }

    // --- The driver's work for that.

    // True if the driver has to emulate cpuid and xgetbv.
    bool emulates_identification() const { return emulates_identification_; }
    // True if the driver has to limit edx:eax of xsave and its relatives to xcr0(), because the
    // real XCR0 has more components.
    bool limits_state() const { return (real_.xcr0 & ~xcr0_) != 0; }
    bool allows_base_instructions() const { return allows_base_instructions_; }
    // False if the instruction is undefined on the shown processor but defined on others.
    bool executes(const Form& form) const;
    // The name of an instruction that these bytes may be. The decoder does not know them. Null if
    // they are certainly no instruction.
    const char* newer_instruction(std::span<const std::uint8_t> code) const;

    // --- How the driver saves the program's registers.

    Saving saving() const { return saving_; }
    Components saved_components() const { return saved_components_; }
    const StateComponent& component(unsigned number) const { return components_[number]; }

    // --- For processor_report().

    const RealProcessor& real() const { return real_; }
    const Hiding& hiding() const { return hiding_; }
    bool hides_new_instructions() const { return hidden_ == Hidden::kInstructions; }
    // True if the real processor has the feature, hidden or not.
    bool really_has(const Feature& feature) const { return has_feature(feature, known_); }

  private:
    bool has_xsave() const { return has("osxsave"); }
    // True if the program is shown the feature.
    bool has(std::string_view feature) const;
    CpuidAnswer host_cpuid(std::uint32_t leaf, std::uint32_t subleaf) const;
    CpuidAnswer state_leaf(std::uint32_t subleaf, const CpuidAnswer& features) const;
    std::uint32_t area_bytes(Components components, bool compacted) const;

    static constexpr unsigned kComponents = 63;

    const RealProcessor real_;
    const trace::CpuLevel level_;
    const Hiding hiding_;
    Cpuid known_;  // the real answers that are the same on all cores, each asked for only once
    Components host_xcr0_, xcr0_;
    std::array<StateComponent, kComponents> components_{};
    Hidden hidden_;
    bool allows_base_instructions_, emulates_identification_;
    Saving saving_;
    Components saved_components_, frame_components_;
    std::size_t frame_bytes_;
};

// The processor that this process shows. Before show_processor() is called, it is the host's.
const ShownProcessor& shown_processor();
// Process::initialise() calls it once, before the program's first thread starts.
void show_processor(trace::CpuLevel level, const Hiding& hiding);

// Intel's name for the extension.
const char* name_of(ProcessorExtension extension);

// --- For bug reports: `assay --version --verbose` (report.cpp).

// The features that the real processor has and the program is not shown, separated by spaces.
std::string hidden_features(const ShownProcessor& processor);
// Lines with a name, a colon and a value.
std::string processor_report(const ShownProcessor& processor);

}  // namespace assay::native
