// The events that a machine counts, without those that it cannot have.
#pragma once

#include "plugins/machine/machine.h"

#include "assay/vprofiler.h"

#include <deque>
#include <string>
#include <vector>

namespace machine {

enum class Kind : std::uint8_t { kFetch, kRead, kWrite };
inline constexpr std::uint32_t kKinds = 3;

class Columns {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // The columns of a cache. kNone: the cache does not count the event.
    struct OfCache {
        std::uint32_t misses[kKinds] = {kNone, kNone, kNone};
        std::uint32_t write_backs = kNone;
        std::uint32_t back_invalidations = kNone;
        std::uint32_t prefetched = kNone, useful = kNone, late = kNone, useless = kNone,
                      evicting = kNone;
        std::uint32_t cold = kNone, capacity = kNone, conflict = kNone, coherence = kNone;
    };

    explicit Columns(const Machine& machine);
    Columns(const Columns&) = delete;
    Columns& operator=(const Columns&) = delete;

    const std::vector<vp_event_t>& events() const { return events_; }
    const std::vector<vp_derived_t>& derived() const { return derived_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(events_.size()); }

    std::uint32_t ir = kNone, dr = kNone, dw = kNone;
    std::vector<OfCache> caches;      // by index in Machine::caches
    std::vector<std::uint32_t> tlbs;  // misses, by index in Machine::tlbs
    std::uint32_t walks = kNone;
    std::uint32_t invalidations_sent = kNone, invalidations_received = kNone, upgrades = kNone,
                  transfers = kNone, true_sharing = kNone, false_sharing = kNone;

  private:
    std::uint32_t add(std::string name, std::string description, const char* unit);
    void derive(std::string name, std::string formula, const char* unit);
    void add_misses(const Machine& machine, Kind kind);
    void add_of_cache(const Machine& machine, std::size_t index);
    void derive_all(const Machine& machine);

    std::deque<std::string> texts_;  // the tables point to them
    std::vector<vp_event_t> events_;
    std::vector<vp_derived_t> derived_;
};

// "1", "2", ..., or "L" for the level whose cache is named LL.
std::string level_name(const Machine& machine, std::uint32_t level);

}  // namespace machine
