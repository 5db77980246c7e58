#include "framework/driver/shared/followed_contexts.h"

#include <algorithm>
#include <utility>

namespace assay::driver {
namespace {

constexpr std::uint64_t kBelowAll = UINT64_MAX;  // the address of a stack's first frame

bool is_in_range(const trace::ContextNode& node, std::uint64_t pc) {
    return trace::range_of(node.entry) == trace::range_of(pc);
}

}  // namespace

// The tree needs zeroed memory.
FollowedContexts::FollowedContexts(trace::ContextNodes* nodes, const trace::Spec& spec)
    : tree_(std::make_unique<CallTree>()) {
    tree_->initialise(state_, nodes, trace::context_words(spec), std::max(spec.recursion, 1U));
    tree_->begin_thread();
}

FollowedContexts::~FollowedContexts() {
    tree_->release();
}

void FollowedContexts::begin_thread() {
    way_ = {};
    tree_->begin_thread();
}

// Translated code handles most returns and changes of the stack pointer itself. Only the others
// make the tree look at its stacks, here as well.
void FollowedContexts::go_on(std::uint64_t pc) {
    const Way way = std::exchange(way_, {});
    const CallFrame* const top = state_.top == nullptr ? nullptr : state_.top - 1;
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

void FollowedContexts::enter_block(std::uint64_t pc) {
    if (way_.kind != Way::kNone || !is_in_range(*state_.node, pc)) go_on(pc);
}

std::uint64_t* FollowedContexts::counters(std::uint16_t word) const {
    return reinterpret_cast<std::uint64_t*>(reinterpret_cast<unsigned char*>(state_.node) +
                                            trace::word_offset(word));
}

void FollowedContexts::call(std::uint64_t pc, std::uint64_t behind, std::uint64_t address) {
    way_ = {Way::kCall, address, pc, behind};
}

void FollowedContexts::come_back(std::uint64_t sp) {
    way_ = {Way::kReturn, sp, 0, 0};
}

void FollowedContexts::go_on_elsewhere(std::uint64_t sp) {
    way_ = {Way::kDriver, sp, 0, 0};
}

void FollowedContexts::set_stack(std::uint64_t pc, std::uint64_t sp) {
    const bool stays =
        state_.top != nullptr && sp >= state_.stack_low && sp < state_.top[-1].address;
    if (!stays) tree_->arrive(pc, sp, true);
}

// The handler's frame begins with the return address.
void FollowedContexts::enter_handler(std::uint64_t address, std::uint64_t interrupted,
                                     std::uint64_t handler) {
    go_on(interrupted);
    tree_->enter_handler(address, interrupted, handler);
    tree_->arrive(handler, address - sizeof(std::uint64_t));
}

}  // namespace assay::driver
