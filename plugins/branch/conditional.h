// Predictors of conditional branches. docs/reference/profilers/branch.md cites the source of each.
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

}  // namespace branch
