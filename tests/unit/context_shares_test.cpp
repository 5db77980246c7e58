// Shares of contexts in counts of made-up instructions.
#include "framework/collector/results/shares.h"

#include <doctest/doctest.h>
#include <chrono>
#include <map>
#include <random>
#include <utility>

namespace context_shares_test {

using namespace assay::collector;

namespace {

enum Column : std::size_t { kInstructions, kReads, kMispredicted, kColumns };

// Blocks of instructions whose row of the database is their index, unless said otherwise.
struct Program {
    std::vector<trace_block_t> blocks;
    std::vector<trace_instr_t> instrs;
    std::vector<std::uint64_t> executions, mispredictions;
    std::vector<std::uint32_t> rows, alike;
    std::vector<std::uint64_t> counts;

    void add_block(std::uint32_t instr_count, std::uint64_t executed,
                   std::uint64_t mispredicted = 0) {
        const auto first = static_cast<std::uint32_t>(instrs.size());
        const auto block = static_cast<std::uint32_t>(blocks.size());
        blocks.push_back({first, first, instr_count});
        mispredictions.push_back(mispredicted);
        for (std::uint32_t i = first; i < first + instr_count; ++i) {
            instrs.push_back({i, block, 1, 0, 0, {}, 0});
            executions.push_back(executed);
            rows.push_back(i);
            alike.push_back(i);
            counts.resize(counts.size() + kColumns);
            count(i, kInstructions) = executed;
        }
    }
    std::uint64_t& count(std::uint32_t row, std::size_t column) {
        return counts[row * kColumns + column];
    }
    ExecutionShares shares() const {
        return ExecutionShares({{blocks, instrs, {}}, executions, mispredictions, rows}, counts,
                               kColumns, alike);
    }
};

using Counted = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint64_t>>;

// By context and row.
Counted counted(const GroupCounts& counts) {
    Counted found;
    for (const GroupCounts::Row& row : counts.sorted_rows()) {
        std::vector<std::uint64_t>& own = found[{row.group, row.instruction}];
        own.resize(kColumns);
        counts.each_count(row.number,
                          [&](std::size_t column, std::uint64_t count) { own[column] = count; });
    }
    return found;
}

Counted shared(const Program& program, const std::vector<ContextExecutions>& executed) {
    ExecutionShares shares = program.shares();
    GroupCounts counts;
    shares.add(executed, counts);
    return counted(counts);
}

}  // namespace

TEST_CASE("shares: of a multiple of the executions, by executions") {
    Program program;
    program.add_block(2, 10);
    program.count(1, kReads) = 20;
    // 3 of the 10 are outside of all calls.
    CHECK(shared(program, {{1, 0, 2, 4, 0}, {2, 0, 2, 3, 0}, {0, 0, 2, 3, 0}}) ==
          Counted{{{0, 0}, {3, 0, 0}},
                  {{0, 1}, {3, 6, 0}},
                  {{1, 0}, {4, 0, 0}},
                  {{1, 1}, {4, 8, 0}},
                  {{2, 0}, {3, 0, 0}},
                  {{2, 1}, {3, 6, 0}}});
}

TEST_CASE("shares: of mispredictions, by those of the block's last instruction") {
    Program program;
    program.add_block(2, 10, 7);
    program.count(0, kMispredicted) = 7;  // by what is not known
    program.count(1, kMispredicted) = 7;
    CHECK(shared(program, {{1, 0, 2, 6, 2}, {2, 0, 2, 4, 5}}) ==
          Counted{
              {{1, 0}, {6, 0, 0}}, {{1, 1}, {6, 0, 2}}, {{2, 0}, {4, 0, 0}}, {{2, 1}, {4, 0, 5}}});
}

TEST_CASE("shares: what is a multiple of neither is in no context") {
    Program program;
    program.add_block(1, 10, 4);
    program.count(0, kReads) = 15;
    CHECK(shared(program, {{1, 0, 1, 10, 4}}) == Counted{{{1, 0}, {10, 0, 0}}});
}

TEST_CASE("shares: of an instruction whose executions differ, only what each has once") {
    Program program;
    program.add_block(1, 10);
    program.instrs[0].flags = TRACE_INSTR_VARIABLE;
    program.count(0, kReads) = 20;
    CHECK(shared(program, {{1, 0, 1, 10, 0}}) == Counted{{{1, 0}, {10, 0, 0}}});
}

TEST_CASE("shares: instructions of the same functions are counted as one") {
    Program program;
    program.add_block(3, 10);
    program.add_block(1, 5);
    program.count(2, kReads) = 10;
    program.alike = {0, 0, 2, 0};
    CHECK(shared(program, {{1, 0, 3, 4, 0}, {1, 3, 1, 5, 0}}) ==
          Counted{{{1, 0}, {13, 0, 0}}, {{1, 2}, {4, 4, 0}}});
}

TEST_CASE("shares: an instruction of two blocks has one row") {
    Program program;
    program.add_block(2, 10);
    program.add_block(1, 5);
    program.rows[2] = 1;
    program.count(1, kInstructions) = 15;
    program.count(2, kInstructions) = 0;
    CHECK(shared(program, {{1, 0, 2, 10, 0}, {2, 2, 1, 5, 0}}) ==
          Counted{{{1, 0}, {10, 0, 0}}, {{1, 1}, {10, 0, 0}}, {{2, 1}, {5, 0, 0}}});
}

TEST_CASE("shares: blocks that were left early") {
    Program program;
    program.add_block(3, 10);
    program.executions[2] = program.count(2, kInstructions) = 8;
    CHECK(shared(program, {{1, 0, 3, 8, 0}, {1, 0, 2, 2, 0}}) ==
          Counted{{{1, 0}, {10, 0, 0}}, {{1, 1}, {10, 0, 0}}, {{1, 2}, {8, 0, 0}}});
}

TEST_CASE("shares: no more than there is, whatever the contexts say") {
    Program program;
    program.add_block(1, 10, 3);
    program.count(0, kMispredicted) = 3;
    CHECK(shared(program, {{1, 0, 1, 8, 2}, {2, 0, 1, 8, 2}, {3, 0, 1, 8, 2}}) ==
          Counted{{{1, 0}, {8, 0, 2}}, {{2, 0}, {2, 0, 1}}});
}

TEST_CASE("shares: what no profiler has counted has none") {
    Program program;
    program.add_block(2, 10);
    program.rows[0] = SampleDatabase::kNoRow;
    CHECK(shared(program, {{1, 0, 2, 10, 0}}) == Counted{{{1, 1}, {10, 0, 0}}});
}

TEST_CASE("shares: of all contexts they are what was executed in contexts") {
    std::minstd_rand random(1);
    Program program;
    std::vector<ContextExecutions> executed;
    Counted expected;
    for (std::uint32_t block = 0; block < 50; ++block) {
        const std::uint32_t first = block * 4;
        std::uint64_t all = random() % 5;  // outside
        for (std::uint32_t context = 1; context <= 20; ++context) {
            const std::uint64_t times = random() % 100;
            all += times;
            executed.push_back({context, first, 4, times, 0});
            if (times == 0) continue;
            auto& sums = expected[{context, first - first % 16}];
            sums.resize(kColumns);
            sums[kInstructions] += 4 * times;
            sums[kReads] += 2 * times;
        }
        program.add_block(4, all);
        program.count(first + 1, kReads) = 2 * all;
        for (std::uint32_t row = first; row < first + 4; ++row) program.alike[row] = row - row % 16;
    }
    std::shuffle(executed.begin(), executed.end(), random);
    CHECK(shared(program, executed) == expected);
}

}  // namespace context_shares_test
