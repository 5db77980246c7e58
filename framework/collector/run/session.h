// What all process images of a run have in common, and what each of their collectors begins with:
// the profilers, loaded but not started, and their options.
//
// Also addresses that a collector had to find source positions for, as messages to the supervisor.
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
    // `profiles`: where what is told at the end is kept. Throws Error.
    Session(const CoreSettings& settings, const std::string& command,
            std::shared_ptr<const ProfileLog> profiles = std::make_shared<const ProfileLog>());
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Ends the profilers, which the deadline is for, too.
    ~Session() { profilers.clear(); }

    // Gives the profilers their options, with the output files of this image. A profiler that wants
    // to load a library of the user's is loaded again, into a process of its own. Throws Error.
    void set_options(const Image& image);
    bool any_profiler_left() const;
    // In another process that fork(2) has made of this one: the profilers' processes are not its.
    void abandon_processes();
    // Watches the calling process's part of the run, if there is a time limit. `send`: see
    // Deadline.
    void watch(std::function<void(int signal)> send);
    void stop_watching() { deadline_.reset(); }
    // By the kernel, since some moment before the run.
    static std::chrono::nanoseconds now();
    // Since the run's begin, of all processes. It stands still while the machine is suspended.
    std::chrono::duration<double> time() const;
    // Why the program was ended; "" if it was not.
    std::string end_by_deadline() const { return deadline_ ? deadline_->reason() : ""; }

    const CoreSettings& settings;
    const std::time_t begin_of_run = std::time(nullptr);
    CrashGuard guard;
    std::vector<std::unique_ptr<ProfilerHandle>> profilers;
    std::vector<Given> given;  // to each of them
    Columns columns;
    const std::shared_ptr<const ProfileLog> log;
    std::optional<recording::TraceFileWriter> trace;  // that is recorded
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

// Addresses that a collector had to find source positions for, as a message to the supervisor,
// which finds them again for the collectors to come: most programs run the same code of the same
// libraries.

// In messages of at most `most` bytes.
void for_each_message(const symbols::Request& asked, std::size_t most,
                      const std::function<void(std::string_view)>& send);
symbols::Request request_from(std::string_view message);

}  // namespace assay::collector
