// Which thread each record of a trace is of, told to profilers by way of contexts, as objects are:
// a variant of the calling context for each thread (ContextTree::variant_of_thread).
#pragma once

#include "framework/collector/trace/context_tree.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::collector {

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
