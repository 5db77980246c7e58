// The event columns of all profilers of a run, side by side, and the series that profilers give for
// the events file.
#pragma once

#include "assay/vprofiler.h"
#include "framework/events/header.h"
#include "framework/events/series.h"

#include <memory>
#include <string>
#include <vector>

namespace assay::collector {

class ProfilerHandle;

class Columns {
  public:
    // If several profilers declare an event of the same name, the event of the later profiler
    // becomes PROFILER.NAME, also in its formulas. Throws Error if there are too many columns.
    explicit Columns(const std::vector<std::unique_ptr<ProfilerHandle>>& profilers);

    std::size_t size() const { return events_.size(); }
    // The column of a profiler's first event.
    std::size_t first(std::size_t profiler) const { return first_[profiler]; }
    const events::Event& event(std::size_t column) const { return events_[column]; }
    const std::vector<events::Derived>& derived(std::size_t profiler) const {
        return derived_[profiler];
    }

  private:
    std::vector<std::size_t> first_;
    std::vector<events::Event> events_;
    std::vector<std::vector<events::Derived>> derived_;
};

// A copy of a profiler's vp_series_t.

struct GivenSeries {
    events::Series series;  // without the profiler's name
    std::string problem;    // the problem, as "a series ..."; "" for a good series
};

// Copies a series, and thins it as vprofiler.h says. Follows its pointers unchecked: call this only
// where a crash is caught.
GivenSeries copy_series(const vp_series_t* given);

}  // namespace assay::collector
