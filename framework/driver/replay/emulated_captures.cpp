#include "framework/driver/replay/emulated_captures.h"

#include "framework/trace/captures.h"

namespace assay::replay {

// Profilers select instructions by their opcodes of x86. All others have the opcode 0.
std::string missing_under_qemu(trace::Spec& spec, const trace::ValueLists& values,
                               const isa::Architecture& architecture) {
    const bool is_x86 = architecture.elf == isa::kX86;
    bool any_value = is_x86;
    for (unsigned flags = 0; flags < trace::kAccesses; ++flags)
        any_value |= values.find(0, flags) != nullptr;
    if (!any_value) spec.captures &= ~std::uint32_t{trace::kCaptureValues};
    using Row = trace::CaptureRow;
    return trace::not_by_qemu(spec, is_x86                  ? Row::kX86Only
                                    : architecture.describe ? Row::kKnownInstructions
                                                            : Row::kAlways);
}

}  // namespace assay::replay
