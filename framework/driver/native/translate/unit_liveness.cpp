// Finds the live registers and arithmetic flags of a unit, and code that reads a flag that it has
// not written.
#include "framework/driver/native/translate/unit_plan.h"

#include "framework/driver/native/translate/captures.h"

#include <Zydis/Zydis.h>

namespace assay::native {
namespace {

constexpr unsigned kBranches = 2;  // how many branches the search for live values follows
constexpr Live kEverything{kArithmeticFlags, kAllGprs};

}  // namespace

bool Planner::reads_flags(std::uint64_t pc, unsigned limit) {
    if (const bool* known = reads_flags_.find(pc)) return *known;
    const bool answer = reads(kArithmeticFlags, pc, limit);
    reads_flags_.set(pc, answer);
    return answer;
}

bool Planner::reads(std::uint16_t pending, std::uint64_t pc, unsigned limit) {
    constexpr unsigned kBranchShare = 4;  // each side of a branch gets this part of the limit
    for (unsigned i = 0; i < limit; ++i) {
        if (is_changeable(pc)) return true;
        Instruction instruction;
        const auto code = memory_.code_at(pc);
        if (code.empty() || !decoder_.decode(code, pc, instruction)) return false;
        if (instruction.form->flags_read & pending) return true;
        pending &= static_cast<std::uint16_t>(~instruction.flags_killed());
        if (pending == 0) return false;
        switch (instruction.form->flow) {
            case Flow::kNone:
            case Flow::kSyscall:
            case Flow::kMarker:
                pc = instruction.next_pc();
                break;
            case Flow::kJump:
                pc = instruction.target();
                break;
            case Flow::kConditional:
                return reads(pending, instruction.target(), limit / kBranchShare) ||
                       reads(pending, instruction.next_pc(), limit / kBranchShare);
            default:  // includes calls and returns
                return flags_cross_calls_;
        }
    }
    return false;
}

// True if the instruction relies on flags that calls and returns otherwise may change:
// - a call whose continuation reads flags. Such calls hardly ever run, because most are calls of
//   functions that never return, followed by other code.
// - popf and iretq, which restore flags for code that may read them. Go's runtime does so after a
//   signal that interrupts a goroutine anywhere (asyncPreempt).
bool Planner::relies_on_flags(const Instruction& instruction) {
    constexpr unsigned kLookAhead = 128;
    if (flags_cross_calls()) return false;
    const Form& form = *instruction.form;
    if (form.mnemonic == ZYDIS_MNEMONIC_POPF || form.mnemonic == ZYDIS_MNEMONIC_POPFQ ||
        form.flow == Flow::kInterruptReturn)
        return true;
    return (form.flow == Flow::kCall || form.flow == Flow::kCallIndirect) &&
           memory_.find(instruction.next_pc()) != nullptr &&
           reads_flags(instruction.next_pc(), kLookAhead);
}

bool Planner::must_keep_flags(std::uint64_t pc) {
    if (flags_cross_calls()) return false;
    Instruction instruction;
    const auto code = memory_.code_at(pc);
    return !code.empty() && decoder_.decode(code, pc, instruction) && relies_on_flags(instruction);
}

// The live values after `last`. `continuation`: those at its continuation without a taken branch,
// if known.
Live Planner::live_after(const Instruction& last, unsigned branches,
                         const std::optional<Live>& continuation) {
    const Live all_but_flags{flags_across_calls(), kAllGprs};
    if (is_changeable(last.pc)) return kEverything;
    const auto going_on_at = [&](std::uint64_t pc) {
        return continuation ? *continuation : live_at(pc, branches);
    };
    switch (last.form->flow) {
        case Flow::kNone:
            return going_on_at(last.next_pc());
        case Flow::kJump:
            return going_on_at(last.target());
        case Flow::kConditional:
            return live_at(last.target(), branches) | going_on_at(last.next_pc());
        case Flow::kCall: {
            const Live callee = going_on_at(last.target());
            return {static_cast<std::uint16_t>(callee.flags | flags_across_calls()), callee.gprs};
        }
        case Flow::kCallIndirect:
        case Flow::kReturn:
            return all_but_flags;
        case Flow::kJumpIndirect:
            return last.form->rip_relative ? all_but_flags : kEverything;
        default:
            return kEverything;
    }
}

// The values that the code at `pc` may read before it writes them. Looks at the next instructions,
// and follows up to `branches` branches, conditional ones to both sides. The answer for an address
// stays the same until the code is forgotten, because recovery relies on it.
Live Planner::live_at(std::uint64_t pc, unsigned branches) {
    // When it is executed, it may have changed, and read more.
    if (is_changeable(pc)) return kEverything;
    if (const Live* known = live_.find(pc)) return *known;
    const std::uint64_t start = pc;
    constexpr unsigned kLookAhead = 16;
    Live pending = kEverything;
    Live live{0, 0};
    for (unsigned i = 0; i < kLookAhead; ++i) {
        Instruction instruction;
        const auto code = memory_.code_at(pc);
        if (code.empty() || !decoder_.decode(code, pc, instruction)) break;
        const Form& form = *instruction.form;
        const ValueRegisters captured = Captures::read(trace_, form);
        const auto read = static_cast<GprMask>(form.reads | captured.before);
        live = live | (pending & Live{form.flags_read, read});
        pending.flags &= static_cast<std::uint16_t>(~instruction.flags_killed());
        pending.gprs &= static_cast<GprMask>(~form.kills);
        live.gprs |= pending.gprs & captured.behind;
        if (form.flow == Flow::kNone) {
            pc = instruction.next_pc();
            continue;
        }
        if (form.flow == Flow::kJump) {
            pc = instruction.target();
            continue;
        }
        if (branches > 0) pending = pending & live_after(instruction, branches - 1, std::nullopt);
        break;
    }
    live = live | pending;
    live_.set(start, live);
    return live;
}

void Planner::analyse_block(UnitPlan& plan, std::size_t index) {
    PlannedBlock& block = plan.blocks[index];
    if (wants_one_place(plan, index) && analyse_backwards(plan, block, kEverything)) return;
    std::optional<Live> continuation;
    if (block.chained && !block.goes_on_taken) {
        const unsigned next = plan.blocks[index + 1].first;
        continuation = Live{plan.flags_live[next], plan.gprs_live[next]};
    }
    const Instruction& last = plan.instructions[block.first + block.count - 1U];
    Live live = live_after(last, kBranches, continuation);
    if (plan.counts_at_exits || (plan.collects() && Captures::need_live_on_ways(trace_.spec())))
        analyse_ends(block, last, continuation, live);
    analyse_backwards(plan, block, live);
}

// True if the block gets only instrumentation that needs one place where the flags are dead. Most
// blocks have such a place. It then needs no search for the live values at its end, which would
// take as long as all other planning.
bool Planner::wants_one_place(const UnitPlan& plan, std::size_t index) const {
    const trace::Spec& spec = trace_.spec();
    const bool landing = plan.landing && index == 0;  // also checks registers
    return Captures::one_place_will_do(spec) && spec.interval == 0 && !landing &&
           !plan.blocks[index].has_gate() && !looks_for_left() && !plan.counts_at_exits;
}

// `live`: at the end of the block. Returns true if the flags are dead at some place in it.
bool Planner::analyse_backwards(UnitPlan& plan, const PlannedBlock& block, Live live) const {
    bool any_dead = false;
    // Generated code may rely on faults: the handler can go on elsewhere with any register
    // (implicit null checks of Java).
    const bool generated = is_changeable(block.pc);
    for (unsigned i = block.first + block.count; i-- > block.first;) {
        const Instruction& instruction = plan.instructions[i];
        const Form& form = *instruction.form;
        live.flags &= static_cast<std::uint16_t>(~instruction.flags_killed());
        const ValueRegisters captured = Captures::read(trace_, form);
        live.gprs |= captured.behind;
        live.gprs &= static_cast<GprMask>(~form.kills);
        live = live | Live{form.flags_read, static_cast<GprMask>(form.reads | captured.before)};
        plan.flags_live[i] = live.flags;
        plan.gprs_live[i] = generated ? kAllGprs : live.gprs;
        any_dead = any_dead || live.flags == 0;
    }
    return any_dead;
}

// Sets the live values of both ways of a conditional branch. `live`: those of both together.
void Planner::analyse_ends(PlannedBlock& block, const Instruction& last,
                           const std::optional<Live>& continuation, const Live& live) {
    block.live_if_taken = block.live_otherwise = live;
    if (last.form->flow != Flow::kConditional || is_changeable(last.pc)) return;
    block.live_if_taken = live_at(last.target(), kBranches);
    block.live_otherwise = continuation ? *continuation : live_at(last.next_pc(), kBranches);
}

}  // namespace assay::native
