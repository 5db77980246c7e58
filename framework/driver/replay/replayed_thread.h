// What the driver would have told of one thread, made from its records.
#pragma once

#include "framework/driver/replay/miss_filter.h"
#include "framework/driver/replay/replay_plan.h"
#include "framework/driver/replay/replayed_contexts.h"
#include "framework/driver/replay/segment_writer.h"
#include "framework/driver/shared/predictor.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace assay::replay {

// Executions of blocks that ended early in one slot: by the block, how much of it was executed, and
// the number of the context's node.
using EarlyEnds = std::map<std::array<std::uint32_t, 3>, std::uint64_t>;

class ReplayedThread {
  public:
    // `contexts`: of the slot; null if they are not captured.
    ReplayedThread(const ImageTrace& image, const ReplayPlan& plan, const trace::Spec& spec,
                   SlotWriter& slot, EarlyEnds& early_ends, ReplayedContexts* contexts);

    void take(std::span<const trace_record_t> records);
    // Nothing of the thread follows.
    void end();
    // What others have done since may have changed what the lines are that filters take for the
    // most recent ones: before the thread goes on behind another one.
    void forget_recent_lines() {
        if (references_) data_.forget();
        if (fetches_) fetch_.clear();
    }
    // With bursts: throws Error if it cannot have executed so many at its end.
    void check_executed(std::uint64_t instructions);

  private:
    void begin_block(std::uint32_t number);
    void count_block(const PlannedBlock& block);
    void pass_boundary(const trace_record_t& record, const PlannedSite& site);
    void pass_end_of_burst(const trace_record_t& record, const PlannedSite& site);
    void send_intervals(std::uint64_t executed);
    void touch(std::uint32_t block);
    void end_part();
    void leave_block(std::uint64_t executed);
    void enter_context(std::uint32_t shown);
    std::uint64_t* in_node(std::uint32_t part) const {
        return contexts_ ? in_nodes_[part] : nullptr;
    }
    void follow_calls(const trace_record_t& record, const PlannedSite& site);
    void change_stack(const trace_record_t& record, const PlannedSite& site);
    void tell(const trace_record_t& record, const PlannedSite& site);
    void tell_context();
    std::uint32_t instr_of(const PlannedSite& site) const;
    void go_on_at(std::uint64_t pc);
    void reach(unsigned position);
    void reach_end();
    void do_item(const PlannedItem& item);
    std::size_t refer(std::span<const trace_record_t> records, const PlannedSite* sites);
    void refer(const PlannedSite& site, const trace_record_t& record);
    void take_value(const trace_record_t& record, const PlannedSite& site);
    void give_values();
    void count_repeats(const trace_record_t& record, const PlannedSite& site);
    void count_mispredicted(std::uint32_t block, std::uint64_t* in_node);
    void count_instructions(std::uint32_t block, const trace_block_t& shown);
    void finish_interval(std::uint32_t block, std::int64_t split);
    void send_counts();
    void correct(std::uint32_t block, std::int64_t instructions);

    const ImageTrace& image_;
    const ReplayPlan& plan_;
    const trace::Spec& spec_;
    SlotWriter& slot_;
    EarlyEnds& early_ends_;
    const bool references_, fetches_;
    const std::size_t counters_;  // of each block
    DataFilter data_;
    LruCache fetch_;
    std::unique_ptr<driver::Predictor> predictor_;  // null without predictions
    ReplayedContexts* const contexts_;
    const bool tells_contexts_;  // see trace::tells_contexts()
    const bool only_counts_;     // at a block's beginning: no contexts, intervals or points
    // Of the shown blocks that the present one has become: where they are counted in a node; null
    // in none. And of the one whose branch's target is not known yet.
    std::vector<std::uint64_t*> in_nodes_;
    std::uint64_t* branch_in_node_ = nullptr;
    std::uint64_t handler_frame_ = 0;

    const PlannedBlock* block_ = nullptr;   // that is being executed
    const PlannedItem* next_item_;          // of it
    const PlannedBlock* branch_ = nullptr;  // whose target is not known yet
    // Of one execution of an instruction, as they were recorded: other lists have another order.
    std::vector<trace_record_t> values_;
    unsigned values_position_ = 0;  // of the instruction in its block

    // With a simulation point. A part ends behind the branch that leads on.
    bool counts_;  // not in its warm-up
    std::optional<trace_record_t> part_end_;

    // With bursts: see the native driver's Bursts.
    const bool samples_;
    bool in_burst_ = false;            // not in its warm-up
    std::uint64_t executed_ = 0;       // instructions, as of the last one's end
    std::uint64_t next_interval_ = 0;  // where it begins; 0: there are none

    // With intervals: see the native driver's Intervals.
    std::int64_t goal_ = 0, since_ = 0, postponed_ = 0;
    // With either.
    std::vector<bool> is_touched_;
    std::vector<std::uint32_t> touched_;  // blocks, since the counts were told
    std::vector<std::pair<std::uint32_t, std::int64_t>> corrections_;
};

}  // namespace assay::replay
