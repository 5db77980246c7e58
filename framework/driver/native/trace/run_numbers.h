// Numbers the data operands of which a thread's runs are kept: trace::Run.
#pragma once

#include "framework/trace/segment_layout.h"

#include <functional>
#include <unordered_map>

namespace assay::native {

class RunNumbers {
  public:
    // What makes several sites those of one operand: an instruction can be in several blocks.
    struct Operand {
        std::uint64_t pc;
        std::uint32_t bytes;
        std::uint8_t kind, number;  // as in trace_site_t

        friend bool operator==(const Operand&, const Operand&) = default;
    };

    // kMaxRuns if there are too many.
    std::uint32_t of(const Operand& operand) {
        const auto known = numbers_.find(operand);
        if (known != numbers_.end()) return known->second;
        if (count() == trace::kMaxRuns) return trace::kMaxRuns;
        return numbers_.emplace(operand, count()).first->second;
    }
    std::uint32_t count() const { return static_cast<std::uint32_t>(numbers_.size()); }

  private:
    struct Hash {
        std::size_t operator()(const Operand& operand) const {
            const std::uint64_t which = std::uint64_t{operand.bytes} << 16 |
                                        std::uint64_t{operand.kind} << 8 | operand.number;
            return std::hash<std::uint64_t>()(operand.pc ^ which << 40);
        }
    };

    std::unordered_map<Operand, std::uint32_t, Hash> numbers_;
};

}  // namespace assay::native
