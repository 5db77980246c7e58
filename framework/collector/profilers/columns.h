// The event columns of all profilers of a run, side by side.
//
// Also the series that profilers give, as the events file has them.
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
    // Where several profilers declare an event of the same name, the later ones' become
    // PROFILER.NAME, also in their formulas. Throws Error if there are too many.
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

// A series as a profiler gives it, vp_series_t.

struct GivenSeries {
    events::Series series;  // without the profiler's name
    std::string problem;    // what is wrong with it, as "a series ..."; "" if nothing is
};

// Copies a series, and thins it as vprofiler.h says. What it points to is read as it is: to be
// called where a crash is caught.
GivenSeries copy_series(const vp_series_t* given);

}  // namespace assay::collector
