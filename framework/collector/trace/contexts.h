// The calling contexts of a run, as profilers see them: a tree that only grows.
//
// It is the calling context tree of Ammons, Ball and Larus ("Exploiting Hardware Performance
// Counters with Flow and Context Sensitive Profiling", PLDI 1997), with another rule for recursion
// (trace/context_nodes.h). The length of a path is bounded by the number of functions and handlers,
// however deep a recursion goes.
//
// Also the stacks of calls that threads are in, from the records of calls and returns.
#pragma once

#include "assay/trace_types.h"
#include "framework/collector/trace/segment.h"
#include "framework/trace/context_nodes.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class ContextTree {
  public:
    static constexpr std::uint32_t kMostContexts = 4 * 1024 * 1024;

    explicit ContextTree(std::uint32_t most = kMostContexts);

    // So many calls of a function within one another have contexts of their own, at least 1. Before
    // anything is entered.
    void keep_recursion(std::uint32_t calls) { most_within_ = calls; }

    // The context of `function`, called at `call` in `parent`. Beyond the greatest number of
    // contexts a call that is new stays in `parent`.
    std::uint32_t enter(std::uint32_t parent, std::uint64_t call, std::uint64_t function,
                        std::uint32_t flags);

    // The same context, for what refers to that object: another number, with the same calls. Beyond
    // the greatest number the context itself.
    std::uint32_t variant(std::uint32_t context, std::uint32_t object);
    // The same of a number that may be a variant already, for what that thread does.
    std::uint32_t variant_of_thread(std::uint32_t number, std::uint32_t thread);
    // What a number stands for; kNone if it is of no object, or of no thread.
    static constexpr std::uint32_t kNone = UINT32_MAX;
    struct Origin {
        std::uint32_t context, object = kNone, thread = kNone;
    };
    Origin origin(std::uint32_t number) const {
        return number < origins_.size() ? origins_[number] : Origin{number};
    }

    // By number; the first is what is outside of all calls.
    std::span<const trace_context_t> table() const { return contexts_; }
    // Whether there was a call beyond the greatest number.
    bool overflowed() const { return overflowed_; }

  private:
    static constexpr std::uint32_t kEmpty = UINT32_MAX;
    struct Path;

    // Where a call leads: a context of its own, or the one that a recursion comes back to.
    struct Edge {
        std::uint64_t call, function;
        std::uint32_t parent, context;
    };

    std::uint32_t destination(std::uint32_t parent, std::uint64_t call, std::uint64_t function,
                              std::uint32_t flags);
    std::size_t slot_of(std::uint32_t parent, std::uint64_t call, std::uint64_t function) const;
    void grow();
    using Variants = std::unordered_map<std::uint64_t, std::uint32_t>;
    std::uint32_t variant(Variants& known, std::uint64_t key, const Origin& origin,
                          std::uint32_t number);

    std::uint32_t most_;
    std::uint32_t most_within_ = 1;
    std::vector<trace_context_t> contexts_;
    std::vector<trace::Recursion> recursions_;  // by number
    trace::RecursiveFunctions recursive_{};
    // By trace::Call::key_by_set.
    std::unordered_map<std::uint64_t, std::uint32_t> by_set_;
    std::vector<Edge> edges_;
    std::vector<std::uint32_t> slots_;  // edges by hash: open addressing, a power of two
    std::vector<Origin> origins_;       // of variants, and of what was entered before the last
    Variants of_objects_;               // by context and object
    Variants of_threads_;               // by number and thread
    bool overflowed_ = false;
};

// Which thread each record of a trace is of, told to profilers by way of contexts, as objects are:
// a variant of the calling context for each thread (ContextTree::variant_of_thread).

class ThreadContexts {
  public:
    // Of all threads that have had no slot of their own.
    static constexpr std::uint32_t kLater = ContextTree::kNone - 1;
    // What the counts of a thread go under.
    static std::uint32_t number(std::uint32_t slot, std::uint32_t thread) {
        return slot < trace::kOwnSlots ? std::min(thread, kLater - 1) : kLater;
    }

    // Which must live longer.
    explicit ThreadContexts(ContextTree& tree) : tree_(tree) {}

    // The contexts of so many records of a thread, for those that it has been given, or for none.
    // Valid until the next call.
    std::span<const std::uint32_t> follow(std::uint32_t slot, std::uint32_t thread,
                                          std::span<const std::uint32_t> contexts,
                                          std::size_t records) {
        const std::uint32_t own = number(slot, thread);
        result_.assign(records, contexts.empty() ? tree_.variant_of_thread(0, own) : 0);
        std::uint32_t context = ContextTree::kNone, variant = 0;
        for (std::size_t i = 0; i < contexts.size(); ++i) {
            if (contexts[i] != context) {
                context = contexts[i];
                variant = tree_.variant_of_thread(context, own);
            }
            result_[i] = variant;
        }
        return result_;
    }

  private:
    ContextTree& tree_;
    std::vector<std::uint32_t> result_;
};

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
