// The calling contexts of a run, as profilers see them: a tree that only grows.
//
// It is the calling context tree of Ammons, Ball and Larus ("Exploiting Hardware Performance
// Counters with Flow and Context Sensitive Profiling", PLDI 1997), with another rule for recursion
// (trace/context_nodes.h). The length of a path is bounded by the number of functions and handlers,
// however deep a recursion goes.
#pragma once

#include "assay/trace_types.h"
#include "framework/trace/context_nodes.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

}  // namespace assay::collector
