// Calling contexts from made-up calls and returns, on stacks at made-up addresses.
#include "framework/collector/results/counts.h"
#include "framework/collector/trace/contexts.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstring>

namespace shadow_stack_test {

using namespace assay::collector;

namespace {

// What is called; its calls are at addresses near it.
enum Function : std::uint64_t { kMain = 0x1000, kA = 0x2000, kB = 0x3000, kC = 0x4000 };
using Path = std::vector<std::uint64_t>;

constexpr std::uint64_t kStack = 0x7f'0000'0000, kOther = 0x7e'0000'0000;
constexpr std::uint64_t kCall = 48;  // how far apart frames are here

class Setup {
  public:
    Setup() {
        for (const std::uint64_t function : {kMain, kA, kB, kC}) add_direct_call(function);
        // Instruction 4: any other, with a site of each kind.
        instrs_.push_back({0x9000, 4, 2, TRACE_INSTR_INDIRECT, 0, {}, 0});
        for (std::uint8_t kind = 0; kind <= TRACE_SITE_INTERRUPTED; ++kind)
            sites_.push_back({4, 0, kind, 0});
    }

    // Each makes one record of `thread`.
    void call(std::uint64_t sp, Function function) {
        record(static_cast<std::uint32_t>(function / 0x1000 - 1), sp);
    }
    void call_indirect(std::uint64_t sp, std::uint64_t function) {
        event(TRACE_SITE_CALL, sp);
        event(TRACE_SITE_TARGET, function);
    }
    void returned(std::uint64_t sp) { event(TRACE_SITE_RETURN, sp); }
    void set_stack(std::uint64_t sp) { event(TRACE_SITE_STACK, sp); }
    void signal(std::uint64_t address, std::uint64_t interrupted) {
        event(TRACE_SITE_SIGNAL, address);
        event(TRACE_SITE_INTERRUPTED, interrupted);
    }
    // The functions of the context that a reference has now, the outermost first.
    Path path() {
        event(TRACE_SITE_READ, 0);
        Path functions;
        for (std::uint32_t i = context_; i != 0; i = contexts()[i].parent)
            functions.push_back(contexts()[i].function);
        std::reverse(functions.begin(), functions.end());
        return functions;
    }
    std::uint32_t context() const { return context_; }
    std::span<const trace_context_t> contexts() const { return stacks.contexts().table(); }

    ShadowStacks stacks;
    std::uint32_t thread = 0;

  private:
    // Site 0 to 3.
    void add_direct_call(std::uint64_t function) {
        const auto index = static_cast<std::uint32_t>(instrs_.size());
        trace_instr_t instr{function + 0x100, index, 5, TRACE_INSTR_CALL, 0xe8, {0xe8}, 0};
        const std::int32_t distance = -0x105;
        std::memcpy(instr.bytes + 1, &distance, sizeof distance);
        instrs_.push_back(instr);
        sites_.push_back({index, 0, TRACE_SITE_CALL, 0});
    }
    void event(std::uint8_t kind, std::uint64_t value) { record(4U + kind, value); }
    void record(std::uint32_t site, std::uint64_t value) {
        const trace_record_t one{value, site, 0};
        context_ = stacks.follow(thread, {&one, 1}, {{}, instrs_, sites_})[0];
    }

    std::vector<trace_instr_t> instrs_;
    std::vector<trace_site_t> sites_;
    std::uint32_t context_ = 0;
};

}  // namespace

TEST_CASE("calls enter contexts, returns leave them") {
    Setup setup;
    CHECK(setup.path().empty());
    setup.call(kStack, kMain);
    setup.call(kStack - kCall, kA);
    CHECK(setup.path() == Path{kMain, kA});
    const std::uint32_t first = setup.context();
    setup.returned(kStack - kCall);
    CHECK(setup.path() == Path{kMain});
    setup.call_indirect(kStack - kCall, kB);
    CHECK(setup.path() == Path{kMain, kB});
    setup.returned(kStack - kCall);
    setup.call(kStack - kCall, kA);
    CHECK(setup.path() == Path{kMain, kA});
    CHECK(setup.context() == first);
    const trace_context_t& context = setup.contexts()[first];
    CHECK(context.call == kA + 0x100);
    CHECK(context.flags == 0);
}

TEST_CASE("a return that removes arguments, and one to elsewhere") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.call(kStack - kCall, kA);
    setup.returned(kStack - kCall + 16);  // ret 16
    CHECK(setup.path() == Path{kMain});
    setup.call(kStack - kCall, kA);
    setup.returned(kStack - 2 * kCall);  // push, ret: a jump
    CHECK(setup.path() == Path{kMain, kA});
}

TEST_CASE("a longjmp leaves the frames below it") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.call(kStack - kCall, kA);
    setup.call(kStack - 2 * kCall, kB);
    setup.call(kStack - 3 * kCall, kC);
    setup.set_stack(kStack - kCall - 8);  // within A
    CHECK(setup.path() == Path{kMain, kA});
    setup.set_stack(kStack - 8);
    CHECK(setup.path() == Path{kMain});
}

TEST_CASE("frames that nobody said were left are found by the next call") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.call(kStack - kCall, kA);
    setup.call(kStack - 2 * kCall, kB);
    setup.call(kStack - kCall, kC);
    CHECK(setup.path() == Path{kMain, kC});
}

TEST_CASE("an exception is caught three frames above, from the unwinder's own frames") {
    Setup setup;
    setup.call(kStack, kMain);
    for (std::uint64_t i = 1; i <= 3; ++i) setup.call(kStack - i * kCall, kA);
    setup.call(kStack - 4 * kCall, kB);
    setup.call(kStack - 100 * kCall, kC);
    setup.set_stack(kStack - kCall + 8);  // main's, between its frame address and its calls
    CHECK(setup.path() == Path{kMain});
    setup.call(kStack - kCall, kC);
    CHECK(setup.path() == Path{kMain, kC});
}

TEST_CASE("a tail call keeps the frame and the context of the function that it replaces") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.call(kStack - kCall, kA);
    // A jumps to B, which calls C.
    setup.call(kStack - 2 * kCall, kC);
    CHECK(setup.path() == Path{kMain, kA, kC});
    setup.returned(kStack - 2 * kCall);
    setup.returned(kStack - kCall);  // of B, to main
    CHECK(setup.path() == Path{kMain});
}

TEST_CASE("an indirect call that never came to its target is none") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.call_indirect(kStack - kCall, kA);
    CHECK(setup.path() == Path{kMain, kA});
    setup.returned(kStack - kCall);
    // It faults when it reads its target; a handler runs, and it is repeated.
    setup.signal(kStack - 1000, 0x9000);
    CHECK(setup.path().size() == 2);
    setup.set_stack(kStack - kCall);
    setup.call_indirect(kStack - kCall, kB);
    CHECK(setup.path() == Path{kMain, kB});
}

TEST_CASE("signal handlers nest, and return") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.call(kStack - kCall, kA);
    setup.signal(kStack - 2000, 0x2222);
    const std::uint32_t handler = setup.context();
    CHECK(setup.contexts()[handler].flags == TRACE_CONTEXT_SIGNAL);
    CHECK(setup.contexts()[handler].call == 0x2222);
    CHECK(setup.path() == Path{kMain, kA, 0x9000});
    // What it calls is no recursion of what it interrupted.
    setup.call(kStack - 3000, kA);
    CHECK(setup.path() == Path{kMain, kA, 0x9000, kA});
    // The same handler within itself has a context of its own, too.
    setup.signal(kStack - 9000, 0x2333);
    CHECK(setup.path() == Path{kMain, kA, 0x9000, kA, 0x9000});
    setup.returned(kStack - 9000);
    setup.set_stack(kStack - 3050);
    CHECK(setup.path() == Path{kMain, kA, 0x9000, kA});
    setup.returned(kStack - 3000);
    setup.returned(kStack - 2000);
    setup.set_stack(kStack - kCall - 16);
    CHECK(setup.path() == Path{kMain, kA});
}

TEST_CASE("a handler on a stack of its own goes on from what it interrupts") {
    Setup setup;
    setup.call(kStack, kMain);
    for (int i = 0; i < 3; ++i) {
        setup.call(kStack - kCall, kA);
        setup.signal(kOther, 0x2222);
        setup.call(kOther - kCall, kB);
        CHECK(setup.path() == Path{kMain, kA, 0x9000, kB});
        if (i == 0) {
            // By siglongjmp.
            setup.set_stack(kStack - 8);
        } else {
            setup.returned(kOther - kCall);
            setup.returned(kOther);
            CHECK(setup.path() == Path{kMain, kA});
            setup.set_stack(kStack - kCall - 16);
            CHECK(setup.path() == Path{kMain, kA});
            setup.returned(kStack - kCall);
        }
        CHECK(setup.path() == Path{kMain});
    }
    CHECK(setup.stacks.stacks() == 2);
}

TEST_CASE("coroutines on small stacks side by side keep their frames") {
    Setup setup;
    constexpr std::uint64_t kBytes = 8192;
    setup.call(kStack, kMain);
    for (std::uint64_t i = 0; i < 4; ++i) {
        // The first switch, from main, and from one that lies above or below it.
        const std::uint64_t top = kOther + (i ^ 2) * kBytes;
        setup.set_stack(top);
        CHECK(setup.path().empty());
        setup.call(top - kCall, kA);
        if (i % 2 != 0) setup.call(top - 2 * kCall, kB);
    }
    for (int turn = 0; turn < 3; ++turn) {
        setup.set_stack(kStack - 100);
        CHECK(setup.path() == Path{kMain});
        for (std::uint64_t i = 0; i < 4; ++i) {
            setup.set_stack(kOther + (i ^ 2) * kBytes - 2 * kCall - 64);
            CHECK(setup.path() == (i % 2 != 0 ? Path{kA, kB} : Path{kA}));
        }
    }
    CHECK(setup.stacks.stacks() == 5);
}

TEST_CASE("a stack that begins where another one did has none of its frames") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.set_stack(kOther);
    setup.call(kOther - kCall, kA);
    setup.set_stack(kStack - 100);
    setup.set_stack(kOther);
    CHECK(setup.path().empty());
    setup.call(kOther - kCall, kB);
    CHECK(setup.path() == Path{kB});
}

TEST_CASE("threads have stacks of their own") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.thread = 1;
    CHECK(setup.path().empty());
    setup.call(kOther, kA);
    CHECK(setup.path() == Path{kA});
    setup.thread = 0;
    CHECK(setup.path() == Path{kMain});
    // Another thread where the first one's stack was.
    setup.thread = 1;
    setup.call(kOther - 9 * kCall, kC);
    setup.thread = 2;
    setup.call(kOther - 5 * kCall, kB);
    CHECK(setup.path() == Path{kB});
    setup.thread = 1;
    CHECK(setup.path().empty());
}

TEST_CASE("a coroutine goes on in another thread") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.set_stack(kOther);
    setup.call(kOther - kCall, kA);
    setup.call(kOther - 2 * kCall, kB);
    setup.set_stack(kStack - 100);
    setup.thread = 1;
    setup.call(kStack / 2, kC);
    setup.set_stack(kOther - 2 * kCall - 16);
    CHECK(setup.path() == Path{kA, kB});
    setup.returned(kOther - 2 * kCall);
    CHECK(setup.path() == Path{kA});
    setup.thread = 0;
    CHECK(setup.path() == Path{kMain});
}

TEST_CASE("a stack that its thread has not left belongs to that thread") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.thread = 1;
    setup.call(kOther, kA);
    setup.call(kOther - kCall, kB);
    setup.thread = 0;
    setup.set_stack(kOther - kCall);  // thread 1 has ended, and its memory is a coroutine's
    CHECK(setup.path().empty());
}

TEST_CASE("a recursion of a million frames has one context") {
    Setup setup;
    setup.call(kStack, kMain);
    for (std::uint64_t i = 1; i <= 1'000'000; ++i) setup.call(kStack - i * kCall, i % 2 ? kA : kB);
    CHECK(setup.path() == Path{kMain, kA, kB});
    CHECK(setup.contexts().size() == 5);  // A is entered without B on the stack, and with it
    for (std::uint64_t i = 1'000'000; i > 1; --i) setup.returned(kStack - i * kCall);
    CHECK(setup.path() == Path{kMain, kA});
    setup.returned(kStack - kCall);
    CHECK(setup.path() == Path{kMain});
}

TEST_CASE("large frames stay on their stack, a stack far away is another one") {
    Setup setup;
    setup.call(kStack, kMain);
    setup.call(kStack - (8 << 20), kA);
    CHECK(setup.path() == Path{kMain, kA});
    setup.call(kOther, kB);
    CHECK(setup.path() == Path{kB});
    setup.returned(kStack - (8 << 20));
    CHECK(setup.path() == Path{kMain});
}

TEST_CASE("more stacks than are kept") {
    Setup setup;
    setup.call(kStack, kMain);
    for (std::uint64_t i = 0; i < ShadowStacks::kMostStacks + 100; ++i) {
        setup.set_stack(kOther - i * 65'536);
        setup.call(kOther - i * 65'536 - kCall, kA);
    }
    CHECK(setup.path() == Path{kA});
    CHECK(setup.stacks.stacks() <= ShadowStacks::kMostStacks);
}

TEST_CASE("calls beyond the greatest number of contexts stay in their caller's") {
    ContextTree tree(3);
    std::uint32_t context = 0;
    for (std::uint64_t i = 1; i <= 3; ++i) context = tree.enter(context, i, 100 + i, 0);
    CHECK(tree.table().size() == 4);
    CHECK_FALSE(tree.overflowed());
    CHECK(tree.enter(context, 4, 104, 0) == context);
    CHECK(tree.overflowed());
    CHECK(tree.enter(0, 1, 101, 0) == 1);
}

TEST_CASE("contexts: when there are too many counts, instructions are not told apart") {
    GroupCounts counts(2);
    counts.add(7, 5, 0, 10);
    counts.add(3, 1, 1, 20);
    counts.add(3, 2, 1, 30);
    counts.add(3, 4, 0, 40);
    counts.add(7, 5, 1, 50);
    const std::vector<GroupCounts::Row> rows = counts.sorted_rows();
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].group == 3);
    CHECK(rows[0].instruction == 1);
    CHECK(rows[1].instruction == GroupCounts::kAnyRow);
    const auto of = [&](std::size_t row) {
        std::vector<std::uint64_t> columns(2);
        counts.each_count(rows[row].number, [&](std::size_t column, std::uint64_t count) {
            columns[column] = count;
        });
        return columns;
    };
    CHECK(of(1) == std::vector<std::uint64_t>{40, 30});
    CHECK(rows[2].group == 7);
    CHECK(of(2) == std::vector<std::uint64_t>{10, 50});
}

TEST_CASE("contexts: any number of counts, each once") {
    GroupCounts counts;
    CHECK(counts.empty());
    counts.add(1, 1, 0, 0);
    CHECK(counts.empty());
    for (std::uint32_t round = 0; round < 2; ++round)
        for (std::uint32_t i = 0; i < 10'000; ++i) counts.add(i / 7, i % 7, i % 3, 1 + round);
    counts.change_counts([](std::size_t column, std::uint64_t count) { return count * column; });
    const std::vector<GroupCounts::Row> rows = counts.sorted_rows();
    REQUIRE(rows.size() == 10'000);
    for (std::uint32_t i = 0; i < 10'000; ++i) {
        REQUIRE(rows[i].group == i / 7);
        REQUIRE(rows[i].instruction == i % 7);
        counts.each_count(rows[i].number, [&](std::size_t column, std::uint64_t count) {
            REQUIRE(column == i % 3);
            REQUIRE(count == 3 * column);
        });
    }
}

}  // namespace shadow_stack_test
