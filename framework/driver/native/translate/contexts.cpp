#include "framework/driver/native/translate/contexts.h"

#include "framework/driver/native/translate/control_flow.h"
#include "framework/driver/native/translate/scratch.h"

namespace assay::native {
namespace {

constexpr std::size_t kNode = offsetof(Context, calls) + offsetof(CallState, node);
constexpr std::size_t kTop = offsetof(Context, calls) + offsetof(CallState, top);
constexpr std::size_t kEnd = offsetof(Context, calls) + offsetof(CallState, end);
constexpr std::size_t kStackLow = offsetof(Context, calls) + offsetof(CallState, stack_low);
constexpr std::size_t kSteps = offsetof(Context, calls) + offsetof(CallState, steps);
constexpr std::size_t kSpare = offsetof(Context, call_rax);
constexpr std::int32_t kFrameBytes = sizeof(CallFrame);
constexpr std::int32_t kCaller = offsetof(CallFrame, caller),
                       kAddress = offsetof(CallFrame, address);
constexpr std::int32_t kEntry = offsetof(trace::ContextNode, entry),
                       kCalls = offsetof(trace::ContextNode, calls),
                       kNext = offsetof(trace::ContextNode, next);
using trace::range_of;
constexpr auto kLast = static_cast<std::int32_t>(trace::kCodeRange - 1);

Address at(unsigned base, std::int32_t displacement) {
    return {static_cast<std::uint8_t>(base), kNoGpr, 1, displacement};
}

std::int32_t offset_of(std::uint32_t word) {
    return static_cast<std::int32_t>(trace::word_offset(word));
}

// Keep live arithmetic flags in the context. rax must be free at both calls and in between.
void keep_flags(Assembler& code, bool live) {
    if (!live) return;
    save_flags(code, true);
    code.store_context(offsetof(Context, flags_rax), RAX);
}

void take_flags_back(Assembler& code, bool live) {
    if (!live) return;
    code.load_context(RAX, offsetof(Context, flags_rax));
    restore_flags(code, true);
}

}  // namespace

std::uint64_t Contexts::range() const {
    return range_of(plan_.blocks[writer_.block_index].pc);
}

std::uint32_t Contexts::word_of_way(std::uint64_t pc, std::uint64_t target) {
    return writer_.tables.context_words().of_way(spec_, range(), pc, target);
}

std::uint64_t Contexts::emit_site(const CallSite& site) {
    cold_.align_data(alignof(CallSite));
    const std::uint64_t address = cold_.address;
    cold_.raw(&site, sizeof site);
    return address;
}

// `target`: the register that holds the target.
void Contexts::call_subroutine(CallTreeStub stub, std::uint64_t argument, unsigned target) {
    writer_.call_stub(cache_.call_tree_stub(stub), [&] {
        if (fits32(static_cast<std::int64_t>(argument))) {
            cold_.push_constant(static_cast<std::uint32_t>(argument));
        } else {
            // Puts the argument on the stack, and the target back into its register.
            cold_.push(target);
            cold_.move_imm64(target, argument);
            cold_.with_memory(0x87, target, at(RSP, 0));  // xchg
        }
        cold_.push(target);
    });
}

// --- Where the stack pointer is loaded from elsewhere.

void Contexts::behind(const Instruction& instruction, unsigned position) {
    const PlannedBlock& block = plan_.blocks[writer_.block_index];
    if (block.ends_with_position && position + 1U == block.end())
        go_to_line(instruction.form->sources[0].number);
    if (!Calls::leaves_stack(plan_, plan_.blocks[writer_.block_index], position)) return;
    scratch_.give_back_all();
    hot_.store_context(offsetof(Context, indirect_rax), RAX);
    keep_flags(hot_, true);
    hot_.with_context(kCompareMemory, RSP, kStackLow);
    const std::uint64_t below = hot_.jump_if(kBelow, hot_.address);
    hot_.load_context(RAX, kTop);
    hot_.with_memory(kCompareMemory, RSP, at(RAX, kAddress - kFrameBytes));
    const std::uint64_t above = hot_.jump_if(kAboveEqual, hot_.address);
    const std::uint64_t back = hot_.address;
    take_flags_back(hot_, true);
    hot_.load_context(RAX, offsetof(Context, indirect_rax));

    constexpr std::uint64_t kFromElsewhere = 1;
    for (const std::uint64_t jump : {below, above}) hot_.patch(jump, cold_.address);
    cold_.move_imm64(RAX, range());
    call_subroutine(kArriveStub, kFromElsewhere, RAX);
    cold_.jump(back);
}

// --- After the store of a position, from a register. The block ends there.

void Contexts::go_to_line(unsigned position) {
    scratch_.give_back_all();
    constexpr std::size_t kSaved = offsetof(Context, gpr);
    constexpr std::int32_t kFrom = offsetof(ContextStep, from),
                           kPosition = offsetof(ContextStep, position),
                           kTo = offsetof(ContextStep, to);
    unsigned free[2] = {};  // beside rax, which keep_flags() needs
    unsigned count = 0;
    for (const unsigned reg : {RCX, RDX, RSI})
        if (reg != position && count < 2) free[count++] = reg;
    // A position in rax is read from where rax waits.
    const bool in_rax = position == RAX;
    const unsigned node = free[0], hash = free[1], value = in_rax ? unsigned{RDI} : position;
    hot_.store_context(offsetof(Context, indirect_rax), RAX);
    for (const unsigned reg : {node, hash}) hot_.store_context(kSaved + reg * 8U, reg);
    if (in_rax) {
        hot_.store_context(kSaved + RDI * 8U, RDI);
        hot_.registers(kStore, RDI, RAX);
    }
    keep_flags(hot_, true);
    hot_.load_context(node, kNode);
    hot_.registers(kStore, RAX, node, false);
    hot_.shift_right(RAX, ContextStep::kNodeShift);
    hot_.registers(kStore, hash, value, false);
    hot_.registers(0xc1, hash, 4, false);  // shl
    hot_.u8(ContextStep::kPositionShift);
    hot_.registers(0x31, RAX, hash, false);  // xor
    hot_.group1(kAnd, RAX, ContextStep::kMask, false);
    hot_.with_context(kAddMemory, RAX, kSteps);
    hot_.with_memory(kCompareMemory, node, at(RAX, kFrom));
    const std::uint64_t other_node = hot_.jump_if(kNotEqual, hot_.address);
    hot_.with_memory(kCompareMemory, value, at(RAX, kPosition));
    const std::uint64_t other_position = hot_.jump_if(kNotEqual, hot_.address);
    hot_.with_memory(kLoad, node, at(RAX, kTo));
    hot_.store_context(kNode, node);
    const std::uint64_t back = hot_.address;
    take_flags_back(hot_, true);
    if (in_rax) hot_.load_context(RDI, kSaved + RDI * 8U);
    for (const unsigned reg : {node, hash}) hot_.load_context(reg, kSaved + reg * 8U);
    hot_.load_context(RAX, offsetof(Context, indirect_rax));

    for (const std::uint64_t jump : {other_node, other_position}) hot_.patch(jump, cold_.address);
    call_subroutine(kLineStub, 0, value);
    cold_.jump(back);
}

// --- Blocks.

void Contexts::at_entry(const PlannedBlock& block, Block& record) {
    const std::span instructions(plan_.instructions);
    const std::uint32_t word = writer_.tables.context_words().of_block(
        spec_, range_of(block.pc), instructions.subspan(block.first, block.count));
    writer_.set_context_word(word);
    if (writer_.trace != nullptr) writer_.tables.set_context_word(record.id, word);
}

// --- Ways out of a block.

bool Contexts::follows(const Instruction& branch, unsigned /*position*/) {
    return range_of(branch.target()) != range() || range_of(branch.next_pc()) != range();
}

void Contexts::leave(const Way& way) {
    if (way.target == 0) return;
    if (way.last.form->flow == Flow::kCall)
        call(way);
    else if (range_of(way.target) != range())
        jump(way);
}

// Writes a frame after the innermost one, for a call whose return address has been pushed.
// enter_callee() makes it the innermost frame. `top` gets its place, and `node` the present node.
// Returns the jump for the case that there is no room.
std::uint64_t Contexts::write_frame(unsigned top, unsigned node) {
    hot_.load_context(top, kTop);
    hot_.with_context(kCompareMemory, top, kEnd);
    const std::uint64_t full = hot_.jump_if(kAboveEqual, hot_.address);
    hot_.lea(node, at(RSP, 8));
    hot_.with_memory(kStore, node, at(top, kAddress));
    hot_.load_context(node, kNode);
    hot_.with_memory(kStore, node, at(top, kCaller));
    return full;
}

// Loads the node from a word of `node`. Returns the jump for the case that the word is empty.
std::uint64_t Contexts::load_next(unsigned node, std::uint32_t word) {
    hot_.with_memory(kLoad, node, at(node, offset_of(word)));
    hot_.registers(0x85, node, node);  // test
    return hot_.jump_if(kEqual, hot_.address);
}

void Contexts::enter_callee(unsigned top, unsigned node) {
    hot_.lea(top, at(top, kFrameBytes));
    hot_.store_context(kTop, top);
    hot_.store_context(kNode, node);
}

void Contexts::call(const Way& way) {
    const std::uint64_t behind = way.last.next_pc();
    const std::uint32_t word = word_of_way(way.last.pc, way.target);
    const bool flags_live = way.live.flags != 0;
    if (flags_live) hot_.store_context(offsetof(Context, indirect_rax), RAX);
    keep_flags(hot_, flags_live);
    std::uint64_t full = 0, unknown = 0;
    const std::uint64_t site =
        emit_site({way.last.pc, behind, way.target, static_cast<std::uint64_t>(offset_of(word))});
    std::uint64_t back = 0;
    {
        const Borrowed regs(hot_, way.live.gprs, 2);
        const unsigned top = regs[0], node = regs[1];
        if (word != 0 && range_of(behind) == range()) {
            full = write_frame(top, node);
            unknown = load_next(node, word);
            enter_callee(top, node);
        } else {
            unknown = hot_.jump(hot_.address);
        }
        back = hot_.address;
        for (const std::uint64_t jump : {full, unknown})
            if (jump != 0) hot_.patch(jump, cold_.address);
        cold_.load_address(node, way.target);
        call_subroutine(kCallStub, site, node);
        cold_.jump(back);
    }
    take_flags_back(hot_, flags_live);
    if (flags_live) hot_.load_context(RAX, offsetof(Context, indirect_rax));
}

void Contexts::jump(const Way& way) {
    const std::uint32_t word = word_of_way(0, range_of(way.target));
    const bool flags_live = way.live.flags != 0;
    if (flags_live) hot_.store_context(offsetof(Context, indirect_rax), RAX);
    keep_flags(hot_, flags_live);
    {
        const Borrowed regs(hot_, way.live.gprs, 1);
        const unsigned node = regs[0];
        std::uint64_t unknown = 0;
        if (word != 0) {
            hot_.load_context(node, kNode);
            unknown = load_next(node, word);
            hot_.store_context(kNode, node);
        } else {
            unknown = hot_.jump(hot_.address);
        }
        const std::uint64_t back = hot_.address;
        hot_.patch(unknown, cold_.address);
        cold_.load_address(node, way.target);
        call_subroutine(kJumpStub, static_cast<std::uint64_t>(offset_of(word)), node);
        cold_.jump(back);
    }
    take_flags_back(hot_, flags_live);
    if (flags_live) hot_.load_context(RAX, offsetof(Context, indirect_rax));
}

void Contexts::leave_indirectly(const Instruction& branch, unsigned position) {
    const bool flags_live = plan_.flags_live[position] != 0;
    keep_flags(hot_, flags_live);
    switch (branch.form->flow) {
        case Flow::kCallIndirect:
            call_indirectly(branch);
            break;
        case Flow::kJumpIndirect:
            jump_indirectly(branch);
            break;
        default:
            come_back();
    }
    take_flags_back(hot_, flags_live);
}

void Contexts::call_indirectly(const Instruction& branch) {
    constexpr std::size_t kSavedRdx = offsetof(Context, gpr) + RDX * 8;
    const std::uint64_t behind = branch.next_pc();
    const std::uint32_t word = word_of_way(branch.pc, 0);
    const std::uint64_t site =
        emit_site({branch.pc, behind, 0, static_cast<std::uint64_t>(offset_of(word))});
    std::uint64_t full = 0, unknown = 0, another = 0;
    hot_.store_context(kSavedRdx, RDX);
    if (word != 0 && range_of(behind) == range()) {
        full = write_frame(RAX, RDX);
        unknown = load_next(RDX, word);
        hot_.with_memory(kCompareMemory, RCX, at(RDX, kEntry));
        another = hot_.jump_if(kNotEqual, hot_.address);
        hot_.with_memory(kIncrement, 0, at(RDX, kCalls));
        hot_.with_memory(kLoad, RDX, at(RDX, kNext));
        enter_callee(RAX, RDX);
    } else {
        unknown = hot_.jump(hot_.address);
    }
    const std::uint64_t back = hot_.address;
    hot_.load_context(RDX, kSavedRdx);
    for (const std::uint64_t jump : {full, unknown, another})
        if (jump != 0) hot_.patch(jump, cold_.address);
    call_subroutine(kCallStub, site, RCX);
    cold_.jump(back);
}

void Contexts::jump_indirectly(const Instruction& branch) {
    const std::uint32_t word = word_of_way(branch.pc, 0);
    // Most jumps stay in the same range, such as those of switch statements.
    hot_.load_context(RAX, kNode);
    hot_.with_memory(kLoad, RAX, at(RAX, kEntry));
    hot_.registers(0x31, RAX, RCX);  // xor
    hot_.group1(kCompare, RAX, kLast, true);
    const std::uint64_t elsewhere = hot_.jump_if(kAbove, hot_.address);
    const std::uint64_t back = hot_.address;
    hot_.patch(elsewhere, cold_.address);
    std::uint64_t unknown = 0, another = 0;
    if (word != 0) {
        cold_.load_context(RAX, kNode);
        cold_.with_memory(kLoad, RAX, at(RAX, offset_of(word)));
        cold_.registers(0x85, RAX, RAX);  // test
        unknown = cold_.jump_if(kEqual, cold_.address);
        cold_.store_context(kSpare, RAX);
        cold_.with_memory(kLoad, RAX, at(RAX, kEntry));
        cold_.registers(0x31, RAX, RCX);  // xor
        cold_.group1(kCompare, RAX, kLast, true);
        another = cold_.jump_if(kAbove, cold_.address);
        cold_.load_context(RAX, kSpare);
        cold_.store_context(kNode, RAX);
        cold_.jump(back);
    }
    for (const std::uint64_t jump : {unknown, another})
        if (jump != 0) cold_.patch(jump, cold_.address);
    call_subroutine(kJumpStub, static_cast<std::uint64_t>(offset_of(word)) | kIndirectJump, RCX);
    cold_.jump(back);
}

// Return from a function. rsp has its value after the return.
void Contexts::come_back() {
    hot_.load_context(RAX, kTop);
    hot_.with_memory(kCompareMemory, RSP, at(RAX, kAddress - kFrameBytes));
    const std::uint64_t elsewhere = hot_.jump_if(kNotEqual, hot_.address);
    hot_.with_memory(kLoad, RAX, at(RAX, kCaller - kFrameBytes));
    hot_.store_context(kNode, RAX);
    hot_.with_memory(kLoad, RAX, at(RAX, kEntry));
    hot_.registers(0x31, RAX, RCX);  // xor
    hot_.group1(kCompare, RAX, kLast, true);
    const std::uint64_t outside = hot_.jump_if(kAbove, hot_.address);
    hot_.load_context(RAX, kTop);
    hot_.lea(RAX, at(RAX, -kFrameBytes));
    hot_.store_context(kTop, RAX);
    const std::uint64_t back = hot_.address;
    for (const std::uint64_t jump : {elsewhere, outside}) hot_.patch(jump, cold_.address);
    constexpr std::uint64_t kByReturn = 0;
    call_subroutine(kArriveStub, kByReturn, RCX);
    cold_.jump(back);
}

}  // namespace assay::native
