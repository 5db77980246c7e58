// In which context a replayed thread is, by its records of calls.
#include "framework/driver/replay/replayed_contexts.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <cstddef>
#include <string>
#include <string_view>

namespace replayed_contexts_test {

using namespace assay;

namespace {

constexpr std::uint64_t kStack = 0x7ffff000, kMain = 0x401000, kF = 0x402000, kG = 0x403000,
                        kHandler = 0x404000;
constexpr std::uint16_t kWord = trace::kFirstContextWord;

class Thread {
  public:
    explicit Thread(std::uint32_t recursion = 1) : contexts(nodes_, {.recursion = recursion}) {
        contexts.go_on_elsewhere(kStack);
        block(kMain);
    }
    ~Thread() { munmap(nodes_, trace::kContextsBytes); }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // A block at `pc` is executed, and counted in kWord.
    void block(std::uint64_t pc) {
        contexts.enter_block(pc);
        ++*contexts.counters(kWord);
    }
    // The call in the block at `pc`, from the stack pointer `sp`, of a function that begins so.
    void call(std::uint64_t pc, std::uint64_t sp, std::uint64_t function) {
        contexts.call(pc, pc + 5, sp);
        block(function);
    }
    void come_back(std::uint64_t sp, std::uint64_t pc) {
        contexts.come_back(sp);
        block(pc);
    }
    // The functions on the way to the present node, the outermost first, and how often blocks in
    // its range were executed.
    std::string path() const {
        const trace::ContextNode* node = this->node(contexts.number());
        const std::uint64_t count = reinterpret_cast<const std::uint64_t*>(node)[kWord];
        std::string names;
        for (node = this->node(node->frame); node->kind != node->kRoot;
             node = this->node(this->node(node->parent)->frame))
            names =
                (node->kind == node->kHandler ? "!" : "/") + std::string(name(node->entry)) + names;
        return names + " " + std::to_string(count);
    }

  private:
    const trace::ContextNode* node(std::uint32_t number) const {
        const auto* const nodes = reinterpret_cast<const std::byte*>(nodes_);
        return reinterpret_cast<const trace::ContextNode*>(
            nodes + trace::node_offset(number, trace::context_words({})));
    }
    static std::string_view name(std::uint64_t entry) {
        if (entry == kF) return "f";
        return entry == kG ? "g" : entry == kHandler ? "handler" : "?";
    }

    trace::ContextNodes* nodes_ = static_cast<trace::ContextNodes*>(
        mmap(nullptr, trace::kContextsBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));

  public:
    replay::ReplayedContexts contexts;
};

}  // namespace

TEST_CASE("replayed contexts: calls and returns") {
    Thread thread;
    CHECK(thread.path() == " 1");
    for (const std::uint64_t times : {1, 2}) {
        thread.call(kMain, kStack, kF);
        CHECK(thread.path() == "/f " + std::to_string(2 * times - 1));
        thread.call(kF + 8, kStack - 64, kG);
        CHECK(thread.path() == "/f/g " + std::to_string(times));
        thread.come_back(kStack - 64, kF + 13);
        CHECK(thread.path() == "/f " + std::to_string(2 * times));
        // Another range of code has counts of its own.
        thread.block(kF + trace::kCodeRange);
        CHECK(thread.path() == "/f " + std::to_string(times));
        thread.come_back(kStack, kMain + 5);
    }
    CHECK(thread.path() == " 3");
}

TEST_CASE("replayed contexts: where a call leads to is known when the thread goes on") {
    Thread thread;
    thread.contexts.call(kMain, kMain + 2, kStack);
    CHECK(thread.path() == " 1");
    // A signal comes first.
    thread.contexts.enter_handler(kStack - 256, kG, kHandler);
    thread.block(kHandler);
    CHECK(thread.path() == "/g!handler 1");
    thread.contexts.go_on_elsewhere(kStack - 8);
    thread.block(kG);
    CHECK(thread.path() == "/g 1");
}

TEST_CASE("replayed contexts: frames that are left by another way than a return") {
    Thread thread;
    thread.call(kMain, kStack, kF);
    thread.call(kF, kStack - 64, kG);
    thread.call(kG, kStack - 128, kF);
    SUBCASE("longjmp") {
        thread.contexts.set_stack(kF, kStack - 80);
        thread.block(kF + 16);
        CHECK(thread.path() == "/f/g 1");  // beyond what called it last: the frame of g is alive
    }
    SUBCASE("to the caller of both") {
        thread.contexts.set_stack(kF, kStack - 32);
        thread.block(kMain + 16);
        CHECK(thread.path() == "/f 1");
    }
    SUBCASE("another stack, and back") {
        constexpr std::uint64_t kOther = 0x10000000;
        thread.contexts.set_stack(kF, kOther);
        thread.block(kG);
        CHECK(thread.path() == " 1");
        thread.call(kG, kOther, kF);
        thread.contexts.set_stack(kF, kStack - 130);
        thread.block(kF);
        CHECK(thread.path() == "/f/g/f 2");
    }
}

TEST_CASE("replayed contexts: recursion") {
    Thread thread(2);
    for (std::uint64_t depth = 0; depth < 4; ++depth)
        thread.call(depth == 0 ? kMain : kF, kStack - 64 * depth, kF);
    CHECK(thread.path() == "/f/f 3");
    thread.come_back(kStack - 64 * 3, kF + 5);
    CHECK(thread.path() == "/f/f 4");
}

TEST_CASE("replayed contexts: another thread begins outside of all calls") {
    Thread thread;
    thread.call(kMain, kStack, kF);
    thread.contexts.begin_thread();
    thread.contexts.go_on_elsewhere(kStack);
    thread.block(kMain);
    CHECK(thread.path() == " 2");
    thread.call(kMain, kStack, kF);
    CHECK(thread.path() == "/f 2");
}

}  // namespace replayed_contexts_test
