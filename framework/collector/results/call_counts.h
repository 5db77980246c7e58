// Counts how often contexts were entered. The driver counts indirect calls and interruptions
// itself. A direct call was executed as often as its instruction, and a function that was reached
// by a jump as often as its first instruction.
#pragma once

#include "framework/collector/results/profile.h"
#include "framework/collector/results/shares.h"
#include "framework/collector/trace/segment.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::collector {

// Sorts the calls, and adds up those of the same contexts and site.
std::vector<ContextCalls> added_up(std::vector<ContextCalls> calls);

class CallCounts {
  public:
    // Sets the numbers of direct calls in `calls`, a result of added_up(). `firsts`: by
    // instruction, whether it is the first one of a function. All arguments must live longer.
    CallCounts(const CodeTables& code, std::span<const trace_context_t> contexts,
               std::vector<ContextCalls>& calls, const std::vector<bool>& firsts);

    void add(std::span<const ContextExecutions> all);
    // Called after the last add().
    std::vector<Profile::Jumped> jumped();

  private:
    bool is_direct_call(std::uint32_t instr) const;

    const CodeTables& code_;
    std::span<const trace_context_t> contexts_;
    std::vector<ContextCalls>& calls_;
    const std::vector<bool>& firsts_;
    std::vector<std::size_t> first_call_;  // by caller, in calls_
    std::vector<Profile::Jumped> jumped_;
};

}  // namespace assay::collector
