// Makes what the driver would have told of one thread from the thread's records.
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

// Counts the executions of blocks that ended early in one slot. Key: the block, how many
// instructions were executed, the number of the context's node.
using EarlyEnds = std::map<std::array<std::uint32_t, 3>, std::uint64_t>;

class ReplayedThread {
  public:
    // `contexts`: those of the slot; null if they are not captured.
    ReplayedThread(const ImageTrace& image, const ReplayPlan& plan, const trace::Spec& spec,
                   SlotWriter& slot, EarlyEnds& early_ends, ReplayedContexts* contexts);

    void take(std::span<const trace_record_t> records);
    // For a part of a run (CapturedPart). begin_parts() begins the shown blocks `first` to `end` -
    // 1 of `block`, whose record take() does not get. If others follow, end_parts() ends them.
    void begin_parts(const PlannedBlock& block, std::uint32_t first, std::uint32_t end);
    void end_parts();
    // The thread goes on at `pc`, and is not captured there.
    void leave(std::uint64_t pc);
    // With bursts. `executed`: instructions of the thread.
    void end_burst(trace::EndOf of, std::uint64_t executed);
    // Call this after the thread's last record.
    void end();
    // Call this before the thread goes on after another one. The other thread may have changed what
    // the most recent lines hold.
    void forget_recent_lines() {
        if (references_) data_.forget();
        if (fetches_) fetch_.clear();
    }
    // With bursts: throws Error if the thread cannot have executed so many instructions in all.
    void check_executed(std::uint64_t instructions);

  private:
    unsigned position_of(std::uint32_t part) const;
    void count_parts();
    void pass_boundary(const trace_record_t& record, const PlannedSite& site);
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
    void load_stack(const trace_record_t& record, const PlannedSite& site);
    void enter_handler(const trace_record_t& record, const PlannedSite& site);
    void leave_handlers(std::uint64_t sp);
    void resume(std::uint64_t frame, std::uint64_t pc);
    void tell(const trace_record_t& record, const PlannedSite& site);
    void tell_context();
    std::uint32_t instr_of(const PlannedSite& site) const;
    void go_on_at(std::uint64_t pc);
    void reach(unsigned position);
    void reach_end();
    void do_item(const PlannedItem& item);
    void pass_item(const PlannedItem& item);
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
    const std::size_t counters_;  // for each block
    DataFilter data_;
    LruCache fetch_;
    std::unique_ptr<driver::Predictor> predictor_;  // null without predictions
    ReplayedContexts* const contexts_;
    const bool tells_contexts_;  // see trace::tells_contexts()
    const bool only_counts_;     // a block needs no contexts, intervals or points
    // The counters in the node of each shown block of the present block; null: not counted in a
    // node. branch_in_node_: those of the block whose branch target is not known yet.
    std::vector<std::uint64_t*> in_nodes_;
    std::uint64_t* branch_in_node_ = nullptr;
    std::uint64_t handler_frame_ = 0;
    // If QEMU has run the program: its driver learns the outcome of an interrupted branch after the
    // handler. The innermost handler is the last one.
    struct Interrupted {
        std::uint64_t frame;         // of the handler
        const PlannedBlock* branch;  // nullptr: there is none
        std::uint64_t* in_node;
    };
    std::vector<Interrupted> interrupted_;

    const PlannedBlock* block_ = nullptr;              // in execution
    std::uint32_t first_part_ = 0, end_of_parts_ = 0;  // its shown blocks that are captured
    const PlannedItem* next_item_;                     // of this block
    const PlannedBlock* branch_ = nullptr;  // the block whose branch target is not known yet
    // The values of one execution, in recorded order. The order of the wanted list can differ.
    std::vector<trace_record_t> values_;
    unsigned values_position_ = 0;  // of the instruction in its block

    // With a simulation point. A part ends after the branch that leads out of it.
    bool counts_;  // false during the warm-up
    std::optional<trace_record_t> part_end_;

    // With bursts: see the native driver's Bursts.
    const bool samples_;
    bool in_burst_ = false;            // false during the warm-up
    std::uint64_t executed_ = 0;       // instructions, at the end of the last part
    std::uint64_t next_interval_ = 0;  // where it begins; 0: there are no intervals

    // With intervals: see the native driver's Intervals.
    std::int64_t goal_ = 0, since_ = 0, postponed_ = 0;
    // With bursts or intervals.
    std::vector<bool> is_touched_;
    std::vector<std::uint32_t> touched_;  // blocks since the last counts were sent
    std::vector<std::pair<std::uint32_t, std::int64_t>> corrections_;
};

}  // namespace assay::replay
