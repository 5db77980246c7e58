// Predictors of the targets of indirect jumps and calls, and of returns.
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
    // Predicts the target of the branch at `pc`, then learns the real one. Returns the prediction.
    virtual std::uint64_t predict(std::uint64_t pc, std::uint64_t target) = 0;
    // Learns the outcome of a conditional branch.
    virtual void note_outcome(bool taken) = 0;
    virtual std::string describe() const = 0;
};

// `name` is "last", "target-cache" or "ittage"; nullptr for any other name. Tables have
// 2^`table_bits` entries, or the usual size for 0.
std::unique_ptr<TargetPredictor> target_predictor(std::string_view name, unsigned table_bits);

// Predicts returns: the stack of the addresses after the latest `depth` calls that have not
// returned. When it is full, it forgets the oldest address. When it is empty, it predicts 0. C. F.
// Webb, "Subroutine call/return stack", IBM Technical Disclosure Bulletin 30(11), 1988.
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
