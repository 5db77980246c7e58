// The calling contexts that the driver knows (trace::ContextNode): in which one each record was
// made, and what was executed in each.
#pragma once

#include "framework/collector/trace/contexts.h"
#include "framework/collector/trace/segment.h"
#include "framework/trace/context_nodes.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace assay::collector {

class ExecutedContexts {
  public:
    // `contexts`: where they are entered. Both must live longer.
    ExecutedContexts(const Segment& segment, ContextTree& contexts)
        : segment_(segment), tree_(contexts) {}

    // Takes the next records of a slot, where trace::tells_contexts(). The result has the context
    // of each, and is valid until the next call.
    std::span<const std::uint32_t> follow(std::uint32_t slot,
                                          std::span<const trace_record_t> records,
                                          const CodeTables& code);

    // What all slots have, when nothing is executed any more. Before that, enter_all(), so that the
    // tree has all contexts.
    struct Counts {
        CodeTables code;
        std::span<const std::uint64_t> executions;      // by instruction
        std::span<const std::uint64_t> mispredictions;  // by block; empty if they are not counted
        std::vector<trace::PartialEvent> left_early;    // TraceReader::left_early()
    };
    // Of a block in a context. There can be several of both.
    struct Executed {
        std::uint32_t context;  // 0: outside of all calls
        std::uint32_t block;
        std::uint32_t instr_count;  // of its first instructions, all or fewer
        std::uint64_t executions;
        std::uint64_t mispredictions;  // of the block's branch, if they are counted
    };
    void enter_all(std::uint32_t slots);
    // Calls `visit` for all of the first `slots` slots. What the driver had no room for is left
    // out.
    void for_each(std::uint32_t slots, const Counts& counts,
                  const std::function<void(const Executed&)>& visit);
    // False if the driver had no room for all, or if there was what is no node: then the program
    // has written over it, and what followed it is left out.
    bool complete() const { return complete_; }

  private:
    struct Slot {
        std::vector<trace::ContextNode> nodes;  // that have been read
        std::vector<std::uint32_t> contexts;    // of those that have been entered
        std::uint32_t present = 0;              // as the last TRACE_SITE_CONTEXT says
        bool damaged = false;
    };

    Slot& slot(std::uint32_t index);
    // The context of a node; 0 if there is none. Contexts are entered in the order of the records,
    // and no sooner: so all who read the same records give them the same numbers.
    std::uint32_t context_of(std::uint32_t slot, std::uint32_t node);
    // Enters the first `count` nodes, but for those that are already.
    void enter(std::uint32_t index, std::uint32_t count);
    void read_nodes(std::uint32_t index);
    bool enter(Slot& slot, const trace::ContextNode& node);

    const Segment& segment_;
    ContextTree& tree_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> result_;
    bool complete_ = true;
};

}  // namespace assay::collector
