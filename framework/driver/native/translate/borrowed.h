// Registers for code at the end of a block: dead ones, as far as there are any.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/machine/context.h"

namespace assay::native {

class Borrowed {
  public:
    Borrowed(Assembler& code, GprMask live, unsigned count) : code_(code), count_(count) {
        for (unsigned i = 0; i < count_; ++i) {
            const auto rest = static_cast<GprMask>(~(bit(RSP) | taken_));
            const auto dead = static_cast<GprMask>(rest & ~live);
            // Low numbers need no prefix. High ones hold what lives long, and waiting for their
            // values when they are loaded again delays least.
            regs_[i] = dead != 0 ? static_cast<unsigned>(__builtin_ctz(dead))
                                 : 31U - static_cast<unsigned>(__builtin_clz(rest));
            taken_ |= bit(regs_[i]);
            if (dead != 0) continue;
            code_.store_context(slot(regs_[i]), regs_[i]);
            saved_ |= bit(regs_[i]);
        }
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() {
        for (unsigned i = 0; i < count_; ++i)
            if (saved_ & bit(regs_[i])) code_.load_context(regs_[i], slot(regs_[i]));
    }

    std::uint8_t operator[](unsigned index) const {
        return static_cast<std::uint8_t>(regs_[index]);
    }

  private:
    static std::size_t slot(unsigned reg) { return offsetof(Context, gpr) + reg * 8U; }

    Assembler& code_;
    unsigned count_;
    unsigned regs_[2] = {};
    GprMask taken_ = 0, saved_ = 0;
};

}  // namespace assay::native
