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
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::collector {

class ReferencedObjects {
  public:
    // The object of a record with a number of references. It means: the objects of these
    // references.
    static constexpr std::uint32_t kAsReferences = ContextTree::kNone - 1;

    // All arguments must live longer. Without trace::Spec::kObjectsAndContexts,
    // contexts stand for objects only. `calls_wanted`: a profiler captures calls.
    ReferencedObjects(const Segment& segment, const std::deque<std::string>& paths,
                      ShadowStacks& stacks, const trace::Spec& spec, bool calls_wanted)
        : memory_(segment, paths),
          stacks_(stacks),
          tree_(stacks.contexts()),
          keeps_contexts_(spec.objects == trace::Spec::kObjectsAndContexts),
          has_own_records_(trace::records_objects(spec)),
          calls_wanted_(calls_wanted) {}

    // The thread that made the records, the number of entries in the allocation log, and when the
    // last record was made, in instructions of the process, or 0.
    struct Source {
        std::uint32_t thread;
        std::uint64_t entries, time;
    };
    // The records that profilers get, and the variant of each record's context.
    struct Followed {
        std::span<const trace_record_t> records;
        std::span<const std::uint32_t> contexts;
    };
    // Takes the next records. Changes `markers` if there are fewer records for profilers. The
    // result is valid until the next call.
    Followed follow(const Source& source, std::span<const trace_record_t> records,
                    const CodeTables& code, std::vector<trace_marker_t>& markers);

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
    static constexpr std::uint32_t kNoCount = UINT32_MAX;

    // The state of a thread at a record.
    struct Place {
        std::uint32_t thread, context;
        std::uint64_t record;  // number of the record, among all records
        const CodeTables& code;
        std::span<const ShadowStacks::Frame> frames;
    };
    // The references of a group (trace::object_members) to the same objects: one object for each
    // reference of the group. Other sites are groups of one.
    struct Combination {
        std::uint32_t site, members;
        std::size_t first_object;  // index in objects_
        std::uint64_t references;  // of each member
    };
    // The result of a site's last reference. It holds for other addresses in [start, start +
    // bytes). It fits in a line of the processor's cache.
    struct alignas(64) Last {
        enum class Holds : std::uint8_t {
            kNever,
            kForVersion,  // while *version does not change
            kInFrame,     // relative to the innermost frame, whichever frame that is
            kForFrames,   // until a function is called or left
            kBelowFrame,  // as long as this frame is there, below the innermost one
        };
        std::uint64_t start = 0, bytes = 0;
        union {
            const std::uint32_t* version = nullptr;  // kForVersion
            std::uint64_t changes;                   // kForFrames: ShadowStacks::changes()
            std::uint64_t serial;                    // kBelowFrame
        };
        std::uint64_t references = 0;     // not yet added to combinations_
        std::uint32_t valid_version = 0;  // kForVersion; kBelowFrame: the frame's index
        Holds holds = Holds::kNever;
        bool has_own_records = false;  // the site is a TRACE_SITE_OBJECT
        std::uint32_t object = 0;
        std::uint32_t thread = 0;
        std::uint32_t context = UINT32_MAX, variant = 0;
        std::uint32_t count = kNoCount;  // index in combinations_
        std::uint32_t block = HeapBlocks::kNone;
    };
    static_assert(sizeof(Last) == 64);

    const trace_data_object_t* tell(std::uint32_t object) const;
    void learn(const CodeTables& code);
    void count(Last& last, const trace_record_t& record, const Place& place);
    void end_run(Last& last, const trace_record_t& record);
    std::uint32_t refer(const trace_record_t& record, const Place& place);
    void look_up(Last& last, const trace_record_t& record, const Place& place);
    std::uint32_t find_group(Last& last, const trace_record_t& record, const Place& place);
    std::uint32_t combination(std::uint32_t site);
    std::size_t slot_of(std::uint32_t site, std::span<const std::uint32_t> objects) const;
    std::span<const std::uint32_t> objects_of(const Combination& combination) const {
        return std::span(objects_).subspan(combination.first_object, combination.members);
    }
    bool holds(const Last& last, std::uint64_t address, const Place& place) const;
    // Returns the object.
    std::uint32_t find(Last& last, std::uint64_t address, const Place& place, std::uint64_t pc);
    std::uint32_t find_on_stack(Last& last, std::uint64_t address, const Place& place,
                                std::uint64_t pc, std::uint32_t stack);

    MemoryObjects memory_;
    ShadowStacks& stacks_;
    ContextTree& tree_;
    const bool keeps_contexts_;
    const bool has_own_records_;  // TRACE_SITE_OBJECT: only these are counted
    const bool calls_wanted_;     // otherwise profilers get none, if there are own records
    std::uint64_t records_ = 0;   // number of records taken
    std::vector<Last> last_;      // by site
    std::vector<Combination> combinations_;
    std::vector<std::uint32_t> objects_;
    std::vector<std::uint32_t> found_;  // the objects of the present group
    // Combinations by hash: open addressing, a power of two.
    std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1024, kNoCount);
    std::vector<trace_record_t> records_for_profilers_;  // if there are own records
    std::vector<std::uint32_t> result_;
    mutable trace_data_object_t told_{};  // result of of_context()
};

}  // namespace assay::collector
