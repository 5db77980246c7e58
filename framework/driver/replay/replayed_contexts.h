// In which calling context a replayed thread is: the native driver's tree of nodes (CallTree),
// which this leads as translated code does (translate/contexts.h), by the records of calls.
//
// Where a call or a return goes, the thread tells when it goes on.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/shared/call_tree.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace assay::replay {

// Which words of a node count the blocks of a trace (trace::ContextNode).

// By block. They are the native driver's: where a range of code has more blocks and ways out of it
// than words, the same ones have none.
std::vector<std::uint16_t> context_words(const ImageTrace& image,
                                         std::span<const trace_block_t> blocks,
                                         const trace::Spec& spec);

// By block: that for which it is counted, which has the same instructions at the same address. The
// second part of a block can be a block by itself, where it is jumped to: the native driver, which
// has the parts only, has it once.
std::vector<std::uint32_t> counted_blocks(const ImageTrace& image,
                                          std::span<const trace_block_t> blocks);

class ReplayedContexts {
  public:
    // `nodes`: those of the thread's slot, which outlive this.
    ReplayedContexts(trace::ContextNodes* nodes, const trace::Spec& spec);
    ~ReplayedContexts();
    ReplayedContexts(const ReplayedContexts&) = delete;
    ReplayedContexts& operator=(const ReplayedContexts&) = delete;

    // Another thread than before, outside of all calls.
    void begin_thread();
    // The thread goes on with a block that begins at `pc`.
    void enter_block(std::uint64_t pc);
    // The counters of that block, or of another one in the same range of code: trace::counters().
    std::uint64_t* counters(std::uint16_t word) const;
    // The node that has those counters.
    static const trace::ContextNode& node_of(const std::uint64_t* counters, std::uint16_t word) {
        return *reinterpret_cast<const trace::ContextNode*>(counters - word);
    }
    // The present node's.
    std::uint32_t number() const { return state_.node->number; }

    // The call at `pc`. `address`: the frame's. `behind`: behind the call.
    void call(std::uint64_t pc, std::uint64_t behind, std::uint64_t address);
    // The stack pointer is `sp`: behind a return, and where the driver has put back all registers.
    void come_back(std::uint64_t sp);
    void go_on_elsewhere(std::uint64_t sp);
    // The stack pointer has got a value from elsewhere in a block that begins at `pc`.
    void set_stack(std::uint64_t pc, std::uint64_t sp);
    // A signal's handler is entered before the instruction at `interrupted`. `address`: the
    // frame's.
    void enter_handler(std::uint64_t address, std::uint64_t interrupted, std::uint64_t handler);

  private:
    // What led to where the thread goes on, if that is not known yet.
    struct Way {
        enum Kind { kNone, kCall, kReturn, kDriver };
        Kind kind;
        std::uint64_t sp;          // of a call its frame's address
        std::uint64_t pc, behind;  // of a call
    };

    void go_on(std::uint64_t pc);

    driver::CallState state_{};
    std::unique_ptr<driver::CallTree> tree_;
    Way way_{};
};

}  // namespace assay::replay
