// Predictors of where indirect jumps and calls go, and of where returns do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace branch {

class TargetPredictor {
  public:
    virtual ~TargetPredictor() = default;
    // Predicts where the branch at `pc` goes, is told, and learns from it. Returns the prediction.
    virtual std::uint64_t predict(std::uint64_t pc, std::uint64_t target) = 0;
    // A conditional branch has been executed.
    virtual void note_outcome(bool taken) = 0;
    virtual std::string describe() const = 0;
};

// "last", "target-cache" or "ittage", with tables of 2^`table_bits` entries, 0 for what is usual.
// nullptr if there is none of that name.
std::unique_ptr<TargetPredictor> target_predictor(std::string_view name, unsigned table_bits);

// Where returns go: the addresses behind the calls that have not returned, the latest `depth` of
// them. When it is full the oldest is forgotten; where none is left, it predicts 0.
// C. F. Webb, "Subroutine call/return stack", IBM Technical Disclosure Bulletin 30(11), 1988.
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
