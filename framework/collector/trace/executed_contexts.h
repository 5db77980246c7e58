// The calling contexts that the driver has found (trace::ContextNode): the context of each record,
// and the executions in each context.
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
    // `contexts` is the tree to which nodes are added. Both arguments must live longer.
    ExecutedContexts(const Segment& segment, ContextTree& contexts)
        : segment_(segment), tree_(contexts) {}

    // Takes the next records of a slot, if trace::tells_contexts(). Returns the context of each
    // record. Valid until the next call.
    std::span<const std::uint32_t> follow(std::uint32_t slot,
                                          std::span<const trace_record_t> records,
                                          const CodeTables& code);

    // The counts of all slots after the end of the program. Call enter_all() first, so that the
    // tree has all contexts.
    struct Counts {
        CodeTables code;
        std::span<const std::uint64_t> executions;      // by instruction
        std::span<const std::uint64_t> mispredictions;  // by block; empty if they are not counted
        std::vector<trace::PartialEvent> left_early;    // result of TraceReader::left_early()
    };
    // Executions of a block in a context. Several entries can have the same block and context.
    struct Executed {
        std::uint32_t context;  // 0: outside of all calls
        std::uint32_t block;
        std::uint32_t instr_count;  // of the first instructions of the block: all or fewer
        std::uint64_t executions;
        std::uint64_t mispredictions;  // of the block's branch, if mispredictions are counted
    };
    void enter_all(std::uint32_t slots);
    // The calls and interruptions that have led to contexts, after enter_all(). Several entries can
    // have the same contexts and site. The numbers of direct calls mean nothing: these were
    // executed as often as their instructions.
    std::vector<ContextCalls> calls(std::uint32_t slots);
    // Calls `visit` for the executions of the first `slots` slots. Executions for which the driver
    // had no room are missing. Called last: it releases the nodes.
    void for_each(std::uint32_t slots, const Counts& counts,
                  const std::function<void(const Executed&)>& visit);
    // False if the driver had no room for all contexts, or if the program has overwritten a node.
    // Nodes after a damaged one are left out.
    bool complete() const { return complete_; }

  private:
    struct Slot {
        std::vector<std::uint32_t> contexts;    // of the nodes that have been entered
        std::vector<bool> calls;                // the same nodes: true for kind kCall
        std::vector<trace::ContextNode> ahead;  // nodes that have been read, the next one last
        std::uint32_t present = 0;              // context of the last TRACE_SITE_CONTEXT
        bool damaged = false;
    };

    Slot& slot(std::uint32_t index);
    // Returns the context of a node, or 0. Contexts are entered exactly in the order of the
    // records. All readers of the same records therefore give them the same numbers.
    std::uint32_t context_of(std::uint32_t slot, std::uint32_t node);
    // Enters those of the first `count` nodes that have not been entered.
    void enter(std::uint32_t index, std::uint32_t count);
    void read_ahead(std::uint32_t index);
    bool enter(Slot& slot, const trace::ContextNode& node);
    // The first layers of the words of a node.
    struct Words {
        const std::uint64_t* first;
        std::size_t to_next_layer;
        // Words in one of these layers.
        std::span<const std::uint64_t> at(std::uint32_t word, std::uint32_t count) const {
            return {first + word / trace::kLayerWords * to_next_layer + word % trace::kLayerWords,
                    count};
        }
    };
    // Calls `visit(node, words)` for the nodes of a slot from `first` to `end`.
    template <typename Visit>
    void read_nodes(std::uint32_t index, std::uint32_t first, std::uint32_t end,
                    std::uint32_t layers, const Visit& visit);

    const Segment& segment_;
    ContextTree& tree_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> result_;
    std::vector<std::uint64_t> read_;  // for read_nodes()
    bool complete_ = true;
};

}  // namespace assay::collector
