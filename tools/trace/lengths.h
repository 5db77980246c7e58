// How long instructions are of which a trace has only the addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace assay::tracing {

// Intel SDM volume 2, section 2.3.11.
inline constexpr unsigned kMostInstructionBytes = 15;

// Judging by what is executed behind them.
class Lengths {
  public:
    void learn(std::uint64_t pc, std::uint64_t next) {
        if (next <= pc || next - pc > kMostInstructionBytes) return;
        std::uint8_t& length = known_.try_emplace(pc, std::uint8_t{UINT8_MAX}).first->second;
        length = std::min(length, static_cast<std::uint8_t>(next - pc));
    }
    std::uint8_t of(std::uint64_t pc, std::uint8_t otherwise) const {
        const auto found = known_.find(pc);
        return found == known_.end() ? otherwise : found->second;
    }

  private:
    std::unordered_map<std::uint64_t, std::uint8_t> known_;
};

}  // namespace assay::tracing
