// Follows the calling contexts of a replayed thread in the native driver's tree of nodes
// (CallTree). It calls the tree as translated code does (translate/contexts.h), driven by the
// records of calls.
//
// The target of a call or a return is known only when the thread goes on.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/shared/call_tree.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace assay::replay {

// How the words of a node count the blocks of a trace (trace::ContextNode).

// The word of each block, as in the native driver. If a range of code has more blocks and ways than
// words, the same ones get no word.
std::vector<std::uint16_t> context_words(const ImageTrace& image,
                                         std::span<const trace_block_t> blocks,
                                         const trace::Spec& spec);

// By block: the block that counts its executions, with the same instructions at the same address.
// The second part of a recorded block can also be a block by itself, if the program jumps to it.
// The native driver has only one block for both.
std::vector<std::uint32_t> counted_blocks(const ImageTrace& image,
                                          std::span<const trace_block_t> blocks);

class ReplayedContexts {
  public:
    // `nodes`: those of the thread's slot. They must outlive this.
    ReplayedContexts(trace::ContextNodes* nodes, const trace::Spec& spec);
    ~ReplayedContexts();
    ReplayedContexts(const ReplayedContexts&) = delete;
    ReplayedContexts& operator=(const ReplayedContexts&) = delete;

    // Begins a new thread, outside of all calls.
    void begin_thread();
    // The thread goes on in a block that begins at `pc`.
    void enter_block(std::uint64_t pc);
    // The counters of this block, or of another one in the same range of code: trace::counters().
    std::uint64_t* counters(std::uint16_t word) const;
    // The node of these counters.
    static const trace::ContextNode& node_of(const std::uint64_t* counters, std::uint16_t word) {
        return *reinterpret_cast<const trace::ContextNode*>(counters - word);
    }
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

    driver::CallState state_{};
    std::unique_ptr<driver::CallTree> tree_;
    Way way_{};
};

}  // namespace assay::replay
