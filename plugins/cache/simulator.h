// Two levels of caches that read trace records. Each thread has an I1 and a D1, as if it had its
// own processor. One LL behind them is shared.
#pragma once

#include "plugins/cache/tables.h"
#include "plugins/common/geometry.h"

#include <assay/context_rows.hpp>

#include <span>
#include <unordered_map>
#include <vector>

namespace cache {

enum class InstructionSet { kBaseline, kAvx2, kAvx512 };
bool supported(InstructionSet set);
InstructionSet best_instruction_set();

// A level that owns its tags.
class OwnLevel {
  public:
    // Throws std::bad_alloc.
    explicit OwnLevel(const Geometry& geometry);
    ~OwnLevel();
    OwnLevel(const OwnLevel&) = delete;
    OwnLevel& operator=(const OwnLevel&) = delete;

    const Level& level() const { return level_; }

  private:
    Level level_;
    void* memory_;
    std::size_t mapped_bytes_;
};

// Counts of a site, or of a site in one context.
struct SiteCounts {
    std::uint64_t l1_misses = 0;
    std::uint64_t ll_misses = 0;
    std::uint64_t references = 0;  // see VariableCounts
    std::uint64_t ended_early = 0;

    SiteCounts& operator+=(const SiteCounts& other);
};

// The counts of the inner loop. A record's site is the index.
class Counters {
  public:
    void add(SiteCode code);
    std::size_t size() const { return codes_.size(); }
    SiteCode code(std::size_t index) const { return codes_[index]; }
    SiteCounts counts(std::size_t index) const;
    void prefetch(std::size_t index) const {
        __builtin_prefetch(&codes_[index]);
        __builtin_prefetch(&tallies_[index], 1);
    }
    // For tests: sets the misses in level 1 and in LL.
    void set_misses(std::size_t index, std::uint32_t misses) { tallies_[index] = {misses, misses}; }
    void put_into(Tables& tables);
    // Makes the inner loop count into memory that nobody reads.
    void put_unread_into(Tables& tables);

  private:
    static void carry(void* counters, const std::uint32_t* tally);

    std::vector<SiteCode> codes_;
    std::vector<Tally> tallies_;
    std::vector<VariableCounts> variable_;
    std::vector<Tally> unread_tallies_;
    std::vector<VariableCounts> unread_variable_;
    // How often a tally exceeded 32 bits. The key is twice the index, plus 1 for LL.
    std::unordered_map<std::size_t, std::uint64_t> carries_;
};

class Simulator {
  public:
    // Each geometry must have a power of two of sets. Throws std::bad_alloc.
    explicit Simulator(const Geometries& geometries, InstructionSet set = best_instruction_set());
    Simulator(const Simulator&) = delete;
    Simulator& operator=(const Simulator&) = delete;

    // Adds the new sites. `sites` is the whole table; the simulator knows its beginning from
    // earlier calls.
    void learn(const trace_site_t* sites, std::size_t count);
    // True if level 1 was simulated before: then the records of that kind are its misses.
    void records_are_misses(SiteCode::Target kind, bool are) { missed_[kind] = are; }
    // Simulates records of one thread. Their sites must be known to learn(). Throws std::bad_alloc
    // if there is no memory for a new thread's caches.
    void process(std::uint32_t thread, const trace_record_t* records, std::size_t count);
    // The same, and counts each record in its context. `contexts` has one element for each record.
    void process(std::uint32_t thread, std::span<const trace_record_t> records,
                 std::span<const std::uint32_t> contexts);
    // The same without counting.
    void warm_up(std::uint32_t thread, const trace_record_t* records, std::size_t count);
    // Frees the caches of a thread that has no more records.
    void end(std::uint32_t thread) { level1_.erase(thread); }
    std::size_t thread_count() const { return level1_.size(); }

    SiteCounts counts(std::size_t site) const;
    // Calls `visit(context, counts)` for each context of the site, with the context as in samples.
    // If no records had contexts, calls it once with 0.
    template <typename Visit>
    void each_context(std::size_t site, const Visit& visit) const {
        if (by_row_.size() == 0) return visit(std::uint64_t{0}, by_site_.counts(site));
        rows_.each(static_cast<std::uint32_t>(site), [&](std::uint32_t row) {
            visit(rows_.context_of_samples(row), by_row_.counts(row));
        });
    }
    std::size_t site_count() const { return by_site_.size(); }
    SiteCode code(std::size_t site) const { return by_site_.code(site); }
    // For tests.
    void set_misses(std::size_t site, std::uint32_t misses) { by_site_.set_misses(site, misses); }

  private:
    void simulate(Tables& tables, std::uint32_t thread, const trace_record_t* records,
                  std::size_t count);
    std::size_t number(std::span<const trace_record_t> records,
                       std::span<const std::uint32_t> contexts);

    struct Level1 {
        explicit Level1(const Geometries& geometries)
            : instruction(geometries.i1), data(geometries.d1) {}
        OwnLevel instruction, data;
    };

    const Geometries geometries_;
    const OwnLevel ll_;
    std::unordered_map<std::uint32_t, Level1> level1_;  // by thread
    Kernel kernel_;
    bool missed_[2] = {};  // by SiteCode::Target
    // Larger references are cut to this size, so that none touches three lines.
    std::uint16_t largest_reference_;
    Counters by_site_;
    std::vector<bool> is_counted_;  // by site; false for sites that another profiler of the run
                                    // captures
    // Used with contexts.
    assay::ContextRows rows_;
    Counters by_row_;
    std::vector<trace_record_t> records_by_row_;
};

}  // namespace cache
