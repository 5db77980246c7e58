// Finds the memory in which references of a group can be left out, because they have the object of
// the group's last record: large blocks of the heap, mappings without blocks, and for constant
// addresses files with their variables. Only while the process has one thread.
//
// The collector finds the object of each record. It must find the same object for all addresses
// that are left out (collector/trace/memory_objects.cpp). A run therefore ends before any change of
// the memory that it refers to.
#pragma once

#include "framework/driver/shared/object_regions.h"
#include "framework/trace/allocation_log.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

namespace assay::driver {

// Callers hold the driver's lock.
class ObjectRuns {
  public:
    // Appends a record to the thread's trace.
    using Append = std::function<void(const trace_record_t&)>;

    // `slot`: of the only thread.
    void begin(const trace::Spec& spec, trace::ThreadSlot* slot);
    // True if references are left out.
    bool active() const { return regions_ != nullptr && !stopped_; }
    ObjectRegions* regions() const { return regions_.get(); }
    // The number of the run of a group, by its first site. kNone: no room for more.
    static constexpr std::uint32_t kNone = trace::kMaxRuns;
    std::uint32_t run_of(std::uint32_t site);
    // kNone if the group has no run.
    std::uint32_t known_run_of(std::uint32_t site) const {
        return site < runs_of_sites_.size() ? runs_of_sites_[site] : kNone;
    }
    std::uint32_t count() const { return count_; }

    // The group makes records of all its references from now on. They come after the records of
    // take_ended().
    void give_up(std::uint32_t site);
    bool has_given_up(std::uint32_t site) const { return given_up_.contains(known_run_of(site)); }
    std::vector<trace_record_t> take_ended();

    // To be called before the entry is added to the allocation log.
    void change(const trace::AllocationEntry& entry, const Append& append);
    // To be called before there are more threads.
    void stop(const Append& append);
    // To be called in the child of a fork, with the runs of a new slot.
    void begin_image();

  private:
    using Region = ObjectRegions::Region;
    struct Range {
        std::uint64_t start, end;
    };

    void allocate(const Range& block, const Append& append);
    void give_back(std::uint64_t start, const Append& append);
    void map_file(const Range& range, const Append& append);
    bool had_blocks(const Range& range) const;
    bool is_of_file(const Range& range) const;
    void add(const Range& range, bool of_variables);
    void end_runs_in(Region& region, const Append& append);
    void drop(std::uint32_t number, const Append& append);
    enum class Variables : std::uint8_t { kKeep, kDrop };
    void clear(const Range& range, Variables variables, const Append& append);

    std::unique_ptr<ObjectRegions> regions_;
    bool stopped_ = false;
    std::uint32_t count_ = 0;
    std::vector<std::uint32_t> runs_of_sites_;
    // Numbers of regions. Regions do not overlap.
    std::map<std::uint64_t, std::uint32_t> by_start_;
    std::vector<std::uint32_t> free_;
    std::vector<trace_record_t> ended_;
    std::unordered_set<std::uint32_t> given_up_;  // runs
    std::vector<Range> files_;
    // Large blocks by start. Several can begin at one address: the largest end, and their number.
    struct Blocks {
        std::uint64_t end = 0;
        unsigned number = 0;
    };
    std::map<std::uint64_t, Blocks> blocks_;
    std::unordered_set<std::uint64_t> pages_of_blocks_;  // pages that small blocks have had
    std::uint64_t least_ = 32768;                        // bytes of a large block
    std::uint32_t searches_ = 0;                         // for runs to end
};

}  // namespace assay::driver
