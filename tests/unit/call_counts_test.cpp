// How often contexts were entered.
#include "framework/collector/results/call_counts.h"

#include <doctest/doctest.h>
#include <vector>

using assay::collector::CallCounts;
using assay::collector::ContextCalls;
using assay::collector::ContextExecutions;

namespace {

constexpr std::uint64_t kStart = 0x400100, kMain = 0x401000, kF = 0x402000, kG = 0x403000;
constexpr std::uint64_t kDirect = kMain + 8, kIndirect = kF + 16;

}  // namespace

TEST_CASE("call counts: direct calls are executions, others are those of the driver") {
    std::vector<trace_context_t> contexts(4);  // main, f, and a handler before the call in main
    contexts[1].function = kMain;
    contexts[2].function = kF;
    contexts[3].function = kG;
    contexts[3].flags = TRACE_CONTEXT_SIGNAL;
    std::vector<trace_instr_t> instrs(5);
    const std::uint64_t pcs[] = {kMain, kDirect, kF, kIndirect, kG};
    for (std::size_t i = 0; i < instrs.size(); ++i) instrs[i].pc = pcs[i];
    instrs[1].flags = TRACE_INSTR_CALL;
    instrs[3].flags = TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT;
    const std::vector<bool> firsts = {true, false, true, false, true};
    // Two threads have called f by recursion.
    std::vector<ContextCalls> calls = assay::collector::added_up({{1, 2, kDirect, 77},
                                                                  {2, 2, kIndirect, 6},
                                                                  {1, 3, kDirect, 4},
                                                                  {0, 1, kStart, 1},
                                                                  {2, 2, kIndirect, 3}});
    REQUIRE(calls.size() == 4);
    const assay::collector::CodeTables code{{}, instrs, {}};
    CallCounts counts(code, contexts, calls, firsts);
    const std::vector<ContextExecutions> executed = {
        {1, 0, 2, 5, 0},
        {2, 2, 2, 9, 0},
        {1, 1, 1, 1, 0},
        {2, 4, 1, 2, 0},
        {2, 4, 1, 1, 0},
        // Not a call in this context; and a context that did not exist when the calls were read.
        {0, 1, 1, 8, 0},
        {9, 1, 1, 8, 0}};
    counts.add(executed);
    const auto number = [&](std::uint32_t context, std::uint64_t site) {
        for (const ContextCalls& each : calls)
            if (each.context == context && each.site == site) return each.number;
        return std::uint64_t{0};
    };
    CHECK(number(1, kStart) == 1);
    CHECK(number(2, kDirect) == 6);
    CHECK(number(3, kDirect) == 4);
    CHECK(number(2, kIndirect) == 9);
    // f has gone on in g.
    const auto jumped = counts.jumped();
    REQUIRE(jumped.size() == 1);
    CHECK(jumped[0].context == 2);
    CHECK(jumped[0].pc == kG);
    CHECK(jumped[0].number == 3);
}
