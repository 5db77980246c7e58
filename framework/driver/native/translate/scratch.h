// Registers that instrumentation borrows from the program within a basic block.
//
// A register is borrowed when instrumentation needs one. It is given back when an instruction of
// the program uses it, or at the end of the block. Its program value waits in Context::gpr; a dead
// register is not saved. One borrowed register may hold the trace cursor, so that consecutive
// references need not pass it through memory. All code is mov, and keeps the flags.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/translate/unit_plan.h"

namespace assay::native {

// Registers for code at the end of a block. Prefers dead registers.

class Borrowed {
  public:
    Borrowed(Assembler& code, GprMask live, unsigned count) : code_(code), count_(count) {
        for (unsigned i = 0; i < count_; ++i) {
            const auto rest = static_cast<GprMask>(~(bit(RSP) | taken_));
            const auto dead = static_cast<GprMask>(rest & ~live);
            // Low numbers need no prefix. Among live registers, high numbers mostly hold long-lived
            // values, so that reloading them delays least.
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
        GprMask saved = 0;  // the program's value is in Context::gpr
        std::uint8_t cursor = kNoGpr;
    };

    Scratch(Assembler& code, const UnitPlan& plan) : code_(code), plan_(plan) {}

    void begin(const PlannedBlock& block) { end_ = block.first + block.count; }
    // A register outside of `exclude` that instrumentation may change at `position`.
    unsigned acquire(GprMask exclude, unsigned position) {
        for (unsigned reg = 0; reg < 16; ++reg)
            if (free_ & bit(reg) & ~exclude) return reg;
        const unsigned reg = choose(static_cast<GprMask>(exclude | taken() | bit(RSP)), position);
        borrow(reg, position);
        free_ |= bit(reg);
        return reg;
    }
    // The register that holds the cursor. Loads the cursor if no register does. Never rax, because
    // rax keeps the flags.
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
    // Borrows this register, which must not be borrowed yet.
    void take(unsigned reg, unsigned position) {
        borrow(reg, position);
        free_ |= bit(reg);
    }
    // True if the register holds no value that the program or instrumentation needs.
    bool is_free(unsigned reg) const { return free_ & bit(reg); }

    // A register with no needed value at `position`, neither rax nor `other`. Borrows nothing;
    // kNoGpr if there is no such register.
    unsigned idle(unsigned position, unsigned other = RAX) const {
        const auto dead = static_cast<GprMask>(~(plan_.gprs_live[position] | taken() | bit(RSP)));
        const auto found = static_cast<GprMask>((free_ | dead) & ~bit(RAX) & ~bit(other));
        return found == 0 ? kNoGpr : static_cast<unsigned>(__builtin_ctz(found));
    }

    // The offset of a borrowed register's program value in the context.
    static std::size_t slot(unsigned reg) { return offsetof(Context, gpr) + reg * 8U; }
    bool is_borrowed(unsigned reg) const { return taken() & bit(reg); }

    // Gives back the registers that the instruction uses. `read`: registers whose values are also
    // needed.
    void make_way(const Instruction& instruction, GprMask read = 0) {
        const Form& form = *instruction.form;
        give_back(static_cast<GprMask>(form.reads | form.writes),
                  static_cast<GprMask>(form.reads | read));
    }
    // Gives back the borrowed registers of `used`. Restores the values of `read`.
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
        // Choose the register whose next use is latest.
        for (unsigned i = position; i < end_; ++i) {
            const Form& form = *plan_.instructions[i].form;
            const auto later = static_cast<GprMask>(candidates & ~(form.reads | form.writes));
            if (later == 0) break;
            candidates = later;
        }
        // High numbers need a REX prefix, which 64-bit operations have anyway. rax should stay free
        // for the flags.
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
    GprMask free_ = 0;  // borrowed, with no needed value
    GprMask saved_ = 0;
    std::uint8_t cursor_ = kNoGpr;
};

}  // namespace assay::native
