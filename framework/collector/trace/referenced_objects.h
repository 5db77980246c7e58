// Finds the object of each data reference of a trace (MemoryObjects), and counts the references of
// each site to each object.
//
// Profilers see the object in the context: a reference has its own context for each object, a
// variant of the calling context (ContextTree::variant). Everything that a profiler counts by
// context, it therefore also counts by object.
#pragma once

#include "framework/collector/trace/contexts.h"
#include "framework/collector/trace/memory_objects.h"
#include "framework/collector/trace/segment.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class ReferencedObjects {
  public:
    // The object of a record with a number of references. It means: the objects of these
    // references.
    static constexpr std::uint32_t kAsReferences = ContextTree::kNone - 1;

    // All arguments must live longer. Without `keeps_contexts`, contexts stand for objects only.
    ReferencedObjects(const Segment& segment, const std::deque<std::string>& paths,
                      ShadowStacks& stacks, bool keeps_contexts)
        : memory_(segment, paths),
          stacks_(stacks),
          tree_(stacks.contexts()),
          keeps_contexts_(keeps_contexts) {}

    // The thread that made the records, the number of entries in the allocation log, and when the
    // last record was made, in instructions of the process, or 0.
    struct Source {
        std::uint32_t thread;
        std::uint64_t entries, time;
    };
    // Takes the next records. Returns the variant of each record's context. Valid until the next
    // call.
    std::span<const std::uint32_t> follow(const Source& source,
                                          std::span<const trace_record_t> records,
                                          const CodeTables& code);

    // Called when all records of the thread have been taken.
    void end_thread(std::uint32_t thread) { memory_.end_thread(thread); }

    MemoryObjects& memory() { return memory_; }
    const MemoryObjects& memory() const { return memory_; }
    // Returns the object of a variant, for profilers; null if there is no object. Valid until the
    // next call.
    const trace_data_object_t* of_context(std::uint32_t context) const;
    // Called at the end, for trace_parser_data_object_at().
    const trace_data_object_t* last_at(std::uint64_t address, std::uint64_t& offset);

    // The number of references of a site to an object. `object` is a final number.
    struct Count {
        std::uint32_t site, object;
        std::uint64_t references;
    };
    // Returns the counts by site, then by object. Each pair occurs once.
    std::vector<Count> counts() const;

  private:
    // The state of a thread at a record.
    struct Place {
        std::uint32_t thread, context;
        std::uint64_t record;  // number of the record, among all records
        const trace_instr_t* instr;
        std::span<const ShadowStacks::Frame> frames;
    };
    // The result of a site's last reference. It holds for other addresses in [start, start +
    // bytes). It fits in a line of the processor's cache.
    struct alignas(64) Last {
        enum class Holds : std::uint32_t {
            kNever,
            kForVersion,  // while *version does not change
            kInFrame,     // relative to the innermost frame, whichever frame that is
            kForFrames,   // until a function is called or left
        };
        std::uint64_t start = 0, bytes = 0;
        union {
            const std::uint32_t* version = nullptr;  // kForVersion
            std::uint64_t changes;                   // kForFrames: ShadowStacks::changes()
        };
        std::uint64_t references = 0;  // not yet added to counts_
        std::uint32_t valid_version = 0;
        Holds holds = Holds::kNever;
        std::uint32_t object = 0;
        std::uint32_t thread = 0;
        std::uint32_t context = UINT32_MAX, variant = 0;
        std::uint32_t count = 0;  // index in counts_
        std::uint32_t block = HeapBlocks::kNone;
    };
    static_assert(sizeof(Last) == 64);

    const trace_data_object_t* tell(std::uint32_t object) const;
    std::uint32_t refer(const trace_record_t& record, const Place& place);
    bool holds(const Last& last, std::uint64_t address, const Place& place) const;
    // Returns the object.
    std::uint32_t find(Last& last, std::uint64_t address, const Place& place);
    std::uint32_t find_on_stack(Last& last, std::uint64_t address, const Place& place,
                                std::uint32_t stack);

    MemoryObjects memory_;
    ShadowStacks& stacks_;
    ContextTree& tree_;
    const bool keeps_contexts_;
    std::uint64_t records_ = 0;  // number of records taken
    std::vector<Last> last_;     // by site
    std::vector<Count> counts_;
    std::unordered_map<std::uint64_t, std::uint32_t> count_of_;  // by site and object
    std::vector<std::uint32_t> result_;
    mutable trace_data_object_t told_{};  // result of of_context()
};

}  // namespace assay::collector
