// Registers that instrumentation borrows from the target within a basic block.
//
// A register is borrowed when instrumentation needs one and given back when an instruction of
// the target uses it, or at the end of the block. Its target value waits in Context::gpr; a
// register that is dead is borrowed without saving. One borrowed register may hold the trace
// cursor, so that consecutive references do not pass it through memory. All of it is mov: the
// flags are left alone.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/translate/unit_plan.h"

namespace assay::native {

// Registers for code at the end of a block: dead ones, as far as there are any.

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

class Scratch {
  public:
    struct State {
        GprMask saved = 0;  // target value in Context::gpr
        std::uint8_t cursor = kNoGpr;
    };

    Scratch(Assembler& code, const UnitPlan& plan) : code_(code), plan_(plan) {}

    void begin(const PlannedBlock& block) { end_ = block.first + block.count; }
    // A register whose value instrumentation may destroy at `position`; none of `exclude`.
    unsigned acquire(GprMask exclude, unsigned position) {
        for (unsigned reg = 0; reg < 16; ++reg)
            if (free_ & bit(reg) & ~exclude) return reg;
        const unsigned reg = choose(static_cast<GprMask>(exclude | taken() | bit(RSP)), position);
        borrow(reg, position);
        free_ |= bit(reg);
        return reg;
    }
    // The register that holds the cursor, loading it if none does. Never rax, which the flags
    // are kept in.
    unsigned cursor(GprMask exclude, unsigned position) {
        if (cursor_ != kNoGpr) return cursor_;
        const GprMask mask = static_cast<GprMask>(exclude | bit(RAX));
        const unsigned reg = acquire(mask, position);
        free_ &= static_cast<GprMask>(~bit(reg));
        cursor_ = static_cast<std::uint8_t>(reg);
        code_.load_context(reg, kCursorOffset);
        return reg;
    }
    std::uint8_t cached_cursor() const { return cursor_; }
    // Borrows this one, which is not yet.
    void take(unsigned reg, unsigned position) {
        borrow(reg, position);
        free_ |= bit(reg);
    }
    // True if the register's present value is worthless to the target.
    bool is_free(unsigned reg) const { return free_ & bit(reg); }

    // A register, neither rax nor `other`, whose value nobody needs at `position`, without
    // borrowing any; kNoGpr if there is none.
    unsigned idle(unsigned position, unsigned other = RAX) const {
        const auto dead = static_cast<GprMask>(~(plan_.gprs_live[position] | taken() | bit(RSP)));
        const auto found = static_cast<GprMask>((free_ | dead) & ~bit(RAX) & ~bit(other));
        return found == 0 ? kNoGpr : static_cast<unsigned>(__builtin_ctz(found));
    }

    // Where the target's value of a borrowed register waits, in the context.
    static std::size_t slot(unsigned reg) { return offsetof(Context, gpr) + reg * 8U; }
    bool is_borrowed(unsigned reg) const { return taken() & bit(reg); }

    // Gives back what the instruction uses. `read`: registers whose values are needed although it
    // does not read them.
    void make_way(const Instruction& instruction, GprMask read = 0) {
        const Form& form = *instruction.form;
        give_back(static_cast<GprMask>(form.reads | form.writes),
                  static_cast<GprMask>(form.reads | read));
    }
    // Those of `used` that are borrowed; the values of `read` are needed.
    void give_back(GprMask used, GprMask read = kAllGprs) {
        used &= taken();
        for (unsigned reg = 0; used != 0; ++reg, used >>= 1)
            if (used & 1) give_one_back(reg, read & bit(reg));
    }
    void give_back_all() { give_back(kAllGprs); }
    void give_cursor_back() {
        if (cursor_ != kNoGpr) give_back(bit(cursor_));
    }
    State state() const { return State{saved_, cursor_}; }

  private:
    GprMask taken() const {
        return static_cast<GprMask>(free_ | (cursor_ != kNoGpr ? bit(cursor_) : 0));
    }
    unsigned choose(GprMask exclude, unsigned position) const {
        auto candidates = static_cast<GprMask>(~exclude);
        const auto dead = static_cast<GprMask>(candidates & ~plan_.gprs_live[position]);
        if (dead) candidates = dead;
        // Of those, one that is used again as late as possible.
        for (unsigned i = position; i < end_; ++i) {
            const Form& form = *plan_.instructions[i].form;
            const auto later = static_cast<GprMask>(candidates & ~(form.reads | form.writes));
            if (later == 0) break;
            candidates = later;
        }
        // High numbers cost a REX prefix that 64-bit operations have anyway, and rax is where
        // the flags are kept.
        return 31U - static_cast<unsigned>(__builtin_clz(candidates));
    }
    void borrow(unsigned reg, unsigned position) {
        if ((plan_.gprs_live[position] & bit(reg)) == 0) return;
        code_.store_context(slot(reg), reg);
        saved_ |= bit(reg);
    }
    void give_one_back(unsigned reg, bool value_needed) {
        if (cursor_ == reg) {
            code_.store_context(kCursorOffset, reg);
            cursor_ = kNoGpr;
        }
        free_ &= static_cast<GprMask>(~bit(reg));
        if ((saved_ & bit(reg)) && value_needed) code_.load_context(reg, slot(reg));
        saved_ &= static_cast<GprMask>(~bit(reg));
    }

    Assembler& code_;
    const UnitPlan& plan_;
    unsigned end_ = 0;
    GprMask free_ = 0;  // borrowed, worthless
    GprMask saved_ = 0;
    std::uint8_t cursor_ = kNoGpr;
};

}  // namespace assay::native
