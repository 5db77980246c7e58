// The process that a profiler has to itself.
#pragma once

#include "framework/collector/hosted/channel.h"
#include "framework/collector/profilers/crash_guard.h"

#include <sys/types.h>
#include <chrono>
#include <string>

namespace assay::collector {

struct GuestSettings {
    std::string path, command;        // as LoadedProfiler has them
    std::chrono::milliseconds limit;  // see CrashGuard
    std::string debug_cache;          // see Symbolizer
};

// Loads the profiler and does what the collector says (channel.h), until that says that it shall
// end, or is gone. In a process that fork(2) has just made for it; `state` is shared with the
// collector, which reads there how it ends.
[[noreturn]] void run_guest(const GuestSettings& settings, Channel channel, CallState& state,
                            pid_t collector);

}  // namespace assay::collector
