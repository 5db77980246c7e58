// Code sequences that the emitter and the code cache share: saving flags, and counting instructions
// down.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/machine/context.h"

namespace assay::native {

// Saves the arithmetic flags in rax. Saves rax in the context unless it is free.
inline void save_flags(Assembler& code, bool rax_free) {
    if (!rax_free) code.store_context(offsetof(Context, flags_rax), RAX);
    code.u8(0x9f);  // lahf
    code.u8(0x0f);  // seto al
    code.u8(0x90);
    code.u8(0xc0);
}

inline void restore_flags(Assembler& code, bool rax_free) {
    code.u8(0x04);  // add al, 0x7f: sets the overflow flag if al is 1
    code.u8(0x7f);
    code.u8(0x9e);  // sahf
    if (!rax_free) code.load_context(RAX, offsetof(Context, flags_rax));
}

// Saves the flags if they are live. Each path of the following code must restore() them.
class KeptFlags {
  public:
    KeptFlags(Assembler& code, bool live, bool rax_free) : live_(live), rax_free_(rax_free) {
        if (live) save_flags(code, rax_free);
    }
    void restore(Assembler& code) const {
        if (live_) restore_flags(code, rax_free_);
    }

  private:
    const bool live_, rax_free_;
};

// Subtracts from a 64-bit field of the context. Changes flags; the sign flag is that of the result.
inline void count_down(Assembler& code, std::size_t field, int instructions) {
    const bool small = instructions == static_cast<std::int8_t>(instructions);
    code.with_context_again(small ? kGroup1Byte : kGroup1, kSubtract, field, true, small ? 1 : 4);
    if (small)
        code.u8(static_cast<std::uint8_t>(instructions));
    else
        code.u32(static_cast<std::uint32_t>(instructions));
}

}  // namespace assay::native
