#include "framework/driver/native/translate/unit_plan.h"

#include "framework/driver/native/memory/target_memory.h"

#include <Zydis/Zydis.h>
#include <algorithm>

namespace assay::native {
namespace {

constexpr unsigned kBranches = 2;  // how many branches liveness looks behind
constexpr unsigned kMaxBlockInstrs = 64;
constexpr unsigned kMaxUnitInstrs = 128;
constexpr unsigned kMaxUnitBlocks = 16;
// Instructions of a loop that can take less time than an increment waits for the one before.
constexpr int kShortLoop = 32;
constexpr unsigned kCopies = 8;  // of a loop in its unit
// Larger groups too often lie in two lines: with 16 bytes cc1 takes 3 % longer, sort 4 %.
constexpr std::int64_t kMostBytesOfGroup = 8;

bool ends_block(Flow flow) {
    return flow != Flow::kNone;
}

// The file behind a mapping may have become shorter.
bool can_be_read(std::span<const std::uint8_t> code) {
    std::uint8_t copy[16];
    return code.empty() ||
           read_target(reinterpret_cast<std::uint64_t>(code.data()), copy, code.size());
}

bool jumps_directly(Flow flow) {
    return flow == Flow::kConditional || flow == Flow::kCounted || flow == Flow::kJump;
}

bool writes_memory(const Form& form) {
    return form.special != Special::kNone ||
           std::any_of(
               form.references, form.references + form.reference_count,
               [](const MemoryReference& reference) { return reference.kind != TRACE_SITE_READ; });
}

// True if the instruction gives rsp a value that was not computed from rsp before in the block, as
// compilers do to allocate memory of variable size.
bool leaves_stack(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) {
    const Instruction& setting = plan.instructions[instr];
    if (!setting.sets_stack()) return false;
    const auto source = static_cast<GprMask>(setting.form->reads & ~bit(RSP));
    if (setting.form->reference_count != 0 || source == 0) return true;
    for (unsigned i = instr; i-- > block.first;) {
        const Form& form = *plan.instructions[i].form;
        if (!(form.writes & source)) continue;
        if (form.reads & bit(RSP)) return false;
        if (form.kills & ~form.reads & source) return true;
    }
    return true;
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

}  // namespace

void UnitPlan::clear() {
    landing = leaves_functions = false;
    instructions.clear();
    blocks.clear();
    items.clear();
    references.clear();
    flags_live.clear();
    gprs_live.clear();
    sets_stack.clear();
}

bool Planner::decode_block(std::uint64_t pc, UnitPlan& out, unsigned limit) {
    PlannedBlock block;
    block.pc = pc;
    block.first = static_cast<std::uint16_t>(out.instructions.size());
    set_gates(block, out);
    const bool predicts = out.collects() && trace_.captures(trace::kCapturePredictions);
    while (block.count < limit && (block.count == 0 || !regions_.is_entry(pc))) {
        Instruction instruction;
        const auto code = memory_.code_at(pc);
        if (is_changeable(pc)) {
            if (!can_be_read(code)) break;
            block.checked |= watch(pc, pc + code.size());
        }
        if (code.empty() || !decoder_.decode(code, pc, instruction)) break;
        if (relies_on_flags(instruction)) break;
        out.instructions.push_back(instruction);
        ++block.count;
        pc = instruction.next_pc();
        if (ends_block(instruction.form->flow)) break;
        if (predicts && is_predicted(instruction)) break;
        // It may change what comes next.
        if (block.checked && writes_memory(*instruction.form)) break;
    }
    if (block.count == 0) return false;
    block.end_pc = pc;
    out.blocks.push_back(block);
    return true;
}

void Planner::set_gates(PlannedBlock& block, const UnitPlan& plan) const {
    block.enters_function = regions_.is_entry(block.pc);
    block.counted_down = regions_.counts() || (regions_.samples() && plan.collects());
    const bool first = plan.blocks.empty();
    block.counted_in_interval = trace_.spec().interval != 0 && plan.collects() &&
                                (first || plan.version == kExact || block.has_gate());
}

// Before code is read. True if it has to be compared whenever it is executed.
bool Planner::watch(std::uint64_t begin, std::uint64_t end) {
    if (!watches_) return false;
    const bool first = watch_.begin(begin);
    return watch_.begin(end - 1) || first;
}

bool Planner::is_changeable(std::uint64_t pc) const {
    const Region* region = memory_.find(pc);
    return region != nullptr && region->changeable;
}

std::uint64_t Planner::continuation(const UnitPlan& plan, const PlannedBlock& block) const {
    const Instruction& last = plan.instructions[block.first + block.count - 1U];
    if (last.form->flow == Flow::kJump || last.form->flow == Flow::kCall) return last.target();
    return block.end_pc;
}

// Where instructions are counted when a unit is left, a loop within it is copied some times, so
// that a round of it need not count.
bool Planner::goes_round(const UnitPlan& plan) {
    const Instruction& last = plan.instructions.back();
    if (!plan.counts_at_exits || last.target() > last.pc ||
        (last.form->flow != Flow::kConditional && last.form->flow != Flow::kJump))
        return false;
    return std::any_of(plan.blocks.begin(), plan.blocks.end(),
                       [&](const PlannedBlock& block) { return block.pc == last.target(); });
}

void Planner::begin(UnitPlan& out, Version version) const {
    out.clear();
    out.version = version;
    out.leaves_functions = regions_.has_functions();
    out.counts_at_exits = regions_.samples() && version == kPlain;
}

bool Planner::plan(std::uint64_t pc, Version version, bool landing, UnitPlan& out) {
    begin(out, version);
    out.landing = landing;
    if (!decode_block(pc, out, kMaxBlockInstrs)) return false;
    // The longer a unit, the less often it is left.
    const unsigned size = out.counts_at_exits ? 2 : 1;
    while (out.blocks.size() < size * kMaxUnitBlocks &&
           out.instructions.size() + kMaxBlockInstrs <= size * kMaxUnitInstrs) {
        const PlannedBlock& last = out.blocks.back();
        if (!has_continuation(out.instructions.back().form->flow)) break;
        const bool round = goes_round(out);
        const std::uint64_t next =
            round ? out.instructions.back().target() : continuation(out, last);
        if (cache_.find(next, version) != nullptr) break;
        const auto copies =
            std::count_if(out.blocks.begin(), out.blocks.end(),
                          [next](const PlannedBlock& block) { return block.pc == next; });
        if (copies >= (round || last.copy ? kCopies : 1)) break;
        const std::size_t from = out.blocks.size() - 1;
        if (!decode_block(next, out, kMaxBlockInstrs)) break;
        out.blocks[from].chained = true;
        out.blocks[from].goes_on_taken = round;
        out.blocks.back().copy = copies != 0;
        const PlannedBlock& before = out.blocks[from];
        out.blocks.back().previous_fetched =
            !out.blocks.back().has_gate() &&
            cache_.has_fetched(before.pc, before.end_pc, next,
                               out.instructions[out.blocks.back().first].form->length);
    }
    count_loops(out);
    count_beyond(out);
    analyse(out);
    return true;
}

// Blocks that the unit itself jumps back to are entered by that jump most of the time, so counting
// stands in them and not aside.
void Planner::count_loops(UnitPlan& plan) const {
    if (trace_.spec().interval == 0 || !plan.collects()) return;
    for (const PlannedBlock& from : plan.blocks) {
        const Instruction& last = plan.instructions[from.first + from.count - 1U];
        if (!jumps_directly(last.form->flow)) continue;
        for (PlannedBlock& to : plan.blocks) {
            if (to.pc != last.target() || to.first > from.first) continue;
            to.counted_in_interval = true;
            to.previous_fetched = false;
        }
    }
}

// Where the unit leads into the middle of another one, it counts what follows there as well, so
// that the jump need not go by the code that does. What that one counts of a third one is included.
void Planner::count_beyond(UnitPlan& plan) const {
    constexpr std::uint16_t kMost = 256;
    if (trace_.spec().interval == 0 || plan.version != kCollecting) return;
    PlannedBlock* counting = &plan.blocks.front();
    const auto leads_to = [&](std::uint64_t pc) {
        const Block* target = cache_.find(pc, plan.version);
        if (target != nullptr && target->entry_counted != 0 && target->to_count <= kMost)
            counting->counted_beyond = std::max(counting->counted_beyond, target->to_count);
    };
    for (PlannedBlock& block : plan.blocks) {
        if (block.counted_in_interval) counting = &block;
        const Instruction& last = plan.instructions[block.first + block.count - 1U];
        const Flow flow = last.form->flow;
        if (flow == Flow::kConditional || flow == Flow::kCounted) leads_to(last.target());
        if (!block.chained && has_continuation(flow)) leads_to(continuation(plan, block));
    }
}

bool Planner::plan_alone(std::uint64_t pc, Version version, UnitPlan& out) {
    begin(out, version);
    watches_ = false;
    const bool decoded = decode_block(pc, out, 1);
    watches_ = true;
    if (decoded) analyse(out);
    return decoded;
}

void Planner::replan(const Unit& unit, UnitPlan& out) {
    begin(out, cache_.blocks()[unit.first_block].version);
    out.landing = unit.landing;
    for (std::uint32_t i = 0; i < unit.block_count; ++i) {
        const Block& block = cache_.blocks()[unit.first_block + i];
        if (!decode_block(block.pc, out, block.instr_count)) return;
        out.blocks.back().chained = block.chained;
        out.blocks.back().previous_fetched = block.previous_fetched;
    }
    count_loops(out);
    count_beyond(out);
    analyse(out);
}

bool Planner::reads_flags(std::uint64_t pc, unsigned limit) {
    if (const bool* known = reads_flags_.find(pc)) return *known;
    const bool answer = reads(kArithmeticFlags, pc, limit);
    reads_flags_.set(pc, answer);
    return answer;
}

bool Planner::reads(std::uint16_t pending, std::uint64_t pc, unsigned limit) {
    constexpr unsigned kBranchShare = 4;  // what a branch leaves of the limit to each side
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
            default:  // calls and returns among them
                return flags_cross_calls_;
        }
    }
    return false;
}

// True, as long as calls and returns are taken to change flags, for a call whose continuation reads
// them: such calls are mostly of functions that never return, followed by other code, and hardly
// ever run. And for popf: what puts flags back goes on where they may be read, as Go's runtime does
// behind the signals that interrupt a goroutine anywhere (asyncPreempt).
bool Planner::relies_on_flags(const Instruction& instruction) {
    constexpr unsigned kLookAhead = 128;
    if (flags_cross_calls()) return false;
    const Form& form = *instruction.form;
    if (form.mnemonic == ZYDIS_MNEMONIC_POPF || form.mnemonic == ZYDIS_MNEMONIC_POPFQ) return true;
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

// What is live where control goes after `last`: to `continuation`, if that is known, where no
// branch is taken.
Live Planner::live_after(const Instruction& last, unsigned branches,
                         const std::optional<Live>& continuation) {
    const Live all{kArithmeticFlags, kAllGprs};
    const Live all_but_flags{flags_across_calls(), kAllGprs};
    if (is_changeable(last.pc)) return all;
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
            return last.form->rip_relative ? all_but_flags : all;
        default:
            return all;
    }
}

// What the code at `pc` may read before writing it, as far as a look at the next instructions
// tells; it follows up to `branches` branches, conditional ones to both sides. The answer for one
// address stays the same until the code is forgotten, which recovery relies on.
Live Planner::live_at(std::uint64_t pc, unsigned branches) {
    // Whatever it reads now, it may read more when it is executed.
    if (is_changeable(pc)) return {kArithmeticFlags, kAllGprs};
    if (const Live* known = live_.find(pc)) return *known;
    const std::uint64_t start = pc;
    constexpr unsigned kLookAhead = 16;
    Live pending{kArithmeticFlags, kAllGprs};
    Live live{0, 0};
    for (unsigned i = 0; i < kLookAhead; ++i) {
        Instruction instruction;
        const auto code = memory_.code_at(pc);
        if (code.empty() || !decoder_.decode(code, pc, instruction)) break;
        const Form& form = *instruction.form;
        const ValueRegisters captured = captured_registers(form);
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

// What the values of such an instruction are read from keeps its value until then.
ValueRegisters Planner::captured_registers(const Form& form) const {
    const trace::ValueList* list = trace_.value_list(form);
    return list ? value_registers(form, *list) : ValueRegisters{};
}

void Planner::analyse(UnitPlan& plan) {
    plan.flags_live.assign(plan.instructions.size(), kArithmeticFlags);
    plan.gprs_live.assign(plan.instructions.size(), kAllGprs);
    plan.sets_stack.assign(plan.instructions.size(), false);
    const bool captures = plan.collects() && trace_.spec().captures != 0;
    if (!captures && !regions_.has_functions() && !regions_.counts() && !regions_.samples()) return;
    for (std::size_t i = plan.blocks.size(); i-- > 0;) analyse_block(plan, i);
    if (!captures) return;
    find_short_loops(plan);
    for (PlannedBlock& block : plan.blocks) place_items(plan, block);
}

void Planner::find_short_loops(UnitPlan& plan) {
    for (std::size_t end = 0; end < plan.blocks.size(); ++end) {
        const Instruction& last = plan.instructions[plan.blocks[end].end() - 1U];
        if (!jumps_directly(last.form->flow)) continue;
        for (std::size_t head = 0; head <= end; ++head) {
            if (plan.blocks[head].pc != last.target() ||
                plan.blocks[end].end() - plan.blocks[head].first > kShortLoop)
                continue;
            for (std::size_t i = head; i <= end; ++i) plan.blocks[i].in_short_loop = true;
        }
    }
}

void Planner::analyse_block(UnitPlan& plan, std::size_t index) {
    PlannedBlock& block = plan.blocks[index];
    std::optional<Live> continuation;
    if (block.chained && !block.goes_on_taken) {
        const unsigned next = plan.blocks[index + 1].first;
        continuation = Live{plan.flags_live[next], plan.gprs_live[next]};
    }
    const Instruction& last = plan.instructions[block.first + block.count - 1U];
    Live live = live_after(last, kBranches, continuation);
    if (looks_at_branches(plan) || plan.counts_at_exits)
        analyse_ends(block, last, continuation, live);
    // Generated code relies on faults, whose handlers make it go on elsewhere with any register
    // (implicit null checks of Java).
    const bool generated = is_changeable(block.pc);
    for (unsigned i = block.first + block.count; i-- > block.first;) {
        const Instruction& instruction = plan.instructions[i];
        const Form& form = *instruction.form;
        live.flags &= static_cast<std::uint16_t>(~instruction.flags_killed());
        const ValueRegisters captured = captured_registers(form);
        live.gprs |= captured.behind;
        live.gprs &= static_cast<GprMask>(~form.kills);
        live = live | Live{form.flags_read, static_cast<GprMask>(form.reads | captured.before)};
        plan.flags_live[i] = live.flags;
        plan.gprs_live[i] = generated ? kAllGprs : live.gprs;
    }
}

// What is live on both sides of a conditional branch; `live`: on one or the other.
void Planner::analyse_ends(PlannedBlock& block, const Instruction& last,
                           const std::optional<Live>& continuation, const Live& live) {
    block.live_if_taken = block.live_otherwise = live;
    if (last.form->flow != Flow::kConditional || is_changeable(last.pc)) return;
    block.live_if_taken = live_at(last.target(), kBranches);
    block.live_otherwise = continuation ? *continuation : live_at(last.next_pc(), kBranches);
}

bool Planner::looks_at_branches(const UnitPlan& plan) const {
    return plan.collects() && (trace_.captures(trace::kCaptureBranches) ||
                               trace_.captures(trace::kCapturePredictions));
}

bool Planner::predicts_last(const UnitPlan& plan, const PlannedBlock& block) const {
    return trace_.captures(trace::kCapturePredictions) && plan.collects() &&
           is_predicted(plan.instructions[block.first + block.count - 1U]);
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
    const bool repeats = trace_.captures(trace::kCaptureRepeats);
    const bool calls = trace_.captures(trace::kCaptureCalls);
    const bool predicts = trace_.captures(trace::kCapturePredictions);
    unsigned earliest = block.first;
    Group group;
    for (unsigned i = block.first; i < block.first + block.count; ++i) {
        // The check of the first instruction's fetch stands before the block: some ways into it
        // skip that.
        if (fetches && i != block.first && crosses_line(plan, block, i)) {
            place_fetch(plan, i, earliest);
            group.open = false;
        }
        if (references)
            place_references(plan, i, group, earliest);
        else if ((repeats || predicts) && plan.instructions[i].form->special == Special::kString)
            place_special(plan, i, group, earliest);
        if (!calls) continue;
        const Flow flow = plan.instructions[i].form->flow;
        if (flow == Flow::kCall || flow == Flow::kCallIndirect) place_call(plan, i);
        if (!leaves_stack(plan, block, i)) continue;
        plan.sets_stack[i] = true;
        earliest = i + 1;
        group.open = false;
    }
    // What is predicted is counted with the prediction.
    if (trace_.captures(trace::kCaptureBlockCounts) && !predicts_last(plan, block))
        place_count(plan, block);
    block.item_count = static_cast<std::uint32_t>(plan.items.size()) - block.first_item;
}

void Planner::place_fetch(UnitPlan& plan, unsigned instr, unsigned& earliest) {
    Item item;
    item.kind = ItemKind::kFetch;
    item.instr = static_cast<std::uint16_t>(instr);
    place(plan, item, earliest, 0);
    earliest = plan.items.back().position;
}

// Of which the table of footprints has to know each.
bool Planner::touches_many_lines(const Form& form) const {
    const trace::Spec& spec = trace_.spec();
    return spec.footprints && std::any_of(form.references, form.references + form.reference_count,
                                          [&](const MemoryReference& reference) {
                                              return reference.bytes > spec.data.line_bytes;
                                          });
}

void Planner::place_references(UnitPlan& plan, unsigned instr, Group& group, unsigned& earliest) {
    const Form& form = *plan.instructions[instr].form;
    if (form.special != Special::kNone || touches_many_lines(form))
        return place_special(plan, instr, group, earliest);
    for (unsigned r = 0; r < form.reference_count; ++r)
        place_reference(plan, instr, r, group, earliest);
    const auto change = plan.instructions[instr].stack_change();
    group.stack_change += change.value_or(0);
    const auto moved = static_cast<GprMask>(change ? form.writes & ~bit(RSP) : form.writes);
    if (moved & address_registers(group.first)) group.open = false;
}

void Planner::place_special(UnitPlan& plan, unsigned instr, Group& group, unsigned& earliest) {
    Item item;
    item.kind = ItemKind::kSpecial;
    item.instr = item.position = static_cast<std::uint16_t>(instr);
    plan.items.push_back(item);
    earliest = instr;
    group.open = false;
}

// Right before the call: what it references is still its caller's.
void Planner::place_call(UnitPlan& plan, unsigned instr) {
    Item item;
    item.kind = ItemKind::kCall;
    item.instr = item.position = static_cast<std::uint16_t>(instr);
    plan.items.push_back(item);
}

void Planner::place_reference(UnitPlan& plan, unsigned instr, unsigned number, Group& group,
                              unsigned& earliest) {
    const Instruction& instruction = plan.instructions[instr];
    const MemoryReference& form = instruction.form->references[number];
    const std::uint32_t line = trace_.spec().data.line_bytes;
    PlannedReference reference;
    reference.instr = static_cast<std::uint16_t>(instr);
    reference.number = static_cast<std::uint8_t>(number);
    reference.bytes = line ? std::min<std::uint32_t>(form.bytes, line) : form.bytes;
    reference.offset = (form.encoded ? instruction.displacement() : 0) + form.bias;
    if (form.base == kRip) reference.offset += static_cast<std::int64_t>(instruction.next_pc());
    if (join(plan, reference, form, group)) return;

    Item item;
    item.kind = ItemKind::kData;
    item.instr = reference.instr;
    item.first_reference = static_cast<std::uint32_t>(plan.references.size());
    item.reference_count = 1;
    item.low = reference.offset;
    item.high = reference.offset + reference.bytes;
    plan.references.push_back(reference);
    place(plan, item, earliest, address_registers(form));
    earliest = plan.items.back().position;
    group.item = plan.items.size() - 1;
    group.first = form;
    group.constant = is_constant(form);
    group.stack_change = 0;
    group.open = trace_.spec().data.sets != 0 && !form.address32;
}

// Makes the reference a part of the group, if it can be.
bool Planner::join(UnitPlan& plan, const PlannedReference& reference, const MemoryReference& form,
                   Group& group) const {
    if (!group.open || group.constant != is_constant(form) || form.address32 ||
        form.segment != group.first.segment)
        return false;
    if (!group.constant && (form.base != group.first.base || form.index != group.first.index ||
                            form.scale != group.first.scale))
        return false;
    PlannedReference member = reference;
    if (form.base == RSP) member.offset += group.stack_change;
    Item& item = plan.items[group.item];
    const std::int64_t line = trace_.spec().data.line_bytes;
    const std::int64_t low = std::min(item.low, member.offset);
    const std::int64_t high = std::max(item.high, member.offset + member.bytes);
    const bool larger = low != item.low || high != item.high;
    if (larger && trace_.spec().footprints) return false;  // the first may be all that is executed
    if (larger && high - low > (group.constant ? line : std::min(line, kMostBytesOfGroup)))
        return false;
    if (group.constant && (low & -line) != ((high - 1) & -line)) return false;
    item.low = low;
    item.high = high;
    ++item.reference_count;
    plan.references.push_back(member);
    return true;
}

void Planner::place_count(UnitPlan& plan, const PlannedBlock& block) {
    Item item;
    item.kind = ItemKind::kCount;
    item.position = block.first;
    item.flags_live = true;
    for (unsigned i = block.first; i < block.first + block.count && item.flags_live; ++i) {
        if (plan.flags_live[i] != 0) continue;
        item.position = static_cast<std::uint16_t>(i);
        item.flags_live = false;
    }
    const auto before =
        std::find_if(plan.items.begin() + block.first_item, plan.items.end(),
                     [&item](const Item& other) { return other.position > item.position; });
    plan.items.insert(before, item);
}

}  // namespace assay::native
