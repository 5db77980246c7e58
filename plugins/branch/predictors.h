// Predictors of conditional branches, and of the targets of indirect branches.
// docs/reference/profilers/branch.md names their sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace branch {

class ConditionalPredictor {
  public:
    virtual ~ConditionalPredictor() = default;
    // Predicts the branch at `pc`, then learns the outcome. Returns the prediction.
    virtual bool predict(std::uint64_t pc, bool taken) = 0;
    // Describes its tables in one line.
    virtual std::string describe() const = 0;
};

inline constexpr unsigned kMostTableBits = 24;

// `name` is "cachegrind", "bimodal", "gshare", "tournament" or "tage"; nullptr for any other name.
// Tables have 2^`table_bits` entries, or the usual size for 0. Cachegrind's has only one size.
std::unique_ptr<ConditionalPredictor> conditional_predictor(std::string_view name,
                                                            unsigned table_bits);

// A table of 2^bits saturating counters of `width` bits.
class CounterTable {
  public:
    CounterTable(unsigned bits, unsigned width, std::uint8_t initial)
        : mask_((std::uint64_t{1} << bits) - 1),
          most_(static_cast<std::uint8_t>((1U << width) - 1)),
          counters_(std::size_t{1} << bits, initial) {}

    // True if the counter is in the upper half of its range.
    bool predicts(std::uint64_t index) const { return counters_[index & mask_] > most_ / 2; }
    void train(std::uint64_t index, bool up) {
        std::uint8_t& counter = counters_[index & mask_];
        if (up && counter < most_) ++counter;
        if (!up && counter > 0) --counter;
    }

  private:
    std::uint64_t mask_;
    std::uint8_t most_;
    std::vector<std::uint8_t> counters_;
};

// Predictors of the targets of indirect jumps, calls and returns.

class TargetPredictor {
  public:
    virtual ~TargetPredictor() = default;
    // Predicts the target of the branch at `pc`, then learns the actual `target`. Returns the
    // prediction.
    virtual std::uint64_t predict(std::uint64_t pc, std::uint64_t target) = 0;
    // Learns the outcome of a conditional branch.
    virtual void note_outcome(bool taken) = 0;
    virtual std::string describe() const = 0;
};

// `name` is "last", "target-cache" or "ittage"; nullptr for any other name. Tables have
// 2^`table_bits` entries, or the usual size for 0.
std::unique_ptr<TargetPredictor> target_predictor(std::string_view name, unsigned table_bits);

// Predicts returns from the return addresses of the last `depth` calls that have not returned. A
// full stack forgets the oldest address. An empty stack predicts 0. C. F. Webb, "Subroutine
// call/return stack", IBM Technical Disclosure Bulletin 30(11), 1988.
class ReturnStack {
  public:
    explicit ReturnStack(std::size_t depth) : entries_(depth) {}

    void call(std::uint64_t return_pc) {
        top_ = (top_ + 1) % entries_.size();
        entries_[top_] = return_pc;
        if (used_ < entries_.size()) ++used_;
    }
    std::uint64_t predict_return() {
        if (used_ == 0) return 0;
        const std::uint64_t predicted = entries_[top_];
        top_ = (top_ + entries_.size() - 1) % entries_.size();
        --used_;
        return predicted;
    }

  private:
    std::vector<std::uint64_t> entries_;
    std::size_t top_ = 0, used_ = 0;
};

}  // namespace branch
