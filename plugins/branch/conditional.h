// Predictors of conditional branches. docs/reference/profilers/branch.md says where each is from.
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
    // Predicts the branch at `pc`, is told the outcome, and learns from it. Returns the prediction.
    virtual bool predict(std::uint64_t pc, bool taken) = 0;
    // Its tables, in one line.
    virtual std::string describe() const = 0;
};

inline constexpr unsigned kMostTableBits = 24;

// "cachegrind", "bimodal", "gshare", "tournament" or "tage", with tables of 2^`table_bits` entries,
// 0 for what is usual; Cachegrind's has one size only. nullptr if there is none of that name.
std::unique_ptr<ConditionalPredictor> conditional_predictor(std::string_view name,
                                                            unsigned table_bits);

// A table of 2^bits saturating counters of `width` bits.
class CounterTable {
  public:
    CounterTable(unsigned bits, unsigned width, std::uint8_t initial)
        : mask_((std::uint64_t{1} << bits) - 1),
          most_(static_cast<std::uint8_t>((1U << width) - 1)),
          counters_(std::size_t{1} << bits, initial) {}

    // True in the upper half of the counter's range.
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

}  // namespace branch
