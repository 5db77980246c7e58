// The calling contexts of a run, as profilers see them: a tree that only grows.
//
// It is the calling context tree of Ammons, Ball and Larus ("Exploiting Hardware Performance
// Counters with Flow and Context Sensitive Profiling", PLDI 1997), with another rule for recursion
// (trace/context_nodes.h). The number of functions and handlers bounds the length of a path,
// however deep a recursion is.
//
// This file also has the call stacks of threads, made from the records of calls and returns.
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

// How often the instruction at `site` in the context `caller` has led to `context`. A recursive
// call can lead to a context with another caller.
struct ContextCalls {
    std::uint32_t caller, context;
    std::uint64_t site, number;
};

class ContextTree {
  public:
    static constexpr std::uint32_t kMostContexts = 4 * 1024 * 1024;

    explicit ContextTree(std::uint32_t most = kMostContexts);

    // Gives this many nested calls of a function their own contexts; at least 1. Must be called
    // before enter().
    void keep_recursion(std::uint32_t calls) { most_within_ = calls; }

    // Returns the context of `function`, called at `call` in `parent`. If the tree is full, a new
    // call stays in `parent`.
    std::uint32_t enter(std::uint32_t parent, std::uint64_t call, std::uint64_t function,
                        std::uint32_t flags);
    // Returns the context of a line of the program that the context `interpreter` executes. `line`
    // is its trace_context_t::call; the rest is that of the interpreter.
    std::uint32_t enter_line(std::uint32_t interpreter, std::uint64_t line);

    // Returns a number that stands for the context together with an object. If the tree is full,
    // returns the context itself.
    std::uint32_t variant(std::uint32_t context, std::uint32_t object);
    // Returns a number that also stands for a thread. `number` can already be a variant.
    std::uint32_t variant_of_thread(std::uint32_t number, std::uint32_t thread);
    // Returns the context, the object and the thread that a number stands for. kNone means no
    // object, or no thread.
    static constexpr std::uint32_t kNone = UINT32_MAX;
    struct Origin {
        std::uint32_t context, object = kNone, thread = kNone;
    };
    Origin origin(std::uint32_t number) const {
        return number < origins_.size() ? origins_[number] : Origin{number};
    }

    // By number. Context 0 is outside of all calls.
    std::span<const trace_context_t> table() const { return contexts_; }
    // True if a call did not get a context because the tree was full.
    bool overflowed() const { return overflowed_; }

  private:
    static constexpr std::uint32_t kEmpty = UINT32_MAX;
    struct Path;

    // A call, or a line, and its context. A recursive call can lead back to an existing context.
    struct Edge {
        std::uint64_t call, function;
        std::uint32_t parent, context;
    };

    template <typename Destination>
    std::uint32_t go_on(std::uint32_t from, std::uint64_t site, std::uint64_t function,
                        const Destination& destination);
    std::uint32_t add(const trace_context_t& context, const trace::Recursion& recursion,
                      bool is_line);
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
    std::vector<bool> lines_;                   // by number
    bool has_lines_ = false;
    trace::RecursiveFunctions recursive_{};
    // By trace::Call::key_by_set.
    std::unordered_map<std::uint64_t, std::uint32_t> by_set_;
    std::vector<Edge> edges_;
    std::vector<std::uint32_t> slots_;  // edges by hash: open addressing, a power of two
    std::vector<Origin> origins_;       // of variants; by number, up to the last variant
    Variants of_objects_;               // by context and object
    Variants of_threads_;               // by number and thread
    bool overflowed_ = false;
    std::vector<Edge> recent_ = std::vector<Edge>(4096);  // edges that were found last, by hash
};

// Tells profilers which thread has made each record of a trace. Each thread has its own variant of
// a calling context (ContextTree::variant_of_thread), similar to objects.

class ThreadContexts {
  public:
    // Stands for all threads without a slot of their own.
    static constexpr std::uint32_t kLater = ContextTree::kNone - 1;
    // Returns the number under which the counts of a thread are kept.
    static std::uint32_t number(std::uint32_t slot, std::uint32_t thread) {
        return slot < trace::kOwnSlots ? std::min(thread, kLater - 1) : kLater;
    }

    // `tree` must live longer.
    explicit ThreadContexts(ContextTree& tree) : tree_(tree) {}

    // Returns the variants of a thread's next records. `contexts` has the calling context of each
    // record, or is empty. Valid until the next call.
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

// Finds the context of each record from the calls and returns of a trace.
//
// The canonical frame address identifies a frame (DWARF: the stack pointer before the call). A
// frame is alive as long as this address is above the stack pointer. This rule covers all ways to
// leave a function: a return, a longjmp, an exception, or a changed return address. A tail call is
// a jump: its target uses the frame and the context of the function that it replaces.
//
// A program can have many stacks: of threads, coroutines and signal handlers. The stack is looked
// up when a handler begins, or when the stack pointer gets a value from elsewhere
// (TRACE_SITE_STACK). Calls and returns stay on a stack unless they are far away from it. The
// extent of a stack is learned from the values of the stack pointer. Stacks do not belong to
// threads, because a coroutine can continue in another thread.

class ShadowStacks {
  public:
    // The most stacks that are kept. If there are more, stacks that no thread uses are removed.
    static constexpr std::size_t kMostStacks = 65'536;

    struct Frame {
        std::uint64_t address;  // canonical frame address
        std::uint64_t call;     // address of the call
        std::uint32_t context;  // context of the called function
        std::uint64_t serial;   // no other frame has it
    };

    // Takes the next records of a thread. Returns the context after each record. Valid until the
    // next call.
    std::span<const std::uint32_t> follow(std::uint32_t thread,
                                          std::span<const trace_record_t> records,
                                          const CodeTables& code);
    // Also takes the next records of a thread. Calls `visit(i, context, frames)` after each record,
    // with the frames of the thread's present stack, innermost last. `takes(i, frames)` gets each
    // record first, and returns true for a reference that it has handled.
    template <typename Takes, typename Visit>
    void follow(std::uint32_t number, std::span<const trace_record_t> records,
                const CodeTables& code, const Takes& takes, const Visit& visit) {
        learn(code);
        Thread& thread = thread_of(number);
        std::span<const Frame> frames = frames_of(thread);
        std::uint32_t context = thread.stack ? thread.stack->context() : 0;
        for (std::size_t i = 0; i < records.size(); ++i) {
            if (takes(i, frames)) continue;
            if (const std::uint32_t flow = flow_of_site_[records[i].site]; flow != kNoFlow) {
                apply(thread, records[i], flows_[flow]);
                context = thread.stack ? thread.stack->context() : 0;
                frames = frames_of(thread);
                ++changes_;
            }
            visit(i, context, frames);
        }
    }
    // Increases whenever frames may have changed.
    std::uint64_t changes() const { return changes_; }

    // Called when all records of the thread have been taken.
    void end_thread(std::uint32_t number);

    ContextTree& contexts() { return tree_; }
    const ContextTree& contexts() const { return tree_; }
    std::size_t stacks() const { return stacks_.size(); }

  private:
    static constexpr std::uint32_t kNoThread = UINT32_MAX;
    static constexpr std::uint32_t kNoFlow = UINT32_MAX;

    // A site whose records can change frames.
    struct Flow {
        std::uint64_t pc;
        std::uint64_t target;    // of a direct call
        std::uint32_t from, to;  // the contexts of the last direct call
        std::uint8_t kind;       // of the site
        bool is_direct;          // a call without a record of its target
    };

    struct Stack {
        std::uint64_t low = 0, high = 0;   // lowest and highest stack pointer seen
        std::uint32_t base = 0;            // context below all frames
        std::uint32_t thread = kNoThread;  // the thread that uses it
        std::vector<Frame> frames;         // innermost last

        bool contains(std::uint64_t sp) const { return low <= sp && sp <= high; }
        std::uint32_t context() const { return frames.empty() ? base : frames.back().context; }
    };
    using Stacks = std::multimap<std::uint64_t, Stack>;  // by highest address

    struct Thread {
        std::uint32_t number;
        bool is_new = true;
        Stack* stack = nullptr;
        // An indirect call or a handler. The next record has the rest of its data.
        trace_record_t begun{};
        std::uint8_t begun_kind = TRACE_SITE_COUNT;
    };
    // How far a stack pointer may be from those already seen, and still belong to the same stack.
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
    void learn(const CodeTables& code);
    void apply(Thread& thread, const trace_record_t& record, Flow& flow);
    void call_directly(Thread& thread, std::uint64_t address, Flow& flow);
    void call(Thread& thread, std::uint64_t address, std::uint64_t call, std::uint64_t function);
    void enter_handler(Thread& thread, std::uint64_t address, std::uint64_t interrupted,
                       std::uint64_t handler);
    // Makes the stack that contains `sp` the thread's present stack, removes its dead frames, and
    // returns it.
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
    std::vector<std::uint32_t> flow_of_site_;  // index in flows_
    std::vector<Flow> flows_;
    std::uint64_t changes_ = 0;
    std::uint64_t frames_ = 0;  // number of frames so far
    std::vector<std::uint32_t> result_;
};

}  // namespace assay::collector
