// Calling contexts and counts from made-up nodes in a trace segment.
#include "framework/collector/trace/executed_contexts.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

namespace executed_contexts_test {

using namespace assay;
using collector::ContextTree;
using collector::ExecutedContexts;
using trace::ContextNode;

namespace {

constexpr std::uint64_t kMain = 0x401000, kF = 0x402000;

class Program {
  public:
    explicit Program(std::uint32_t captures = trace::kCaptureBlockCounts) {
        segment.control().spec.captures = captures | trace::kCaptureContexts;
        words_ = trace::context_words(segment.control().spec);
    }

    // A block, which is counted in that word. `executions`: of the first of its instructions.
    void block(std::uint64_t pc, std::uint16_t word, std::uint64_t executions,
               std::uint32_t instrs = 1) {
        const auto number = static_cast<std::uint32_t>(blocks_.size());
        blocks_.push_back({pc, static_cast<std::uint32_t>(instrs_.size()), instrs});
        for (std::uint32_t i = 0; i < instrs; ++i) {
            trace_instr_t& instr = instrs_.emplace_back();
            instr.pc = pc + i;
            instr.block = number;
            executions_.push_back(executions);
        }
        put(trace::kContextWordsOffset + number * sizeof word, word);
    }
    // The next node of the slot, whose block counts are those of its first words.
    void node(std::uint32_t slot, ContextNode node, const std::vector<std::uint64_t>& counts = {}) {
        std::uint32_t& count = counts_of_nodes_[slot];
        node.number = count + wrong_number;
        const std::uint64_t nodes = trace::contexts_offset(slot);
        const std::uint64_t at = nodes + trace::node_offset(count, words_);
        put(at, node);
        for (std::uint32_t i = 0; i < counts.size(); ++i)
            put(at + trace::word_offset(trace::kFirstContextWord + i), counts[i]);
        put(nodes, ++count);
    }
    // The root, main, which was called from there, and f, called by main, which has jumped
    // elsewhere.
    void usual_nodes(std::uint32_t slot) {
        node(slot, {.kind = ContextNode::kRoot});
        node(slot, {.entry = kMain, .site = 0x400100, .frame = 1, .kind = ContextNode::kCall}, {1});
        node(slot,
             {.entry = kF, .site = kMain + 8, .parent = 1, .frame = 2, .kind = ContextNode::kCall},
             {30, 2});
        node(slot, {.entry = kF + 256, .parent = 2, .frame = 2, .kind = ContextNode::kJump}, {5});
    }
    void usual_blocks() {
        block(kMain, kWord, 1);
        block(kF, kWord, 30);
        block(kF + 4, kWord + 1, 2);
        block(kF + 256, kWord, 5);
    }

    using Counted = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;
    std::vector<Counted> counts(std::uint32_t slots) {
        std::vector<Counted> found;
        contexts.enter_all(slots);
        contexts.for_each(slots, {code(), executions_, {}, left_early},
                          [&](const ExecutedContexts::Executed& executed) {
                              found.emplace_back(executed.context, executed.block,
                                                 executed.executions);
                              lengths.push_back(executed.instr_count);
                          });
        std::sort(found.begin(), found.end());
        return found;
    }
    collector::CodeTables code() const { return {blocks_, instrs_, sites}; }

    static constexpr std::uint16_t kWord = trace::kFirstContextWord;
    collector::Segment segment;
    ContextTree tree;
    ExecutedContexts contexts{segment, tree};
    std::vector<trace_site_t> sites;
    std::vector<trace::PartialEvent> left_early;
    std::vector<std::uint32_t> lengths;  // instructions of each of the counts, as they were told
    std::uint32_t wrong_number = 0;

  private:
    template <typename T>
    void put(std::uint64_t offset, const T& value) const {
        REQUIRE(pwrite(segment.fd(), &value, sizeof value, static_cast<off_t>(offset)) ==
                sizeof value);
    }

    std::uint32_t words_;
    std::array<std::uint32_t, 4> counts_of_nodes_{};
    std::vector<trace_block_t> blocks_;
    std::vector<trace_instr_t> instrs_;
    std::vector<std::uint64_t> executions_;
};

using Counts = std::vector<Program::Counted>;

}  // namespace

TEST_CASE("executed contexts: counts of nodes") {
    Program program;
    program.usual_blocks();
    program.usual_nodes(0);
    // What f jumped to is in its context.
    CHECK(program.counts(1) == Counts{{1, 0, 1}, {2, 1, 30}, {2, 2, 2}, {2, 3, 5}});
    CHECK(program.contexts.complete());
    REQUIRE(program.tree.table().size() == 3);
    CHECK(program.tree.table()[2].call == kMain + 8);
    CHECK(program.tree.table()[2].function == kF);
    CHECK(program.tree.table()[2].parent == 1);
}

TEST_CASE("executed contexts: words of a later layer, in nodes of two chunks") {
    constexpr std::uint16_t kLater = trace::kLayerWords + 5;
    const auto later = [](std::uint64_t count) {
        std::vector<std::uint64_t> counts(kLater - Program::kWord + 1);
        counts.back() = count;
        return counts;
    };
    Program program;
    program.usual_blocks();
    program.block(kF + 512, kLater, 15);
    program.usual_nodes(0);
    const ContextNode jump{.entry = kF + 512, .parent = 2, .frame = 2, .kind = ContextNode::kJump};
    program.node(0, jump, later(7));
    for (std::uint32_t number = 5; number < trace::kChunkNodes; ++number) program.node(0, jump);
    program.node(0, jump, later(8));
    CHECK(program.counts(1) ==
          Counts{{1, 0, 1}, {2, 1, 30}, {2, 2, 2}, {2, 3, 5}, {2, 4, 7}, {2, 4, 8}});
    CHECK(program.contexts.complete());
}

TEST_CASE("executed contexts: lines of the program that f interprets") {
    constexpr std::uint64_t kLine = 0x900000;
    Program program;
    program.usual_blocks();
    program.usual_nodes(0);
    for (std::uint32_t line = 0; line < 2; ++line)
        program.node(0,
                     {.entry = kF,
                      .site = kLine + line,
                      .parent = 2,
                      .frame = 4 + line,
                      .kind = ContextNode::kLine},
                     {10});
    program.node(0, {.entry = kF + 256, .parent = 5, .frame = 5, .kind = ContextNode::kJump}, {3});
    CHECK(program.counts(1) ==
          Counts{{1, 0, 1}, {2, 1, 30}, {2, 2, 2}, {2, 3, 5}, {3, 1, 10}, {4, 1, 10}, {4, 3, 3}});
    CHECK(program.contexts.complete());
    REQUIRE(program.tree.table().size() == 5);
    CHECK(program.tree.table()[3].call == kLine);
    CHECK(program.tree.table()[4].call == kLine + 1);
    for (const std::uint32_t context : {3, 4}) {
        CHECK(program.tree.table()[context].function == kF);
        CHECK(program.tree.table()[context].parent == 1);
    }
    CHECK(program.contexts.calls(1).size() == 2);
}

TEST_CASE("executed contexts: a block that was left early counts up to there, in its context") {
    constexpr std::uint32_t kAny = trace::PartialEvent::kAnyNode;
    using Nodes = std::vector<std::uint32_t>;
    // Whether the driver has told the node, could not, or the thread was in another one by then.
    for (const Nodes& nodes : {Nodes{2, 2, 2}, Nodes{kAny, kAny, kAny}, Nodes{2, kAny, 3}}) {
        CAPTURE(nodes[2]);
        Program program;
        program.segment.control().thread_count = 1;
        program.block(kMain, Program::kWord, 1, 2);
        program.block(kF, Program::kWord, 29, 3);
        program.usual_nodes(0);
        program.left_early = {
            {.block = 1, .executed = 2, .counted = 1, .times = 4, .node = nodes[0]},
            {.block = 1, .executed = 0, .counted = 1, .times = 1, .node = nodes[1]},
            {.block = 1, .executed = 1, .counted = 0, .times = 3, .node = nodes[2]}};
        CHECK(program.counts(1) == Counts{{1, 0, 1}, {2, 1, 3}, {2, 1, 4}, {2, 1, 22}});
        std::sort(program.lengths.begin(), program.lengths.end());
        CHECK(program.lengths == std::vector<std::uint32_t>{1, 2, 2, 3});
    }
}

TEST_CASE("executed contexts: those of several slots are one") {
    Program program;
    program.usual_blocks();
    program.usual_nodes(0);
    program.usual_nodes(1);
    const Counts counts = program.counts(2);
    CHECK(counts.size() == 8);
    CHECK(program.tree.table().size() == 3);
}

TEST_CASE("executed contexts: blocks that are alike") {
    Program program;
    program.block(kF, Program::kWord, 20);
    program.block(kF, Program::kWord, 12);
    program.usual_nodes(0);
    CHECK(program.counts(1) == Counts{{2, 0, 20}, {2, 1, 10}});
}

TEST_CASE("executed contexts: of records") {
    Program program(trace::kCaptureBlockCounts | trace::kCaptureReferences);
    program.usual_blocks();
    program.usual_nodes(0);
    program.sites = {
        {0, 8, TRACE_SITE_READ, 0}, {0, 0, TRACE_SITE_CONTEXT, 0}, {0, 0, TRACE_SITE_COUNT, 0}};
    const std::vector<trace_record_t> records = {{0x1000, 0, 3}, {0x1000, 0, 1}, {0, 2, 0},
                                                 {2, 1, 0},      {10, 2, 1},     {0x1000, 0, 0}};
    const auto found = program.contexts.follow(0, records, program.code());
    CHECK(std::vector(found.begin(), found.end()) == std::vector<std::uint32_t>{2, 1, 0, 2, 2, 0});
}

TEST_CASE("executed contexts: contexts have the numbers of their first records") {
    Program program;
    program.usual_nodes(0);
    program.node(
        0, {.entry = kF, .site = kMain + 16, .parent = 1, .frame = 4, .kind = ContextNode::kCall});
    program.sites = {{0, 8, TRACE_SITE_READ, 0}};
    const auto context_of = [&](std::uint32_t node) {
        const trace_record_t record{0x1000, 0, node};
        return program.contexts.follow(0, {&record, 1}, program.code())[0];
    };
    CHECK(context_of(1) == 1);
    CHECK(program.tree.table().size() == 2);
    CHECK(context_of(4) == 3);
    CHECK(context_of(2) == 2);
    CHECK(context_of(400) == 0);
    CHECK_FALSE(program.contexts.complete());
}

TEST_CASE("executed contexts: what the driver had no room for") {
    Program program;
    program.block(kMain, Program::kWord, 1);
    program.node(0, {.kind = ContextNode::kRoot});
    program.node(0, {.entry = kMain, .frame = 1, .kind = ContextNode::kCall, .beyond = 1}, {7});
    CHECK(program.counts(1).empty());
    CHECK_FALSE(program.contexts.complete());
}

TEST_CASE("executed contexts: the program has written over nodes") {
    const ContextNode call{.entry = kMain, .frame = 1, .kind = ContextNode::kCall};
    ContextNode other_frame = call, later_parent = call, jumps_ahead = call, unknown = call,
                another_root = call, line_of_root = call;
    line_of_root.kind = ContextNode::kLine;
    other_frame.frame = 0;
    later_parent.parent = 5;
    jumps_ahead.kind = ContextNode::kJump;
    unknown.kind = static_cast<ContextNode::Kind>(17);
    another_root.kind = ContextNode::kRoot;
    for (const ContextNode& node :
         {other_frame, later_parent, jumps_ahead, unknown, another_root, line_of_root}) {
        Program program;
        program.block(kMain, Program::kWord, 1);
        program.node(0, {.kind = ContextNode::kRoot});
        program.node(0, node, {7});
        CHECK(program.counts(1).empty());
        CHECK_FALSE(program.contexts.complete());
    }
    Program program;
    program.wrong_number = 1;
    program.usual_nodes(0);
    CHECK(program.counts(1).empty());
    CHECK_FALSE(program.contexts.complete());
}

}  // namespace executed_contexts_test
