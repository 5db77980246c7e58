#include "framework/driver/native/unit_plan.h"

#include <algorithm>

namespace assay::native {
namespace {

constexpr unsigned kMaxBlockInstrs = 64;
constexpr unsigned kMaxUnitInstrs = 128;
constexpr unsigned kMaxUnitBlocks = 16;

bool ends_block(Flow flow) {
    return flow != Flow::kNone;
}

// Where control can go on in the same unit: the not-taken side of a conditional branch, the
// target of a jump or call. A branch over code that rarely runs costs nothing that way.
bool has_continuation(Flow flow) {
    switch (flow) {
        case Flow::kNone:
        case Flow::kConditional:
        case Flow::kCounted:
        case Flow::kJump:
        case Flow::kCall:
            return true;
        default:
            return false;
    }
}

GprMask address_registers(const MemoryReference& reference) {
    GprMask mask = 0;
    if (reference.base < 16) mask |= bit(reference.base);
    if (reference.index < 16) mask |= bit(reference.index);
    return mask;
}

}  // namespace

void UnitPlan::clear() {
    instructions.clear();
    blocks.clear();
    items.clear();
    flags_live.clear();
    gprs_live.clear();
}

bool Planner::decode_block(std::uint64_t pc, UnitPlan& out, unsigned limit) {
    PlannedBlock block;
    block.pc = pc;
    block.first = static_cast<std::uint16_t>(out.instructions.size());
    while (block.count < limit) {
        Instruction instruction;
        const auto code = memory_.code_at(pc);
        if (code.empty() || !decoder_.decode(code, pc, instruction)) break;
        out.instructions.push_back(instruction);
        ++block.count;
        pc = instruction.next_pc();
        if (ends_block(instruction.form->flow)) break;
    }
    if (block.count == 0) return false;
    block.end_pc = pc;
    out.blocks.push_back(block);
    return true;
}

std::uint64_t Planner::continuation(const UnitPlan& plan, const PlannedBlock& block) const {
    const Instruction& last = plan.instructions[block.first + block.count - 1U];
    if (last.form->flow == Flow::kJump || last.form->flow == Flow::kCall) return last.target();
    return block.end_pc;
}

bool Planner::plan(std::uint64_t pc, UnitPlan& out) {
    out.clear();
    if (!decode_block(pc, out, kMaxBlockInstrs)) return false;
    while (out.blocks.size() < kMaxUnitBlocks &&
           out.instructions.size() + kMaxBlockInstrs <= kMaxUnitInstrs) {
        const PlannedBlock& last = out.blocks.back();
        if (!has_continuation(out.instructions.back().form->flow)) break;
        const std::uint64_t next = continuation(out, last);
        if (cache_.find(next) != nullptr) break;
        if (std::any_of(out.blocks.begin(), out.blocks.end(),
                        [next](const PlannedBlock& block) { return block.pc == next; }))
            break;
        const std::size_t from = out.blocks.size() - 1;
        if (!decode_block(next, out, kMaxBlockInstrs)) break;
        out.blocks[from].chained = true;
        const PlannedBlock& before = out.blocks[from];
        out.blocks.back().previous_fetched = cache_.has_fetched(
            before.pc, before.end_pc, next, out.instructions[out.blocks.back().first].form->length);
    }
    analyse(out);
    return true;
}

void Planner::replan(const Unit& unit, UnitPlan& out) {
    out.clear();
    for (std::uint32_t i = 0; i < unit.block_count; ++i) {
        const Block& block = cache_.blocks()[unit.first_block + i];
        if (!decode_block(block.pc, out, block.instr_count)) return;
        out.blocks.back().chained = block.chained;
        out.blocks.back().previous_fetched = block.previous_fetched;
    }
    analyse(out);
}

bool Planner::reads_flags(std::uint64_t pc, unsigned limit) {
    const auto known = reads_flags_.find(pc);
    if (known != reads_flags_.end()) return known->second;
    const std::uint64_t start = pc;
    std::uint16_t pending = kArithmeticFlags;
    bool answer = true;
    for (unsigned i = 0; i < limit; ++i) {
        Instruction instruction;
        const auto code = memory_.code_at(pc);
        if (code.empty() || !decoder_.decode(code, pc, instruction)) break;
        if (instruction.form->flags_read & pending) break;
        pending &= static_cast<std::uint16_t>(~instruction.flags_killed());
        const Flow flow = instruction.form->flow;
        if (pending == 0 || flow == Flow::kReturn || flow == Flow::kCall ||
            flow == Flow::kCallIndirect ||
            (flow == Flow::kJumpIndirect && instruction.form->rip_relative)) {
            answer = pending != 0 && flags_cross_calls_;
            break;
        }
        if (flow == Flow::kJump)
            pc = instruction.target();
        else if (flow == Flow::kNone || flow == Flow::kSyscall)
            pc = instruction.next_pc();
        else
            break;
    }
    reads_flags_[start] = answer;
    return answer;
}

std::uint16_t Planner::flags_after(const Instruction& last) {
    constexpr unsigned kLookAhead = 16;
    // The return address is looked at when the call is translated: before the function that
    // will return there has run.
    constexpr unsigned kLookAheadOfReturn = 128;
    const Flow flow = last.form->flow;
    if ((flow == Flow::kCall || flow == Flow::kCallIndirect) && !flags_cross_calls_ &&
        memory_.find(last.next_pc()) != nullptr && reads_flags(last.next_pc(), kLookAheadOfReturn))
        flags_cross_calls_ = true;
    bool live = true;
    switch (flow) {
        case Flow::kJump:
            live = reads_flags(last.target(), kLookAhead);
            break;
        case Flow::kConditional:
            live =
                reads_flags(last.target(), kLookAhead) || reads_flags(last.next_pc(), kLookAhead);
            break;
        case Flow::kNone:
            live = reads_flags(last.next_pc(), kLookAhead);
            break;
        case Flow::kCall:
            live = flags_cross_calls_ || reads_flags(last.target(), kLookAhead);
            break;
        case Flow::kCallIndirect:
        case Flow::kReturn:
            live = flags_cross_calls_;
            break;
        case Flow::kJumpIndirect:
            live = flags_cross_calls_ || !last.form->rip_relative;
            break;
        default:
            break;
    }
    return live ? kArithmeticFlags : 0;
}

void Planner::analyse(UnitPlan& plan) {
    plan.flags_live.assign(plan.instructions.size(), kArithmeticFlags);
    plan.gprs_live.assign(plan.instructions.size(), kAllGprs);
    if (trace_.spec().captures == 0) return;
    for (PlannedBlock& block : plan.blocks)
        analyse_block(plan, block, flags_after(plan.instructions[block.first + block.count - 1U]));
    for (PlannedBlock& block : plan.blocks) place_items(plan, block);
}

void Planner::analyse_block(UnitPlan& plan, PlannedBlock& block, std::uint16_t flags_out) {
    std::uint16_t flags = flags_out;
    GprMask gprs = kAllGprs;
    for (unsigned i = block.first + block.count; i-- > block.first;) {
        const Instruction& instruction = plan.instructions[i];
        flags = static_cast<std::uint16_t>((flags & ~instruction.flags_killed()) |
                                           instruction.form->flags_read);
        gprs = static_cast<GprMask>((gprs & ~instruction.form->kills) | instruction.form->reads);
        plan.flags_live[i] = flags;
        plan.gprs_live[i] = gprs;
    }
}

bool Planner::crosses_line(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) const {
    if (instr == block.first) return true;
    const std::uint64_t line = trace_.spec().fetch.line_bytes;
    const Instruction& instruction = plan.instructions[instr];
    return (instruction.pc - 1) / line != (instruction.next_pc() - 1) / line;
}

// Puts `item` at the latest point where the flags are dead, not before `earliest` and not before
// an instruction that changes a register of `address`; if there is none, right before its
// instruction.
void Planner::place(UnitPlan& plan, Item item, unsigned earliest, GprMask address) {
    item.position = item.instr;
    item.flags_live = plan.flags_live[item.instr] != 0;
    for (unsigned at = item.instr; item.flags_live; --at) {
        if (plan.flags_live[at] == 0) {
            item.position = static_cast<std::uint16_t>(at);
            item.flags_live = false;
        }
        if (at == earliest || (plan.instructions[at - 1U].form->writes & address) != 0) break;
    }
    plan.items.push_back(item);
}

void Planner::place_items(UnitPlan& plan, PlannedBlock& block) {
    block.first_item = static_cast<std::uint32_t>(plan.items.size());
    const bool fetches = trace_.captures(trace::kCaptureFetches);
    const bool references = trace_.captures(trace::kCaptureReferences);
    unsigned earliest = block.first;
    const unsigned end = block.first + block.count;
    for (unsigned i = block.first; i < end; ++i) {
        const Form& form = *plan.instructions[i].form;
        Item item;
        item.instr = static_cast<std::uint16_t>(i);
        // A flags-setting point of its own: the translator adds the first instruction's fetch,
        // because some ways into the block skip it.
        if (fetches && i != block.first && crosses_line(plan, block, i)) {
            item.kind = ItemKind::kFetch;
            place(plan, item, earliest, 0);
            earliest = plan.items.back().position;
        }
        if (!references) continue;
        if (form.special != Special::kNone) {
            item.kind = ItemKind::kSpecial;
            item.position = static_cast<std::uint16_t>(i);
            plan.items.push_back(item);
            earliest = i;
            continue;
        }
        item.kind = ItemKind::kData;
        for (std::uint8_t r = 0; r < form.reference_count; ++r) {
            item.reference = r;
            place(plan, item, earliest, address_registers(form.references[r]));
            earliest = plan.items.back().position;
        }
    }
    if (trace_.captures(trace::kCaptureBlockCounts)) {
        Item item;
        item.kind = ItemKind::kCount;
        item.position = block.first;
        item.flags_live = true;
        for (unsigned i = block.first; i < end && item.flags_live; ++i) {
            if (plan.flags_live[i] != 0) continue;
            item.position = static_cast<std::uint16_t>(i);
            item.flags_live = false;
        }
        const auto before =
            std::find_if(plan.items.begin() + block.first_item, plan.items.end(),
                         [&item](const Item& other) { return other.position > item.position; });
        plan.items.insert(before, item);
    }
    block.item_count = static_cast<std::uint32_t>(plan.items.size()) - block.first_item;
}

}  // namespace assay::native
