#include "framework/driver/native/translate/control_flow.h"

namespace assay::native {
namespace {

constexpr std::size_t kPredictor = offsetof(Context, predictor);
constexpr std::size_t kHistory = kPredictor + offsetof(Predictor, history);
constexpr std::size_t kNextStates = kPredictor + offsetof(Predictor, next_states);

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

bool two_are_dead(GprMask live) {
    return __builtin_popcount(static_cast<GprMask>(~(live | bit(RSP)))) >= 2;
}

}  // namespace

// --- Records of branches.

bool Branches::captures(unsigned which) const {
    return plan_.collects() && (spec_.captures & trace::kCaptureBranches) &&
           (spec_.branches & which);
}

// The site stands for both ways of a conditional branch: `aux` tells them apart.
void Branches::record(std::uint32_t site, std::uint64_t target, bool taken, Live live) {
    const Borrowed regs(hot_, live.gprs, 2);
    const unsigned cursor = regs[0], value = regs[1];
    const auto base = static_cast<std::uint8_t>(cursor);
    hot_.load_context(cursor, kCursorOffset);
    hot_.load_address(value, target);
    writer_.append(hot_, cursor, value, site, taken ? 1 : 0);
    hot_.lea(cursor, Address{base, kNoGpr, 1, kRecordBytes});
    hot_.store_context(kCursorOffset, cursor);
}

// Within an indirect branch or return.
void Branches::record_target(unsigned position, unsigned which) {
    if (!captures(which)) return;
    writer_.record_by_rax(writer_.new_site(position, 0, TRACE_SITE_BRANCH, 0), RCX, 1);
}

// --- Predictions.

bool Predictions::wanted() const {
    return plan_.collects() && (spec_.captures & trace::kCapturePredictions);
}

// One register is enough, but two make it faster. Arithmetic where flags are dead, else moves.
void Predictions::conditional(const Instruction& branch, bool taken, Live live) {
    const bool two = live.flags != 0 || two_are_dead(live.gprs);
    const Borrowed regs(hot_, live.gprs, two ? 2 : 1);
    const std::uint8_t history = regs[0], state = regs[two ? 1 : 0];
    const auto outcome = taken ? static_cast<std::int32_t>(taken_bit(spec_.predictor)) : 0;
    std::size_t counter =
        kPredictor + offsetof(Predictor, counters) + first_counter(spec_.predictor, branch.pc);
    // The carry says whether the counter is below its extreme, or there.
    const unsigned extreme = taken ? kSurelyTaken : 1, added = taken ? 0 : 0xff;
    hot_.with_context_again(kLoad, state, kHistory, false);
    if (two) hot_.zero_extend(history, state, 1);
    hot_.lea(state, Address{state, state, 1, outcome}, false);
    hot_.with_context_again(kStore, state, kHistory, false);
    if (!two) {
        // Half of the outcome's bit is left, which is none of the history's.
        hot_.shift_right_by_one(history);
        hot_.zero_extend(history, history, 1);
        counter -= static_cast<std::size_t>(outcome / 2);
        hot_.group1_context_byte(kCompare, counter, history, extreme);
        hot_.group1_context_byte(kAddCarry, counter, history, added);
        hot_.load_context_byte(state, counter, history);
    } else {
        hot_.load_context_byte(state, counter, history);
        if (live.flags == 0) {
            hot_.group1_byte(kCompare, state, extreme);
            hot_.group1_byte(kAddCarry, state, added);
        } else {
            hot_.load_context_byte(state, kNextStates + (taken ? kCounterStates : 0), state);
        }
        hot_.store_context_byte(counter, state, history);
    }
    if (live.flags == 0) {
        hot_.with_context_indexed(kGroup1Byte, kAdd, writer_.counter(), state, 8);
        hot_.u8(1);
        return;
    }
    hot_.with_context_indexed(kLoad, history, writer_.counter(), state, 8);
    hot_.lea(history, Address{history, kNoGpr, 1, 1});
    hot_.with_context_indexed(kStore, history, writer_.counter(), state, 8);
}

// Within an indirect branch, as Calls::record_flow(): its target is in rcx, rax is free.
void Predictions::indirect(const Instruction& branch, unsigned position) {
    const bool flags_live = plan_.flags_live[position] != 0;
    const std::size_t entry = kPredictor + offsetof(Predictor, targets) +
                              target_entry(spec_.predictor, branch.pc) * sizeof(std::uint64_t);
    if (flags_live) {
        save_flags(hot_, true);
        hot_.store_context(offsetof(Context, flags_rax), RAX);
    }
    hot_.load_address(RAX, 0);
    hot_.with_context(kCompareMemory, RCX, entry);
    hot_.store_context(entry, RCX);
    hot_.set_if(kNotEqual, RAX);
    hot_.with_context_indexed(kGroup1Byte, kAdd, writer_.counter(), RAX, 8);
    hot_.u8(1);
    if (flags_live) {
        hot_.load_context(RAX, offsetof(Context, flags_rax));
        restore_flags(hot_, true);
    }
}

// --- Calls.

// The stack pointer as it is there, before a call or behind another instruction.
void Calls::record_stack_pointer(unsigned position, unsigned kind) {
    const GprMask changed = plan_.instructions[position].form->writes;
    const unsigned cursor = scratch_.cursor(changed, position);
    writer_.append(hot_, cursor, RSP, writer_.new_site(position, 0, kind, 0));
    hot_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
}

// Within an indirect branch: rax, whose value waits in the context, is free, and no register is
// borrowed.
void Calls::record_flow(unsigned position, unsigned kind, unsigned value) {
    if (!plan_.collects() || !(spec_.captures & trace::kCaptureCalls)) return;
    writer_.record_by_rax(writer_.new_site(position, 0, kind, 0), value);
}

}  // namespace assay::native
