// What a replay has to do for each basic block and each site of a trace, so that a collector gets
// what a specification asks for: which sites there are for it, and which instrumentation stands
// between the recorded references.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::replay {

inline constexpr std::uint32_t kNoSite = UINT32_MAX;

// What is done for each execution of a block is small, so that a large program's stays in the
// processor's cache.

// Done when its time comes. The last one of each block is an end, whose time does not come.
struct PlannedItem {
    enum Kind : std::uint8_t { kBlock, kFetch, kCode, kRetried, kEnd };
    static constexpr std::uint16_t kNever = UINT16_MAX;

    // Of an instruction in its block: when it is reached, and when it has been executed.
    static constexpr std::uint16_t reached(unsigned position) {
        return static_cast<std::uint16_t>(position * 2);
    }
    static constexpr std::uint16_t executed(unsigned position) {
        return static_cast<std::uint16_t>(position * 2 + 1);
    }
    unsigned position() const { return time / 2U; }

    std::uint64_t address;  // of a fetch its instruction's
    std::uint32_t site;
    std::uint16_t time;
    Kind kind;
    // Of a fetch, counted from the line of its address: the first and the last one that are used.
    std::uint8_t first_line : 4, last_line : 4;
};

// How a block ends.
enum class BlockEnd : std::uint8_t { kOther, kConditional, kIndirect, kDirectCall, kReturn };

struct PlannedBlock {
    std::uint32_t first_item;
    // In the tables that the collector gets: with predictions, blocks end behind retried
    // instructions, as there is a count of mispredictions for each block.
    std::uint32_t first_block;
    std::uint16_t block_count;
    bool tells_branch;  // it is predicted, or has a branch_site
};

// What is needed more rarely.
struct BlockFacts {
    std::uint64_t branch_pc, next_pc;  // of the last instruction, and behind it
    std::uint32_t first_instr;
    std::uint32_t branch_site;      // kNoSite if it is not wanted
    std::uint32_t first_left_site;  // of their TRACE_SITE_BLOCK_LEFT; kNoSite if not wanted
    std::uint16_t instr_count;
    BlockEnd end;
    bool predicted;  // the branch, by the predictor of the specification
};

// A recorded site.
struct PlannedSite {
    std::uint32_t site;  // in the tables that the collector gets; kNoSite: not wanted
    std::uint16_t bytes : 14;
    bool tells_nothing : 1;  // of values: that the instruction was executed, but no value
    bool by_driver : 1;      // of changes of the stack: the thread goes on elsewhere behind it;
                             // of values: filters forget, too
    std::uint8_t kind;
    std::uint8_t position;  // of its instruction in its block
};

class ReplayPlan {
  public:
    // `values`: with kCaptureValues. All must live longer.
    ReplayPlan(const ImageTrace& image, const trace::Spec& spec, const trace::ValueLists& values);

    std::span<const PlannedBlock> blocks() const { return blocks_; }
    const BlockFacts& facts(const PlannedBlock& block) const {
        return facts_[static_cast<std::size_t>(&block - blocks_.data())];
    }
    std::span<const PlannedItem> items() const { return items_; }
    // By recorded site. The `site` of a block is its number.
    std::span<const PlannedSite> sites() const { return sites_; }

    // What the collector gets.
    const std::vector<trace_block_t>& shown_blocks() const { return shown_blocks_; }
    const std::vector<trace_instr_t>& shown_instrs() const { return shown_instrs_; }
    const std::vector<trace_site_t>& shown_sites() const { return shown_sites_; }
    // With kCaptureContexts: see context_words().
    const std::vector<std::uint16_t>& words() const { return words_; }
    // For which block the i-th is counted of those that a recorded one has become: see
    // counted_blocks().
    std::uint32_t counted(const PlannedBlock& block, std::uint32_t i) const {
        return counted_.empty() ? block.first_block + i : counted_[block.first_block + i];
    }
    // Of events that belong to no instruction, by kind. kNoSite if the image has no code.
    std::uint32_t general_site(unsigned kind) const;
    // Of PREDICTIONS of a recorded site of kind COUNT.
    std::uint32_t predictions_site(std::uint32_t count_site) const;

  private:
    void plan_block(std::uint32_t number);
    void plan_block_records(const PlannedBlock& block, BlockFacts& facts);
    void plan_fetches(const BlockFacts& block);
    void plan_code(const BlockFacts& block);
    void plan_retried(const BlockFacts& block);
    void plan_end(BlockFacts& block);
    void plan_sites();
    std::size_t end_of_values(std::size_t first) const;
    void plan_values(std::size_t first, std::size_t end);
    std::uint32_t add_site(std::uint32_t instr, unsigned bytes, unsigned kind);

    const ImageTrace& image_;
    const trace::Spec& spec_;
    const trace::ValueLists& values_;
    std::vector<PlannedBlock> blocks_;
    std::vector<BlockFacts> facts_;
    std::vector<PlannedItem> items_;
    std::vector<PlannedSite> sites_;
    std::vector<trace_block_t> shown_blocks_;
    std::vector<trace_instr_t> shown_instrs_;
    std::vector<trace_site_t> shown_sites_;
    std::vector<std::uint16_t> words_;
    std::vector<std::uint32_t> counted_;            // by shown block, with contexts and predictions
    std::vector<std::uint32_t> predictions_sites_;  // by recorded site of a count
    std::vector<std::uint32_t> general_sites_;      // by kind
    std::vector<bool> separate_;   // by instruction: what it does comes behind its fetch
    std::vector<bool> retried_;    // likewise: is_predicted() though it is no branch
    std::vector<bool> by_driver_;  // likewise: what PlannedSite says
};

}  // namespace assay::replay
