#include "framework/driver/replay/replayed_contexts.h"

#include "framework/driver/shared/context_words.h"
#include "framework/x86/decoder.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace assay::replay {
namespace {

using native::Flow;
using native::Instruction;

std::uint64_t range_of(std::uint64_t pc) {
    return pc & ~(trace::kCodeRange - 1);
}

// Takes words in the order in which the driver has translated. A trace has blocks in the order of
// their numbers, with the blocks of a unit together. Ways that the driver puts at the end of a unit
// (translate/control_flow.cpp) get their words after its blocks.
class Words {
  public:
    explicit Words(const trace::Spec& spec) : spec_(spec) {}

    std::uint32_t take(std::span<const Instruction> block) {
        range_ = range_of(block.front().pc);
        if (block.front().pc != continuation_) end_unit();
        const std::uint32_t word = words_.of_block(spec_, range_, block);
        leave(block.back());
        return word;
    }
    void end_unit() {
        for (const auto& [from, target] : behind_) words_.of_way(spec_, from, 0, range_of(target));
        behind_.clear();
        continuation_ = 0;
    }

  private:
    void leave(const Instruction& last) {
        continuation_ = last.next_pc();
        switch (last.form->flow) {
            case Flow::kNone:
            case Flow::kTrap:
                return jump(last.next_pc());
            case Flow::kJump:
                continuation_ = last.target();
                return jump(last.target());
            case Flow::kConditional:
            case Flow::kCounted:
                if (last.form->flow == Flow::kConditional && last.target() <= last.pc)
                    jump(last.target());
                else if (range_of(last.target()) != range_)
                    behind_.emplace_back(range_, last.target());
                return jump(last.next_pc());
            case Flow::kCall:
                continuation_ = last.target();
                words_.of_way(spec_, range_, last.pc, last.target());
                return;
            case Flow::kCallIndirect:
            case Flow::kJumpIndirect:
                words_.of_way(spec_, range_, last.pc, 0);
                return;
            default:
                return;
        }
    }
    void jump(std::uint64_t target) {
        if (range_of(target) != range_) words_.of_way(spec_, range_, 0, range_of(target));
    }

    const trace::Spec& spec_;
    driver::ContextWords words_;
    std::uint64_t range_ = 0;         // of the block
    std::uint64_t continuation_ = 0;  // where the unit goes on; 0: nowhere
    std::vector<std::pair<std::uint64_t, std::uint64_t>> behind_;  // ranges and targets
};

std::span<const trace_instr_t> instrs_of(const ImageTrace& image, const trace_block_t& block) {
    return std::span(image.instrs()).subspan(block.first_instr, block.instr_count);
}

bool is_part(const ImageTrace& image, const trace_block_t& block) {
    const std::uint32_t recorded = image.instrs()[block.first_instr].block;
    return image.blocks()[recorded].instr_count != block.instr_count;
}

bool are_alike(std::span<const trace_instr_t> a, std::span<const trace_instr_t> b) {
    return std::ranges::equal(a, b, [](const trace_instr_t& one, const trace_instr_t& other) {
        return one.length == other.length && std::memcmp(one.bytes, other.bytes, one.length) == 0;
    });
}

}  // namespace

std::vector<std::uint16_t> context_words(const ImageTrace& image,
                                         std::span<const trace_block_t> blocks,
                                         const trace::Spec& spec) {
    std::vector<std::uint16_t> result;
    result.reserve(blocks.size());
    native::Decoder decoder;
    Words words(spec);
    std::vector<Instruction> decoded;
    for (const trace_block_t& block : blocks) {
        decoded.clear();
        const std::span instrs = instrs_of(image, block);
        for (const trace_instr_t& instr : instrs) {
            Instruction next;
            if (!decoder.decode({instr.bytes, sizeof instr.bytes}, instr.pc, next)) break;
            decoded.push_back(next);
        }
        const bool whole = !decoded.empty() && decoded.size() == instrs.size();
        result.push_back(whole ? static_cast<std::uint16_t>(words.take(decoded)) : 0);
    }
    words.end_unit();
    return result;
}

std::vector<std::uint32_t> counted_blocks(const ImageTrace& image,
                                          std::span<const trace_block_t> blocks) {
    std::vector<std::uint32_t> result;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_pc;
    for (std::uint32_t number = 0; number < blocks.size(); ++number) {
        const trace_block_t& block = blocks[number];
        std::vector<std::uint32_t>& known = by_pc[block.pc];
        const auto same = std::find_if(known.begin(), known.end(), [&](std::uint32_t other) {
            return (is_part(image, block) || is_part(image, blocks[other])) &&
                   are_alike(instrs_of(image, blocks[other]), instrs_of(image, block));
        });
        result.push_back(same == known.end() ? number : *same);
        if (same == known.end()) known.push_back(number);
    }
    return result;
}

namespace {

constexpr std::uint64_t kBelowAll = UINT64_MAX;  // the address of a stack's first frame

bool is_in_range(const trace::ContextNode& node, std::uint64_t pc) {
    return trace::range_of(node.entry) == trace::range_of(pc);
}

}  // namespace

// The tree needs zeroed memory.
ReplayedContexts::ReplayedContexts(trace::ContextNodes* nodes, const trace::Spec& spec)
    : tree_(std::make_unique<driver::CallTree>()) {
    tree_->initialise(state_, nodes, trace::context_words(spec), std::max(spec.recursion, 1U));
    tree_->begin_thread();
}

ReplayedContexts::~ReplayedContexts() {
    tree_->release();
}

void ReplayedContexts::begin_thread() {
    way_ = {};
    tree_->begin_thread();
}

// Translated code handles most returns and changes of the stack pointer itself. Only the others
// make the tree look at its stacks, here as well.
void ReplayedContexts::go_on(std::uint64_t pc) {
    const Way way = std::exchange(way_, {});
    const driver::CallFrame* const top = state_.top == nullptr ? nullptr : state_.top - 1;
    switch (way.kind) {
        case Way::kNone:
            break;
        case Way::kCall:
            tree_->call({way.pc, way.behind, pc, 0}, pc, way.sp);
            break;
        case Way::kReturn:
            if (top != nullptr && top->address == way.sp && top->address != kBelowAll &&
                is_in_range(*top->caller, pc)) {
                state_.node = top->caller;
                --state_.top;
                break;
            }
            [[fallthrough]];
        case Way::kDriver:
            tree_->arrive(pc, way.sp, way.kind == Way::kDriver);
            break;
    }
    if (!is_in_range(*state_.node, pc)) tree_->jump(pc, 0);
}

void ReplayedContexts::enter_block(std::uint64_t pc) {
    if (way_.kind != Way::kNone || !is_in_range(*state_.node, pc)) go_on(pc);
}

std::uint64_t* ReplayedContexts::counters(std::uint16_t word) const {
    return reinterpret_cast<std::uint64_t*>(state_.node) + word;
}

void ReplayedContexts::call(std::uint64_t pc, std::uint64_t behind, std::uint64_t address) {
    way_ = {Way::kCall, address, pc, behind};
}

void ReplayedContexts::come_back(std::uint64_t sp) {
    way_ = {Way::kReturn, sp, 0, 0};
}

void ReplayedContexts::go_on_elsewhere(std::uint64_t sp) {
    way_ = {Way::kDriver, sp, 0, 0};
}

void ReplayedContexts::set_stack(std::uint64_t pc, std::uint64_t sp) {
    const bool stays =
        state_.top != nullptr && sp >= state_.stack_low && sp < state_.top[-1].address;
    if (!stays) tree_->arrive(pc, sp, true);
}

// The handler's frame begins with the return address.
void ReplayedContexts::enter_handler(std::uint64_t address, std::uint64_t interrupted,
                                     std::uint64_t handler) {
    go_on(interrupted);
    tree_->enter_handler(address, interrupted, handler);
    tree_->arrive(handler, address - sizeof(std::uint64_t));
}

}  // namespace assay::replay
