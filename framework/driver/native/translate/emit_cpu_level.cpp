// Saving and restoring of vector state, where --cpu= shows less of it than there is.
#include "framework/driver/native/processor/cpu_levels.h"
#include "framework/driver/native/translate/emitter.h"

namespace assay::native {

// The components saved and restored are those in edx:eax that XCR0 has enabled, and the real XCR0
// has more than the one that the program was shown: glibc always asks for all that it knows
// (sysdeps/x86/cpu-features-offsets.sym, STATE_SAVE_MASK) in an area as large as CPUID says. So
// edx:eax is limited to the level's. PEXT and PDEP with the same mask make an AND that leaves the
// flags alone; a processor for this level has them.
void Emitter::emit_state_copy(const Instruction& instruction, unsigned position) {
    if (spec_.cpu_level < trace::CpuLevel::kV3) return emit_copy(instruction, position);
    const Form& form = *instruction.form;
    if (address_registers(form.references[0]) & (bit(RAX) | bit(RDX)))
        return emit_leave(ExitKind::kUnsupported, instruction.pc);
    scratch_.take(RAX, position);
    scratch_.take(RDX, position);
    hot_.load_address(RDX, level_xcr0(spec_.cpu_level));
    constexpr std::uint8_t kPextEaxEaxEdx[] = {0xc4, 0xe2, 0x7a, 0xf5, 0xc2};
    constexpr std::uint8_t kPdepEaxEaxEdx[] = {0xc4, 0xe2, 0x7b, 0xf5, 0xc2};
    hot_.raw(kPextEaxEaxEdx, sizeof kPextEaxEaxEdx);
    hot_.raw(kPdepEaxEaxEdx, sizeof kPdepEaxEaxEdx);
    hot_.load_address(RDX, 0);
    emit_copy(instruction, position);
    scratch_.make_way(instruction);
}

}  // namespace assay::native
