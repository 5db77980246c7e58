// Which object each data reference of a trace is of (MemoryObjects), and how many references each
// site has made to each.
//
// Profilers are told of it by way of contexts: a reference has a context of its own for each
// object, a variant of the calling context (ContextTree::variant). So whatever a profiler counts by
// context it counts by object, too.
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
    // The object of what says how many references there were: those of the references themselves.
    static constexpr std::uint32_t kAsReferences = ContextTree::kNone - 1;

    // All must live longer. `keeps_contexts`: else records have contexts only for their objects.
    ReferencedObjects(const Segment& segment, const std::deque<std::string>& paths,
                      ShadowStacks& stacks, bool keeps_contexts)
        : memory_(segment, paths),
          stacks_(stacks),
          tree_(stacks.contexts()),
          keeps_contexts_(keeps_contexts) {}

    // Of the next records: the thread that made them; how many entries the log has; and when the
    // last was made, in instructions of the process, or 0.
    struct Source {
        std::uint32_t thread;
        std::uint64_t entries, time;
    };
    // Takes them. The result has the variant of each record's context, and is valid until the next
    // call.
    std::span<const std::uint32_t> follow(const Source& source,
                                          std::span<const trace_record_t> records,
                                          const CodeTables& code);

    // All records of the thread have been taken.
    void end_thread(std::uint32_t thread) { memory_.end_thread(thread); }

    MemoryObjects& memory() { return memory_; }
    const MemoryObjects& memory() const { return memory_; }
    // What a variant is of, for profilers; null if it is none. Valid until the next call.
    const trace_data_object_t* of_context(std::uint32_t context) const;
    // At the end: trace_parser_data_object_at().
    const trace_data_object_t* last_at(std::uint64_t address, std::uint64_t& offset);

    // How many references a site has made to an object, whose number is the final one.
    struct Count {
        std::uint32_t site, object;
        std::uint64_t references;
    };
    // By site, then by object; each pair once.
    std::vector<Count> counts() const;

  private:
    // Where a thread is.
    struct Place {
        std::uint32_t thread, context;
        std::uint64_t record;  // its number, of all
        const trace_instr_t* instr;
        std::span<const ShadowStacks::Frame> frames;
    };
    // Of a site's last reference: what else is of the same object. A line of the processor's cache.
    struct alignas(64) Last {
        enum class Holds : std::uint32_t {
            kNever,
            kForVersion,  // as long as *version has not changed
            kInFrame,     // counted from the innermost frame's address, whichever frame that is
            kForFrames,   // as long as no function is called or left
        };
        std::uint64_t start = 0, bytes = 0;
        union {
            const std::uint32_t* version = nullptr;  // kForVersion
            std::uint64_t changes;                   // of the frames: kForFrames
        };
        std::uint64_t references = 0;  // that counts_ does not have yet
        std::uint32_t valid_version = 0;
        Holds holds = Holds::kNever;
        std::uint32_t object = 0;
        std::uint32_t thread = 0;
        std::uint32_t context = UINT32_MAX, variant = 0;
        std::uint32_t count = 0;  // in counts_
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
    std::uint64_t records_ = 0;  // taken
    std::vector<Last> last_;     // by site
    std::vector<Count> counts_;
    std::unordered_map<std::uint64_t, std::uint32_t> count_of_;  // by site and object
    std::vector<std::uint32_t> result_;
    mutable trace_data_object_t told_{};  // of_context()
};

}  // namespace assay::collector
