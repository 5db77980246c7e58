// Estimates of a whole run from the bursts that were captured (--sample; see Bursts of the driver):
// the factor for counts, and the possible error.
//
// The estimate of a total is a ratio estimate: the run has as many events per instruction as the
// bursts (Cochran, Sampling Techniques, 3rd edition 1977, section 6.3; for programs: Wunderlich,
// Wenisch, Falsafi, Hoe, "SMARTS", ISCA 2003). The error is estimated from the difference between
// each burst and the one before, because each burst stands for its own period only (Wolter,
// Introduction to Variance Estimation, 2nd edition 2007, section 8.2, estimator 2). If there are
// many bursts, adjacent bursts form groups, so that profilers are asked less often.
//
// In a replay of a simulation point there is one burst. It stands for the number of instructions
// that follows from the point's weight. The driver counts nothing during its warm-up. Its error is
// not known.
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

    // Sets the length of the warm-up before each burst.
    void warm_up(std::uint64_t instructions) { warm_up_ = instructions; }

    bool wanted() const { return period_ != 0 || is_point_; }
    bool is_point() const { return is_point_; }
    // Sets the text for people about this point and the others.
    void describe_point(std::string description) { point_ = std::move(description); }

    // --- While the program runs.

    // Called with the records of a buffer, after the profilers have processed them. If it returns
    // true, the caller must call totals() with the count of each event so far.
    bool take(std::uint32_t thread, std::uint32_t slot, std::span<const trace_record_t> records,
              const CodeTables& code);
    void totals(std::vector<std::uint64_t> by_event);
    // True if the next buffer of the slot belongs to a warm-up.
    bool is_warm_up(std::uint32_t slot) const { return warm_up_ != 0 && !in_burst_.contains(slot); }
    // Executions in the bursts so far, by index of the instruction, and mispredictions by block.
    std::span<const std::uint64_t> executions() const { return executions_; }
    std::span<const std::uint64_t> mispredictions() const { return mispredictions_; }

    // --- At the end.

    // Sets how many instructions a thread has executed. Needed if the thread did not record its
    // end.
    void executed(std::uint32_t thread, std::uint64_t instructions);
    // take_rest() takes the final counters of a slot's blocks: counts after the last end of a burst
    // or warm-up were not recorded. take_off_warm_up() then subtracts the executions in warm-ups.
    // The captured executions remain.
    void take_rest(std::uint32_t slot, std::span<const std::uint64_t> counters,
                   std::span<const std::uint64_t> mispredictions, const CodeTables& code);
    void take_off_warm_up(std::span<std::uint64_t> executions,
                          std::span<std::uint64_t> mispredictions = {});
    // Instructions that a thread, or all threads, have executed.
    std::uint64_t executed_by(std::uint32_t thread) const;
    std::uint64_t executed() const;
    double factor() const;
    // Scales the counts of a row to the whole run. `left` must be 0 before the first row. It
    // carries the rounding error of the first count of each row to the next row. The total of these
    // first counts is therefore exact. They count instructions, unless an earlier profiler has a
    // count in the row. Scaling keeps the order of the counts of a row.
    void scale_row(std::span<std::uint64_t> counts, const std::vector<bool>& unscaled,
                   std::uint64_t& left) const;
    // Scales a part of a row's count and rounds down: the parts are at most the whole then.
    std::uint64_t scaled_part(std::uint64_t count) const;
    // True if there are enough bursts to estimate errors.
    bool tells_errors() const;
    // Returns half of the 95 % confidence interval of the event's total, as a fraction of the
    // total. Returns nothing if there are too few bursts, or if the event does not occur.
    std::optional<double> error(std::size_t event) const;
    // Text for people.
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
    std::uint64_t stands_for_;  // 0: it stands only for itself
    std::string point_;
    std::set<std::uint32_t> in_burst_;  // slots that are in a burst; used only with warm-ups
    std::map<std::uint32_t, std::vector<std::uint64_t>> counters_;  // by slot and block
    std::vector<std::uint64_t> executions_, warming_;               // by index of the instruction
    std::map<std::uint32_t, std::vector<std::uint64_t>> mispredicted_;    // by slot and block
    std::vector<std::uint64_t> mispredictions_, warming_mispredictions_;  // by block
    std::map<std::uint32_t, std::uint64_t> threads_;                      // executed instructions
    std::uint64_t bursts_ = 0, in_bursts_ = 0, captured_ = 0;
    std::uint64_t bursts_of_group_ = 1, next_group_ = 1;
    std::vector<Snapshot> groups_;  // state at the end of each group
};

}  // namespace assay::collector
