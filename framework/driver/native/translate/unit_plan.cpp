// Decides which blocks form a unit.
#include "framework/driver/native/translate/unit_plan.h"

#include "framework/driver/native/translate/captures.h"

#include <Zydis/Zydis.h>
#include <algorithm>

namespace assay::native {
namespace {

constexpr unsigned kMaxBlockInstrs = 64;
constexpr unsigned kMaxUnitInstrs = 128;
constexpr unsigned kMaxUnitBlocks = 16;
// Instructions of a loop that may run faster than increments of one counter can follow each other.
constexpr int kShortLoop = 32;
constexpr unsigned kCopies = 8;  // of a loop in its unit

bool ends_block(Flow flow) {
    return flow != Flow::kNone;
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

// Control can continue in the same unit on the not-taken way of a conditional branch, and at the
// target of a jump or call. A branch over rarely executed code then costs nothing.
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
}

bool Planner::decode_block(std::uint64_t pc, UnitPlan& out, unsigned limit) {
    PlannedBlock block;
    block.pc = pc;
    block.first = static_cast<std::uint16_t>(out.instructions.size());
    set_gates(block, out);
    while (block.count < limit && (block.count == 0 || !enters(pc))) {
        Instruction instruction;
        const auto code = memory_.code_at(pc);
        if (code.empty()) break;
        if (is_changeable(pc)) block.checked |= watch(pc, pc + code.size());
        if (!decoder_.decode(code, pc, instruction)) break;
        if (relies_on_flags(instruction)) break;
        out.instructions.push_back(instruction);
        ++block.count;
        pc = instruction.next_pc();
        if (ends_block(instruction.form->flow)) break;
        if ((out.collects() || regions_.counts()) &&
            Captures::end_block(trace_.spec(), instruction))
            break;
        if (regions_.samples() && out.version != kPlain && is_predicted(instruction)) break;
        block.ends_with_position = out.collects() && stores_position(instruction);
        if (block.ends_with_position) break;
        // The instruction may change the next one.
        if (block.checked && writes_memory(*instruction.form)) break;
    }
    if (block.count == 0) return false;
    block.end_pc = pc;
    out.blocks.push_back(block);
    return true;
}

// True for the entry of a named function or of an allocation function.
bool Planner::enters(std::uint64_t pc) const {
    return regions_.is_entry(pc) || allocation_functions_.find(pc) != nullptr;
}

bool Planner::stores_position(const Instruction& instruction) const {
    const Form& form = *instruction.form;
    return Contexts::wanted(trace_.spec()) && form.mnemonic == ZYDIS_MNEMONIC_MOV &&
           form.reference_count == 1 && form.references[0].kind == TRACE_SITE_WRITE &&
           form.references[0].index == kNoGpr && form.sources[0].kind == RegisterOperand::kGpr &&
           form.sources[0].bytes == sizeof(std::uint64_t) &&
           interpreter_.stores_position(instruction.pc, instruction.displacement());
}

// True if some code must check whether such functions have been left.
bool Planner::looks_for_left() const {
    return regions_.has_functions() || !allocation_functions_.empty();
}

// With only one thread, no thread has to leave for another one: see thread_like().
bool Planner::counts_slices() const {
    return trace_.spec().slice != 0 && !cache_.serves_one_thread();
}

void Planner::set_gates(PlannedBlock& block, const UnitPlan& plan) const {
    block.enters_function = regions_.is_entry(block.pc);
    block.allocates = allocation_functions_.find(block.pc) != nullptr;
    block.counted_down = regions_.counts() || (regions_.samples() && plan.version != kPlain);
    block.counted_in_slice = counts_slices();
    const bool first = plan.blocks.empty();
    block.counted_in_interval = trace_.spec().interval != 0 && plan.collects() &&
                                (first || plan.version == kExact || block.has_gate());
}

// Call this before code is read. True if the code must be compared at each execution.
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

// If instructions are counted where a unit is left, the unit contains several copies of a loop, so
// that not each round must count.
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
    out.leaves_functions = looks_for_left();
    out.counts_at_exits = regions_.samples() && version == kPlain;
}

bool Planner::plan(std::uint64_t pc, Version version, bool landing, UnitPlan& out) {
    begin(out, version);
    out.landing = landing;
    if (!decode_block(pc, out, kMaxBlockInstrs)) return false;
    // A longer unit is left less often.
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

// Blocks that the unit itself jumps back to are mostly entered by this jump, so they count in
// place.
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

// If the unit leads into the middle of another unit, it also counts the instructions that follow
// there. The jump can then skip the code that counts them. The count of the other unit includes
// those of a third one.
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

void Planner::analyse(UnitPlan& plan) {
    plan.flags_live.assign(plan.instructions.size(), kArithmeticFlags);
    plan.gprs_live.assign(plan.instructions.size(), kAllGprs);
    const bool captures = plan.collects() && trace_.spec().captures != 0;
    if (!captures && !looks_for_left() && !regions_.counts() && !regions_.samples() &&
        !counts_slices())
        return;
    for (std::size_t i = plan.blocks.size(); i-- > 0;) analyse_block(plan, i);
    if (captures) find_short_loops(plan);
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

}  // namespace assay::native
