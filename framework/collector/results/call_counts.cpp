#include "framework/collector/results/call_counts.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace assay::collector {
namespace {

auto way(const ContextCalls& calls) {
    return std::tie(calls.caller, calls.site, calls.context);
}

auto way(const Profile::Jumped& jumped) {
    return std::tie(jumped.context, jumped.pc);
}

template <typename Counted>
void add_up(std::vector<Counted>& all) {
    std::sort(all.begin(), all.end(),
              [](const Counted& a, const Counted& b) { return way(a) < way(b); });
    auto last = all.begin();
    for (auto next = all.begin(); next != all.end(); ++next) {
        if (next == last) continue;
        if (way(*next) == way(*last))
            last->number += next->number;
        else
            *++last = *next;
    }
    if (last != all.end()) all.erase(std::next(last), all.end());
}

}  // namespace

std::vector<ContextCalls> added_up(std::vector<ContextCalls> calls) {
    add_up(calls);
    return calls;
}

CallCounts::CallCounts(const CodeTables& code, std::span<const trace_context_t> contexts,
                       std::vector<ContextCalls>& calls, const std::vector<bool>& firsts)
    : code_(code),
      contexts_(contexts),
      calls_(calls),
      firsts_(firsts),
      first_call_(contexts.size() + 1) {
    std::unordered_set<std::uint64_t> direct;
    for (std::uint32_t instr = 0; instr < code.instrs.size(); ++instr)
        if (is_direct_call(instr)) direct.insert(code.instrs[instr].pc);
    for (ContextCalls& each : calls_) {
        ++first_call_[each.caller + 1];
        const bool interrupted = contexts[each.context].flags & TRACE_CONTEXT_SIGNAL;
        if (!interrupted && direct.contains(each.site)) each.number = 0;
    }
    for (std::size_t i = 1; i < first_call_.size(); ++i) first_call_[i] += first_call_[i - 1];
}

bool CallCounts::is_direct_call(std::uint32_t instr) const {
    const auto flags = code_.instrs[instr].flags;
    constexpr unsigned kCountedByTarget = TRACE_INSTR_INDIRECT | TRACE_INSTR_CONDITIONAL;
    return flags & TRACE_INSTR_CALL && !(flags & kCountedByTarget);
}

void CallCounts::add(std::span<const ContextExecutions> all) {
    for (const ContextExecutions& executed : all) {
        if (executed.context >= contexts_.size()) continue;
        const std::uint64_t pc = code_.instrs[executed.first_instr].pc;
        if (firsts_[executed.first_instr] && contexts_[executed.context].function != pc)
            jumped_.push_back({executed.context, pc, executed.executions});
        const std::uint32_t last = executed.first_instr + executed.instr_count - 1;
        if (!is_direct_call(last)) continue;
        const std::uint64_t site = code_.instrs[last].pc;
        const std::span<ContextCalls> calls(
            calls_.begin() + static_cast<std::ptrdiff_t>(first_call_[executed.context]),
            calls_.begin() + static_cast<std::ptrdiff_t>(first_call_[executed.context + 1]));
        const auto is_before = [&](const ContextCalls& each) { return each.site < site; };
        auto call = std::partition_point(calls.begin(), calls.end(), is_before);
        while (call != calls.end() && call->site == site &&
               contexts_[call->context].flags & TRACE_CONTEXT_SIGNAL)
            ++call;
        if (call != calls.end() && call->site == site) call->number += executed.executions;
    }
}

std::vector<Profile::Jumped> CallCounts::jumped() {
    add_up(jumped_);
    return std::move(jumped_);
}

}  // namespace assay::collector
