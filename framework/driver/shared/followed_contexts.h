// Follows the calling contexts of a thread in the native driver's tree of nodes (CallTree). It
// calls the tree as translated code does (native/translate/contexts.h), for drivers that tell the
// blocks, calls and returns of a thread one by one.
//
// The target of a call or a return is known only when the thread goes on.
#pragma once

#include "framework/driver/shared/call_tree.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <memory>

namespace assay::driver {

class FollowedContexts {
  public:
    // `nodes`: those of the thread's slot. They must outlive this.
    FollowedContexts(trace::ContextNodes* nodes, const trace::Spec& spec);
    ~FollowedContexts();
    FollowedContexts(const FollowedContexts&) = delete;
    FollowedContexts& operator=(const FollowedContexts&) = delete;

    // Begins a new thread, outside of all calls.
    void begin_thread();
    // The thread goes on in a block that begins at `pc`.
    void enter_block(std::uint64_t pc);
    // The counters of this block, or of another one in the same range of code: trace::counters().
    std::uint64_t* counters(std::uint16_t word) const;
    // The node of these counters.
    static const trace::ContextNode& node_of(const std::uint64_t* counters, std::uint16_t word) {
        return *reinterpret_cast<const trace::ContextNode*>(
            reinterpret_cast<const unsigned char*>(counters) - trace::word_offset(word));
    }
    // The present node, in memory that keeps its address.
    const trace::ContextNode* const* node() const { return &state_.node; }
    // The number of the present node.
    std::uint32_t number() const { return state_.node->number; }

    // The call at `pc`. `address`: the canonical frame address. `behind`: the next address.
    void call(std::uint64_t pc, std::uint64_t behind, std::uint64_t address);
    // The stack pointer is `sp`: after a return, or after the driver has restored all registers.
    void come_back(std::uint64_t sp);
    void go_on_elsewhere(std::uint64_t sp);
    // An instruction of the block at `pc` has loaded the stack pointer.
    void set_stack(std::uint64_t pc, std::uint64_t sp);
    // A signal handler begins before the instruction at `interrupted`. `address`: the canonical
    // frame address.
    void enter_handler(std::uint64_t address, std::uint64_t interrupted, std::uint64_t handler);

  private:
    // The way to the next block, as long as this block is not known.
    struct Way {
        enum Kind { kNone, kCall, kReturn, kDriver };
        Kind kind;
        std::uint64_t sp;          // for a call, the frame's address
        std::uint64_t pc, behind;  // for a call
    };

    void go_on(std::uint64_t pc);

    CallState state_{};
    std::unique_ptr<CallTree> tree_;
    Way way_{};
};

}  // namespace assay::driver
