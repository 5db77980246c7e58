// Estimates of a whole run from the bursts of it that were captured (--sample; see Bursts of the
// driver): what counts are multiplied by, and how far they may be off.
//
// The total of an event is estimated by a ratio: as much of it per instruction as in the bursts
// (Cochran, Sampling Techniques, 3rd edition 1977, section 6.3; for programs: Wunderlich, Wenisch,
// Falsafi, Hoe, "SMARTS", ISCA 2003). Its error is estimated from how much each burst differs from
// the one before, since each stands for its own period only (Wolter, Introduction to Variance
// Estimation, 2nd edition 2007, section 8.2, estimator 2). Bursts that follow one another are taken
// together where there are many, so that profilers need not be asked about each.
//
// In a replay of a simulation point there is one burst, which stands for so many instructions as
// the point's weight says, and the driver counts nothing of its warm-up. Errors are not known.
#pragma once

#include "assay/trace_types.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay::collector {

struct CodeTables;

class Sampling {
  public:
    explicit Sampling(const trace::Regions& regions)
        : burst_(regions.sample_burst),
          period_(regions.sample_period),
          is_point_(regions.points != 0),
          stands_for_(regions.stands_for) {}

    // There are warm-ups before the bursts.
    void warm_up(std::uint64_t instructions) { warm_up_ = instructions; }

    bool wanted() const { return period_ != 0 || is_point_; }
    bool is_point() const { return is_point_; }
    // What is said of the point and the others, for people.
    void describe_point(std::string description) { point_ = std::move(description); }

    // --- While the program runs.

    // Takes the records of a buffer, after the profilers. True if `totals` shall be called: with
    // what has been counted of each event so far.
    bool take(std::uint32_t thread, std::uint32_t slot, std::span<const trace_record_t> records,
              const CodeTables& code);
    void totals(std::vector<std::uint64_t> by_event);
    // Whether the next buffer of the slot is of a warm-up.
    bool is_warm_up(std::uint32_t slot) const { return warm_up_ != 0 && !in_burst_.contains(slot); }
    // Executions of instructions in the bursts so far, by their index, and mispredictions by block.
    std::span<const std::uint64_t> executions() const { return executions_; }
    std::span<const std::uint64_t> mispredictions() const { return mispredictions_; }

    // --- At the end.

    // What the thread has executed that has not told its end itself.
    void executed(std::uint32_t thread, std::uint64_t instructions);
    // Takes what was executed in warm-ups off the counts of instructions and of mispredictions;
    // `counters` and `mispredictions`: those of the slot's blocks, of which those behind the last
    // end of a burst or warm-up have not been told. The rest is what was captured.
    void take_rest(std::uint32_t slot, std::span<const std::uint64_t> counters,
                   std::span<const std::uint64_t> mispredictions, const CodeTables& code);
    void take_off_warm_up(std::span<std::uint64_t> executions,
                          std::span<std::uint64_t> mispredictions = {});
    // Of a thread, or of all.
    std::uint64_t executed_by(std::uint32_t thread) const;
    std::uint64_t executed() const;
    double factor() const;
    // Makes the counts of a row what they would be in the whole run. `left`, 0 before the first
    // row, is what rounding leaves of a row's first count for the next one, so that the total of
    // what stands first in every row is exact: of instructions, unless a profiler before has a
    // count there. No count of a row becomes more than another one that was not less.
    void scale_row(std::span<std::uint64_t> counts, const std::vector<bool>& unscaled,
                   std::uint64_t& left) const;
    // A part of what a row counts, rounded down: the parts are no more than the whole then.
    std::uint64_t scaled_part(std::uint64_t count) const;
    // Whether there are bursts enough to tell errors.
    bool tells_errors() const;
    // Half of the interval in which the event's total lies with a confidence of 95 %, as a part of
    // it; none if there are too few bursts, or if the event does not occur.
    std::optional<double> error(std::size_t event) const;
    // For people.
    std::string description() const;

  private:
    struct Scaled {
        std::uint64_t count, left;
    };
    struct Snapshot {
        std::uint64_t instructions;  // captured so far
        std::vector<std::uint64_t> totals;
    };

    Scaled scaled(std::uint64_t count, std::uint64_t added) const;
    void count(std::uint32_t slot, std::uint32_t block, std::uint64_t counter,
               const CodeTables& code);
    void count_mispredictions(std::uint32_t slot, std::uint32_t block, std::uint64_t counter,
                              const CodeTables& code);
    bool end_burst();
    std::uint64_t target() const;

    std::uint64_t burst_, period_, warm_up_ = 0;
    bool is_point_;
    std::uint64_t stands_for_;  // 0: only for itself
    std::string point_;
    std::set<std::uint32_t> in_burst_;  // slots, where there are warm-ups
    std::map<std::uint32_t, std::vector<std::uint64_t>> counters_;        // by slot and block
    std::vector<std::uint64_t> executions_, warming_;                     // by instruction
    std::map<std::uint32_t, std::vector<std::uint64_t>> mispredicted_;    // as counters_
    std::vector<std::uint64_t> mispredictions_, warming_mispredictions_;  // by block
    std::map<std::uint32_t, std::uint64_t> threads_;                      // executed instructions
    std::uint64_t bursts_ = 0, in_bursts_ = 0, captured_ = 0;
    std::uint64_t bursts_of_group_ = 1, next_group_ = 1;
    std::vector<Snapshot> groups_;  // at their ends
};

}  // namespace assay::collector
