// The tree that translated code keeps of calling contexts, by the functions that it calls.
#include "framework/driver/shared/call_tree.h"
#include "framework/driver/shared/context_words.h"
#include "framework/trace/segment_layout.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace call_tree_test {

using namespace assay;
using driver::CallState;
using driver::CallTree;
using driver::ContextWords;

namespace {

constexpr std::uint64_t kStack = 0x7ffff000, kFrame = 64;
constexpr std::uint64_t kMain = 0x401000, kF = 0x402000, kG = 0x403000, kHandler = 0x404000;

// A thread that calls and returns, with the words of nodes as translated code has them.
class Thread {
  public:
    explicit Thread(std::uint32_t recursion = 1) {
        tree_->initialise(state, nodes_, trace::context_words({}), recursion);
        tree_->begin_thread();
        arrive(kMain, kStack);
    }
    ~Thread() {
        tree_->release();
        munmap(nodes_, trace::kContextsBytes);
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // From `pc`, with the stack pointer `sp` before.
    void call(std::uint64_t pc, std::uint64_t function, std::uint64_t sp) {
        tree_->call({pc, pc + 5, function, 0}, function, sp);
    }
    void arrive(std::uint64_t pc, std::uint64_t sp) { tree_->arrive(pc, sp); }
    void move(std::uint64_t pc, std::uint64_t sp) { tree_->arrive(pc, sp, true); }
    void jump(std::uint64_t pc) { tree_->jump(pc, 0, true); }
    void handle(std::uint64_t interrupted, std::uint64_t sp) {
        tree_->enter_handler(sp, interrupted, kHandler);
    }
    // The functions on the way to the present node, the outermost first, in hexadecimal.
    std::string path() const { return path(state.node->number); }
    std::uint32_t nodes() const { return nodes_->count; }
    std::set<std::uint64_t> functions() const {
        std::set<std::uint64_t> found;
        for (std::uint32_t number = state.node->frame; number != 0;
             number = node(node(number).parent).frame)
            found.insert(node(number).entry);
        return found;
    }

    std::uint64_t calls_at(std::uint64_t site) const {
        std::uint64_t calls = 0;
        for (std::uint32_t number = 0; number < nodes(); ++number)
            if (node(number).site == site) calls += node(number).calls;
        return calls;
    }

    // The lines on the way to the present node, the innermost first.
    std::vector<std::uint64_t> lines() const {
        std::vector<std::uint64_t> found;
        for (std::uint32_t number = state.node->frame; number != 0;
             number = node(node(number).parent).frame)
            if (node(number).kind == trace::ContextNode::kLine) found.push_back(node(number).site);
        return found;
    }

    CallTree& tree() { return *tree_; }

    CallState state{};

  private:
    const trace::ContextNode& node(std::uint32_t number) const {
        const auto* const nodes = reinterpret_cast<const std::byte*>(nodes_);
        return *reinterpret_cast<const trace::ContextNode*>(
            nodes + trace::node_offset(number, trace::context_words({})));
    }
    std::string path(std::uint32_t number) const {
        const trace::ContextNode& frame = node(node(number).frame);
        if (frame.kind == trace::ContextNode::kRoot) return "";
        char name[32];
        std::snprintf(name, sizeof name, "%s%llx",
                      frame.kind == trace::ContextNode::kHandler ? "!" : "/",
                      static_cast<unsigned long long>(frame.entry));
        return path(frame.parent) + name;
    }

    trace::ContextNodes* nodes_ = static_cast<trace::ContextNodes*>(
        mmap(nullptr, trace::kContextsBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    std::unique_ptr<CallTree> tree_{new CallTree{}};
};

}  // namespace

TEST_CASE("call tree: a call and its return") {
    Thread thread;
    CHECK(thread.path().empty());
    thread.call(kMain, kF, kStack);
    CHECK(thread.path() == "/402000");
    thread.call(kF + 8, kG, kStack - kFrame);
    CHECK(thread.path() == "/402000/403000");
    CHECK(trace::range_of(thread.state.node->entry) == kG);
    thread.arrive(kF + 13, kStack - kFrame);
    CHECK(thread.path() == "/402000");
    thread.arrive(kMain + 5, kStack);
    CHECK(thread.path().empty());
    const std::uint32_t nodes = thread.nodes();
    thread.call(kMain, kF, kStack);
    CHECK(thread.path() == "/402000");
    CHECK(thread.nodes() == nodes);
    thread.arrive(kMain + 5, kStack);
    thread.call(kMain + 16, kF, kStack);  // from elsewhere
    CHECK(thread.nodes() == nodes + 1);
}

TEST_CASE("call tree: code in another range belongs to the frame") {
    Thread thread;
    thread.call(kMain, kF, kStack);
    const trace::ContextNode* const entered = thread.state.node;
    thread.jump(kF + trace::kCodeRange);
    CHECK(thread.path() == "/402000");
    CHECK(thread.state.node != entered);
    CHECK(trace::range_of(thread.state.node->entry) == kF + trace::kCodeRange);
    thread.jump(kF);
    CHECK(thread.state.node == entered);
    // A call whose last byte is its range's comes back to the next one.
    thread.call(kF + trace::kCodeRange - 5, kG, kStack - kFrame);
    thread.arrive(kF + trace::kCodeRange, kStack - kFrame);
    CHECK(trace::range_of(thread.state.node->entry) == kF + trace::kCodeRange);
    CHECK(thread.path() == "/402000");
}

TEST_CASE("call tree: a recursion is in a context whose path has the same functions") {
    Thread thread;
    thread.call(kMain, kF, kStack);
    const trace::ContextNode* const first = thread.state.node;
    thread.call(kF + 16, kF, kStack - kFrame);
    CHECK(thread.state.node == first);
    thread.call(kF + 8, kG, kStack - 2 * kFrame);
    thread.call(kG + 8, kF, kStack - 3 * kFrame);
    CHECK(thread.path() == "/402000/403000/402000");
    const trace::ContextNode* const with_g = thread.state.node;
    thread.arrive(kG + 13, kStack - 3 * kFrame);
    CHECK(thread.path() == "/402000/403000");
    thread.call(kG + 8, kF, kStack - 3 * kFrame);
    std::uint64_t sp = kStack - 3 * kFrame;
    std::uint32_t nodes = 0;
    for (int i = 0; i < 50'000; ++i) {
        if (i == 1) nodes = thread.nodes();
        thread.call(kF + 16, kF, sp -= kFrame);
        CHECK(thread.state.node == with_g);
        thread.call(kF + 8, kG, sp -= kFrame);
        CHECK(thread.path() == "/402000/403000");
        thread.call(kG + 8, kF, sp -= kFrame);
    }
    CHECK(thread.state.node == with_g);
    CHECK(thread.nodes() == nodes);
    CHECK(thread.calls_at(kMain) == 1);
    for (const std::uint64_t site : {kF + 16, kF + 8}) CHECK(thread.calls_at(site) == 50'001);
    CHECK(thread.calls_at(kG + 8) == 50'002);
    // All at once, as longjmp(3) does.
    thread.move(kMain + 32, kStack);
    CHECK(thread.path().empty());
}

TEST_CASE("call tree: so many calls within one another are kept apart") {
    Thread thread(3);
    std::uint64_t sp = kStack;
    thread.call(kMain, kF, sp);
    for (int i = 0; i < 4; ++i) thread.call(kF + 16, kF, sp -= kFrame);
    CHECK(thread.path() == "/402000/402000/402000");
    thread.call(kF + 32, kG, sp -= kFrame);
    thread.call(kG + 16, kF, sp -= kFrame);
    CHECK(thread.path() == "/402000/402000/402000/403000/402000");
}

TEST_CASE("call tree: what a handler calls is no recursion of what it interrupted") {
    Thread thread;
    thread.call(kMain, kF, kStack);
    thread.handle(kF + 3, kStack - 1024);
    CHECK(thread.path() == "/402000!404000");
    thread.call(kHandler + 1, kF, kStack - 1024 - kFrame);
    CHECK(thread.path() == "/402000!404000/402000");
    thread.arrive(kF + 3, kStack - kFrame);  // sigreturn(2)
    CHECK(thread.path() == "/402000");
}

TEST_CASE("call tree: a handler on a stack of its own") {
    constexpr std::uint64_t kAside = 0x10000000;
    Thread thread;
    thread.call(kMain, kF, kStack);
    thread.handle(kF + 3, kAside);
    CHECK(thread.path() == "/402000!404000");
    thread.arrive(kF + 3, kStack - kFrame);
    CHECK(thread.path() == "/402000");
    thread.arrive(kMain + 5, kStack);
    CHECK(thread.path().empty());
}

TEST_CASE("call tree: coroutines have stacks of their own") {
    constexpr std::uint64_t kOther = 0x20000000;
    Thread thread;
    thread.call(kMain, kF, kStack);
    thread.move(kG, kOther);
    CHECK(thread.path().empty());
    thread.call(kG + 8, kG + 64, kOther - kFrame);
    CHECK(thread.path() == "/403040");
    for (int i = 0; i < 3; ++i) {
        thread.move(kF + 8, kStack - kFrame);
        CHECK(thread.path() == "/402000");
        thread.move(kG + 72, kOther - 2 * kFrame);
        CHECK(thread.path() == "/403040");
    }
}

TEST_CASE("call tree: a call ends the frames that are gone, however they were left") {
    Thread thread;
    thread.call(kMain, kF, kStack);
    thread.call(kF + 8, kG, kStack - kFrame);
    // `pop` has taken the return address, and what follows is no return.
    thread.call(kF + 32, kG + 64, kStack - kFrame);
    CHECK(thread.path() == "/402000/403040");
}

TEST_CASE("call tree: a stack that was moved keeps its frames") {
    constexpr std::uint64_t kScheduler = 0x10000000, kOld = 0x20001000, kNew = 0x30009000;
    constexpr std::uint64_t kMore = 0x405000, kGo = 0x406000;
    Thread thread;
    thread.move(kMain, kScheduler);
    thread.move(kGo, kOld);
    thread.jump(kMain + 64);
    thread.call(kMain + 64, kF, kOld - kFrame);
    thread.call(kF + 8, kMore, kOld - 2 * kFrame);
    thread.move(kMore, kScheduler);
    thread.call(kMore + 8, kG, kScheduler - kFrame);
    thread.move(kGo, kNew - 2 * kFrame);
    SUBCASE("control returns from the call that has left it") {
        thread.jump(kF + 13);
        CHECK(thread.path() == "/402000");
        thread.arrive(kMain + 69, kNew - kFrame);
        CHECK(thread.path().empty());
    }
    SUBCASE("another stack has begun") {
        thread.jump(kF + 32);
        CHECK(thread.path().empty());
    }
}

TEST_CASE("call tree: inclusive counts of random calls are exact") {
    constexpr std::uint64_t kFunctions = 12, kCalls = 50'000, kDeepest = 40;
    Thread thread;
    std::vector<std::uint64_t> functions;  // on the stack
    std::map<std::uint64_t, int> real, counted;
    std::uint64_t random = 1;
    const auto next = [&] {
        return (random = random * 6364136223846793005U + 1442695040888963407U) >> 33;
    };
    std::uint64_t sp = kStack;
    for (std::uint64_t i = 0; i < kCalls; ++i) {
        if (functions.size() < kDeepest && (functions.empty() || next() % 2 == 0)) {
            const std::uint64_t from = functions.empty() ? kMain : functions.back();
            const std::uint64_t to = (from / 0x1000 * 3 + next() % 3) % kFunctions;
            functions.push_back(kF + to * 0x1000);
            thread.call(from + 8, functions.back(), sp -= kFrame);
        } else {
            functions.pop_back();
            thread.arrive((functions.empty() ? kMain : functions.back()) + 13, sp);
            sp += kFrame;
        }
        for (const std::uint64_t function : std::set(functions.begin(), functions.end()))
            ++real[function];
        for (const std::uint64_t function : thread.functions()) ++counted[function];
    }
    CHECK(counted == real);
    CHECK(thread.nodes() < 10'000);
}

TEST_CASE("interpreter: lines of many positions") {
    constexpr std::uint64_t kPositions = 100'000;
    driver::Interpreter interpreter;
    CHECK(interpreter.line_at(7) == 0);
    for (std::uint64_t i = 1; i <= kPositions; ++i) CHECK(!interpreter.set_line(i * 2, i / 3));
    bool equal = true;
    for (std::uint64_t i = 1; i <= kPositions; ++i)
        equal &= interpreter.line_at(i * 2) == i / 3 && interpreter.line_at(i * 2 + 1) == 0;
    CHECK(equal);
    CHECK(!interpreter.set_line(0, 1));
    CHECK(interpreter.line_at(0) == 0);
    CHECK(!interpreter.set_line(12, 2));
    CHECK(interpreter.set_line(12, 0));
    interpreter.set_function(0x1000, 0x1100, 0x38);
    CHECK(interpreter.stores_position(0x10ff, 0x38));
    CHECK(!interpreter.stores_position(0x10ff, 0x30));
    CHECK(!interpreter.stores_position(0x1100, 0x38));
}

// Functions of kF to kF + 2 * 0x1000 are interpreters. Line i of a program has the positions i * 2
// and i * 2 + 1. Calls of others may be recursive.
TEST_CASE("call tree: counts of random lines are exact") {
    constexpr std::uint64_t kFunctions = 6, kInterpreters = 2, kSteps = 100'000, kDeepest = 40;
    constexpr std::uint64_t kLines = 5, kPositions = 0x10000, kLine = 0x900000;
    driver::Interpreter interpreter;
    for (std::uint64_t i = 0; i < kLines * 2; ++i)
        CHECK(!interpreter.set_line(kPositions + i, kLine + i / 2));
    Thread thread;
    thread.tree().follow_lines(interpreter);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> frames;  // functions and their lines
    std::uint64_t random = 1;
    const auto next = [&] {
        return (random = random * 6364136223846793005U + 1442695040888963407U) >> 33;
    };
    std::uint64_t sp = kStack;
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < kSteps; ++i) {
        const std::uint64_t kind = next() % 4;
        if (kind <= 1 && !frames.empty() && frames.back().first < kF + kInterpreters * 0x1000) {
            const std::uint64_t position = next() % (kLines * 2);
            thread.tree().go_to_line(kPositions + position);
            frames.back().second = kLine + position / 2;
        } else if (frames.size() < kDeepest && (frames.empty() || kind % 2 == 0)) {
            const std::uint64_t from = frames.empty() ? kMain : frames.back().first;
            frames.emplace_back(kF + next() % kFunctions * 0x1000, 0);
            thread.call(from + 8, frames.back().first, sp -= kFrame);
        } else {
            frames.pop_back();
            thread.arrive((frames.empty() ? kMain : frames.back().first) + 13, sp);
            sp += kFrame;
        }
        std::set<std::uint64_t> functions, lines;
        std::uint64_t innermost = 0;
        for (const auto& [function, line] : frames) {
            functions.insert(function);
            if (line != 0) lines.insert(innermost = line);
        }
        const std::vector<std::uint64_t> found = thread.lines();
        wrong += functions != thread.functions() || lines != std::set(found.begin(), found.end()) ||
                 innermost != (found.empty() ? 0 : found.front());
    }
    CHECK(wrong == 0);
    // Another line at a position.
    CHECK(interpreter.set_line(kPositions, kLine + 1));
    thread.tree().forget_steps();
    while (!frames.empty()) {
        frames.pop_back();
        thread.arrive((frames.empty() ? kMain : frames.back().first) + 13, sp);
        sp += kFrame;
    }
    thread.call(kMain, kF, kStack);
    thread.tree().go_to_line(kPositions);
    CHECK(thread.lines() == std::vector{kLine + 1});
}

TEST_CASE("call tree: many stacks") {
    Thread thread;
    thread.call(kMain, kF, kStack);
    constexpr std::uint64_t kStacks = 70'000, kApart = 64 * 1024;
    for (std::uint64_t i = 1; i <= kStacks; ++i) {
        thread.move(kG, 0x100000000 + i * kApart);
        thread.call(kG + 8, kG + 64, 0x100000000 + i * kApart - kFrame);
    }
    thread.move(kG + 64, 0x100000000 + (kStacks - 1) * kApart - 2 * kFrame);
    CHECK(thread.path() == "/403040");
}

TEST_CASE("call tree: the counters of a block lie in one layer of the node's words") {
    const trace::Spec spec{.captures = trace::kCapturePredictions};
    const std::uint32_t counters = trace::counters(spec);
    REQUIRE(counters > 1);
    ContextWords words;
    std::uint32_t blocks = 0, next = trace::kFirstContextWord;
    for (;; ++blocks) {
        const std::uint8_t code = 0x90;
        const std::uint32_t word = words.of_block(spec, kMain, kMain + blocks, {&code, 1});
        if (word == 0) break;
        CHECK(word >= next);
        next = word + counters;
        CHECK(trace::word_offset(word) + (counters - 1) * sizeof(std::uint64_t) ==
              trace::word_offset(next - 1));
        words.of_way(spec, kMain, kMain + blocks, 0);
    }
    CHECK(blocks > 20);
    CHECK(next <= trace::context_words(spec));
}

TEST_CASE("call tree: a way is kept in a word of the node that it leads from") {
    Thread thread;
    constexpr std::uint64_t kWord = trace::kFirstContextWord * sizeof(std::uint64_t);
    const CallState& state = thread.state;
    auto* const from = reinterpret_cast<unsigned char*>(state.node);
    CallTree& tree = thread.tree();
    tree.call({kMain, kMain + 5, kF, kWord}, kF, kStack);
    CHECK(*reinterpret_cast<trace::ContextNode**>(from + kWord) == state.node);
}

}  // namespace call_tree_test
