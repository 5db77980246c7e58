// Instructions that show the program more of the processor than --cpu= allows.
#include "framework/driver/native/cpu_levels.h"
#include "framework/driver/native/emitter.h"

namespace assay::native {

// Leaves to the driver, which answers in the instruction's place.
void Emitter::emit_identification(const Instruction& instruction) {
    scratch_.give_back_all();
    Exit exit;
    exit.kind = ExitKind::kIdentify;
    exit.block = block_index_;
    exit.target = instruction.pc;
    emit_exit_id(hot_, add_exit(exit));
    hot_.jump(cache_.exit_thunk());
    output_->exits.back().stub = hot_.address;
}

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
