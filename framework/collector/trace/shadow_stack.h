// What the calls and returns of a trace say of the program's stacks: in which context each record
// was made.
//
// A frame is known by its canonical frame address (DWARF: the stack pointer before the call), and
// is alive as long as that is above the stack pointer. That holds however a function is left: by
// its return, a longjmp, an exception, a program that changes its return addresses. A tail call is
// a jump: the function that it goes to is in the frame and in the context of the one that it
// replaces.
//
// A program can have many stacks: of threads, of coroutines, of signal handlers. Which one the
// stack pointer is in is asked when it gets a value from elsewhere (TRACE_SITE_STACK) or a handler
// begins; calls and returns do not leave a stack, unless they are far away from it. What a stack
// is, is learned from the stack pointers seen. They belong to no thread: a coroutine may go on in
// another.
#pragma once

#include "framework/collector/trace/context_tree.h"
#include "framework/collector/trace/segment.h"

#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class ShadowStacks {
  public:
    // What a program can have at a time. With more of them, those that no thread is on are
    // forgotten.
    static constexpr std::size_t kMostStacks = 65'536;

    struct Frame {
        std::uint64_t address;  // the canonical frame address
        std::uint64_t call;     // the pc that it was entered from
        std::uint32_t context;  // of the function that was called
    };

    // Takes the next records of a thread. The result has a context for each: that behind the
    // record. It is valid until the next call.
    std::span<const std::uint32_t> follow(std::uint32_t thread,
                                          std::span<const trace_record_t> records,
                                          const CodeTables& code);
    // The same, and calls `visit(i, context, frames)` behind each record, with those of the stack
    // that the thread is on, the innermost last.
    template <typename Visit>
    void follow(std::uint32_t number, std::span<const trace_record_t> records,
                const CodeTables& code, const Visit& visit) {
        Thread& thread = thread_of(number);
        std::span<const Frame> frames = frames_of(thread);
        std::uint32_t context = thread.stack ? thread.stack->context() : 0;
        for (std::size_t i = 0; i < records.size(); ++i) {
            const trace_site_t& site = code.sites[records[i].site];
            if (site.kind >= TRACE_SITE_CALL && site.kind <= TRACE_SITE_INTERRUPTED) {
                apply(thread, records[i], site, code.instrs[site.instr]);
                context = thread.stack ? thread.stack->context() : 0;
                frames = frames_of(thread);
                ++changes_;
            }
            visit(i, context, frames);
        }
    }
    // Increases whenever frames may have changed.
    std::uint64_t changes() const { return changes_; }

    // All records of the thread have been taken.
    void end_thread(std::uint32_t number);

    ContextTree& contexts() { return tree_; }
    const ContextTree& contexts() const { return tree_; }
    std::size_t stacks() const { return stacks_.size(); }

  private:
    static constexpr std::uint32_t kNoThread = UINT32_MAX;

    struct Stack {
        std::uint64_t low = 0, high = 0;   // the stack pointers seen
        std::uint32_t base = 0;            // the context below all frames
        std::uint32_t thread = kNoThread;  // which is on it
        std::vector<Frame> frames;         // the innermost last

        bool contains(std::uint64_t sp) const { return low <= sp && sp <= high; }
        std::uint32_t context() const { return frames.empty() ? base : frames.back().context; }
    };
    using Stacks = std::multimap<std::uint64_t, Stack>;  // by their highest address

    struct Thread {
        std::uint32_t number;
        bool is_new = true;
        Stack* stack = nullptr;
        // An indirect call or a handler that the next record tells more about.
        trace_record_t begun{};
        std::uint8_t begun_kind = TRACE_SITE_COUNT;
    };
    // How far beyond the stack pointers seen a stack still is taken for the same.
    struct Reach {
        std::uint64_t below, above;
    };

    Thread& thread_of(std::uint32_t number) {
        return threads_.try_emplace(number, Thread{.number = number}).first->second;
    }
    static std::span<const Frame> frames_of(const Thread& thread) {
        if (thread.stack == nullptr) return {};
        return thread.stack->frames;
    }
    void apply(Thread& thread, const trace_record_t& record, const trace_site_t& site,
               const trace_instr_t& instr);
    void call(Thread& thread, std::uint64_t address, std::uint64_t call, std::uint64_t function);
    void enter_handler(Thread& thread, std::uint64_t address, std::uint64_t interrupted,
                       std::uint64_t handler);
    // Makes the stack that contains `sp` the thread's, and removes the frames that are gone.
    // Returns it.
    Stack& move(Thread& thread, std::uint64_t sp, const Reach& reach);
    Stack& stack_of(Thread& thread, std::uint64_t sp, const Reach& reach);
    Stack* find(std::uint64_t sp, std::uint64_t reach);
    Stack& new_stack(std::uint64_t sp);
    void extend(Stack& stack, std::uint64_t sp);
    void forget(Stack& stack);
    Stacks::iterator position(const Stack& stack);

    ContextTree tree_;
    Stacks stacks_;
    std::unordered_map<std::uint32_t, Thread> threads_;
    std::uint64_t changes_ = 0;
    std::vector<std::uint32_t> result_;
};

}  // namespace assay::collector
