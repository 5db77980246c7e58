// Which object each data reference of a trace is of (MemoryObjects), and how many references each
// site has made to each.
//
// Profilers are told of it by way of contexts: a reference has a context of its own for each
// object, a variant of the calling context (ContextTree::variant). So whatever a profiler counts by
// context it counts by object, too.
#pragma once

#include "framework/collector/trace/code_tables.h"
#include "framework/collector/trace/context_tree.h"
#include "framework/collector/trace/memory_objects.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class ReferencedObjects {
  public:
    // The object of what says how many references there were: those of the references themselves.
    static constexpr std::uint32_t kAsReferences = ContextTree::kNoObject - 1;

    // All must live longer. `keeps_contexts`: else records have contexts only for their objects.
    ReferencedObjects(const Segment& segment, const std::deque<std::string>& paths,
                      ContextTree& contexts, bool keeps_contexts)
        : memory_(segment, paths), tree_(contexts), keeps_contexts_(keeps_contexts) {}

    // The next records of a thread, and the calling context of each. The log has that many entries.
    // The result has the variant of each, and is valid until the next call.
    std::span<const std::uint32_t> follow(std::uint32_t thread, std::uint64_t entries,
                                          std::span<const trace_record_t> records,
                                          std::span<const std::uint32_t> contexts,
                                          const CodeTables& code);

    const MemoryObjects& memory() const { return memory_; }
    // What a variant is of, for profilers; null if it is none. Valid until the next call.
    const trace_data_object_t* of_context(std::uint32_t context) const;

    // How many references a site has made to an object, whose number is the final one.
    struct Count {
        std::uint32_t site, object;
        std::uint64_t references;
    };
    // By site, then by object; each pair once.
    std::vector<Count> counts() const;

  private:
    // Of a site's last reference.
    struct Last {
        std::uint64_t start = 0, bytes = 0;
        const std::uint32_t* version = nullptr;
        std::uint32_t valid_version = 0;
        std::uint32_t object = 0;
        std::uint32_t thread = 0;
        std::uint32_t context = UINT32_MAX, variant = 0;
        std::uint32_t count = 0;  // in counts_
    };

    std::uint32_t refer(std::uint32_t thread, const trace_record_t& record, std::uint32_t context);

    MemoryObjects memory_;
    ContextTree& tree_;
    const bool keeps_contexts_;
    std::vector<Last> last_;  // by site
    std::vector<Count> counts_;
    std::unordered_map<std::uint64_t, std::uint32_t> count_of_;  // by site and object
    std::vector<std::uint32_t> result_;
    mutable trace_data_object_t told_{};  // of_context()
};

}  // namespace assay::collector
