// A series as a profiler gives it, vp_series_t.
#pragma once

#include "assay/vprofiler.h"
#include "framework/events/series.h"

#include <string>

namespace assay::collector {

struct GivenSeries {
    events::Series series;  // without the profiler's name
    std::string problem;    // what is wrong with it, as "a series ..."; "" if nothing is
};

// Copies a series, and thins it as vprofiler.h says. What it points to is read as it is: to be
// called where a crash is caught.
GivenSeries copy_series(const vp_series_t* given);

}  // namespace assay::collector
