// What all process images of a run have in common, and what each of their collectors begins with:
// the profilers, loaded but not started, and their options.
#pragma once

#include "framework/collector/columns.h"
#include "framework/collector/crash_guard.h"
#include "framework/collector/profiler.h"
#include "framework/collector/settings.h"
#include "framework/symbols/symbolizer.h"

#include <memory>
#include <string>
#include <vector>

namespace assay::collector {

class Session {
  public:
    // Throws Error.
    Session(const CoreSettings& settings, const std::string& command);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    bool any_profiler_left() const;

    const CoreSettings& settings;
    CrashGuard guard;
    std::vector<std::unique_ptr<Profiler>> profilers;
    std::vector<Given> given;  // to each of them
    Columns columns;
    symbols::Symbolizer symbolizer;
};

}  // namespace assay::collector
