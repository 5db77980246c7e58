// The plan of a replay: for each basic block and each site of a trace, what a collector gets
// according to the specification. It has the sites that the collector sees, and the actions between
// the recorded references.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::replay {

inline constexpr std::uint32_t kNoSite = UINT32_MAX;

// The data for each execution of a block is small, so that the plan of a large program stays in the
// processor's cache.

// An action that is done when its time comes. The last item of each block is an end, whose time
// never comes.
struct PlannedItem {
    enum Kind : std::uint8_t { kBlock, kFetch, kCode, kRetried, kEnd };
    static constexpr std::uint16_t kNever = UINT16_MAX;

    // Times in a block: when an instruction is reached, and when it has been executed.
    static constexpr std::uint16_t reached(unsigned position) {
        return static_cast<std::uint16_t>(position * 2);
    }
    static constexpr std::uint16_t executed(unsigned position) {
        return static_cast<std::uint16_t>(position * 2 + 1);
    }
    unsigned position() const { return time / 2U; }

    std::uint64_t address;  // for a fetch, that of its instruction
    std::uint32_t site;
    std::uint16_t time;
    Kind kind;
    // For a fetch: the first and the last line that it uses, relative to the line of `address`.
    std::uint8_t first_line : 4, last_line : 4;
};

// How a block ends.
enum class BlockEnd : std::uint8_t { kOther, kConditional, kIndirect, kDirectCall, kReturn };

struct PlannedBlock {
    std::uint32_t first_item;
    // In the collector's tables. With predictions, blocks also end after retried instructions,
    // because each block has one count of mispredictions. With bursts they do so for all profilers,
    // so that a burst begins at the same instruction for each.
    std::uint32_t first_block;
    std::uint16_t block_count;
    bool tells_branch;  // the branch is predicted, or has a branch_site
};

// Rarely needed data of a block.
struct BlockFacts {
    std::uint64_t branch_pc, next_pc;  // of the last instruction, and after it
    std::uint64_t
        target;  // of a direct conditional branch, if QEMU has run the program; 0: unknown
    std::uint32_t first_instr;
    std::uint32_t branch_site;      // kNoSite if the branch is not wanted
    std::uint32_t first_left_site;  // of its blocks' TRACE_SITE_BLOCK_LEFT; kNoSite: not wanted
    std::uint16_t instr_count;
    BlockEnd end;
    bool predicted;  // the predictor of the specification predicts the branch
};

// A recorded site.
struct PlannedSite {
    std::uint32_t site;  // in the collector's tables; kNoSite: the site is not wanted
    std::uint16_t bytes : 14;
    bool tells_nothing : 1;  // for values: tells that the instruction was executed, but no value
    bool by_driver : 1;      // the thread goes on elsewhere after a change of the stack;
                             // filters forget after a value
    std::uint8_t kind;
    std::uint8_t position;  // of its instruction in its block
};

class ReplayPlan {
  public:
    // `values`: with kCaptureValues. All arguments must outlive this.
    ReplayPlan(const ImageTrace& image, const trace::Spec& spec, const trace::ValueLists& values);

    std::span<const PlannedBlock> blocks() const { return blocks_; }
    const BlockFacts& facts(const PlannedBlock& block) const {
        return facts_[static_cast<std::size_t>(&block - blocks_.data())];
    }
    std::span<const PlannedItem> items() const { return items_; }
    // By recorded site. A site of a block has the block's number in `site`.
    std::span<const PlannedSite> sites() const { return sites_; }

    // The collector's tables.
    const std::vector<trace_block_t>& shown_blocks() const { return shown_blocks_; }
    const std::vector<trace_instr_t>& shown_instrs() const { return shown_instrs_; }
    const std::vector<trace_site_t>& shown_sites() const { return shown_sites_; }
    // With kCaptureContexts: see context_words().
    const std::vector<std::uint16_t>& words() const { return words_; }
    // The block that counts the executions of the i-th shown block of `block`: see
    // counted_blocks().
    std::uint32_t counted(const PlannedBlock& block, std::uint32_t i) const {
        return counted_.empty() ? block.first_block + i : counted_[block.first_block + i];
    }
    // The site, by kind, of events that belong to no instruction. kNoSite if the image has no code.
    std::uint32_t general_site(unsigned kind) const;
    // The site of kind PREDICTIONS for a recorded site of kind COUNT.
    std::uint32_t predictions_site(std::uint32_t count_site) const;

  private:
    void find_native_facts();
    void find_emulated_facts(const isa::Architecture& architecture);
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
    std::vector<bool> separate_;   // by instruction: its actions come after its fetch
    std::vector<bool> retried_;    // by instruction: is_predicted(), although it is no branch
    std::vector<bool> by_driver_;  // by instruction: PlannedSite::by_driver
    std::unordered_map<std::uint32_t, std::uint64_t> targets_;  // by instruction: see BlockFacts
};

}  // namespace assay::replay
