// The state that all process images of a run share, and that each collector starts with: the
// profilers, loaded but not started, and their options.
//
// This file also has the messages that tell the supervisor which addresses a collector had to
// resolve.
#pragma once

#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/collector/launch/deadline.h"
#include "framework/collector/profilers/columns.h"
#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/profiler_handle.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/settings.h"
#include "framework/recording/trace_file_writer.h"
#include "framework/symbols/symbolizer.h"

#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

struct Image;

class Session {
  public:
    // `profiles` keeps the data for the end of the run. Throws Error.
    Session(const CoreSettings& settings, const std::string& command,
            std::shared_ptr<const ProfileLog> profiles = std::make_shared<const ProfileLog>());
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Ends the profilers while the deadline still watches them.
    ~Session() { profilers.clear(); }

    // Gives the profilers their options, with the output files of this image. A profiler that loads
    // a library of the user is loaded again, into its own process. Throws Error.
    void set_options(const Image& image);
    bool any_profiler_left() const;
    // Called in a process that was forked from this one: the profilers' processes stay with the
    // parent.
    void abandon_processes();
    // Starts the deadline in this process if there is a time limit. `send`: see Deadline.
    void watch(std::function<void(int signal)> send);
    void stop_watching() { deadline_.reset(); }
    // Returns the kernel's monotonic time.
    static std::chrono::nanoseconds now();
    // Returns the time since the start of the run, in all processes. It does not include time in
    // which the machine was suspended.
    std::chrono::duration<double> time() const;
    // Why the program was ended; "" if it was not.
    std::string end_by_deadline() const { return deadline_ ? deadline_->reason() : ""; }

    const CoreSettings& settings;
    const std::time_t begin_of_run = std::time(nullptr);
    CrashGuard guard;
    std::vector<std::unique_ptr<ProfilerHandle>> profilers;
    std::vector<Given> given;  // by profiler
    Columns columns;
    const std::shared_ptr<const ProfileLog> log;
    std::optional<recording::TraceFileWriter> trace;  // the trace that is recorded
    const std::string debug_cache;                    // folder of a symbols::ImageCache
    symbols::Symbolizer symbolizer;

  private:
    std::chrono::milliseconds limit_of_call() const;
    void set_options(ProfilerHandle& profiler, const Given& wanted, const Image& image) const;
    std::vector<HostedProfiler*> hosted() const;

    const Deadline::Clock::time_point start_ = Deadline::Clock::now();
    const std::chrono::nanoseconds begin_;
    std::unique_ptr<Deadline> deadline_;  // last, because it uses the guard
};

// Messages to the supervisor with the addresses that a collector had to resolve. The supervisor
// also resolves them, for later collectors: most programs run the same code of the same libraries.

// Calls `send` with messages of at most `most` bytes.
void for_each_message(const symbols::Request& asked, std::size_t most,
                      const std::function<void(std::string_view)>& send);
symbols::Request request_from(std::string_view message);

}  // namespace assay::collector
