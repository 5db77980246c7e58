// A profiler whose code runs in its own process (channel.h). A profiler may damage its memory, its
// descriptors, its signals or its process: the profile then lacks only the columns of this
// profiler.
//
// The process reads the same trace segment as the collector, but cannot change it. It sends back
// the samples and texts of the profiler. The collector says which buffer is next, so that all
// profilers see the records of several threads in the same order. It gives a buffer back to the
// driver when all profilers have read it.
#pragma once

#include "framework/collector/hosted/channel.h"
#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/profiler_handle.h"

#include <sys/types.h>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::collector {

class HostedProfiler final : public ProfilerHandle {
  public:
    using Sink = std::function<void(const vsample_t& sample, std::uint32_t mapping)>;
    // Returns how long a call may take now; 0 means without limit.
    using Limit = std::function<std::chrono::milliseconds()>;

    // Starts the process and waits until the profiler is loaded. The calling process must have no
    // other active thread. Throws Error if the profiler is unusable.
    explicit HostedProfiler(GuestSettings settings);
    // Ends the process.
    ~HostedProfiler() override;

    // Replaces the limit of the settings.
    void set_limit(Limit limit) { limit_ = std::move(limit); }
    void set_command(std::string command) override { settings_.command = std::move(command); }
    void set_sampling(bool samples) override { samples_ = samples; }
    // In a forked process, first starts a new process for the profiler.
    void set_options(std::span<const std::pair<std::string, std::string>> settings) override;
    trace::Spec start() override;
    std::string summary(std::span<const std::uint64_t> totals) override;
    void stop() override;
    std::optional<std::string> preface(const trace_instr_t& instr, std::string_view list) override;
    std::optional<std::string> format(const trace_instr_t& instr, std::uint64_t value) override;

    // --- The steps between start() and summary(). Samples can arrive in each of them.

    struct Collected {
        int pid;
        int segment;  // descriptor of the segment
        const trace::Spec& spec;
        std::uint64_t interval;  // of trace_capture_intervals
        bool contexts;           // true if any profiler wants contexts
    };
    // Called when the segment has its specification. From now on, SIGIO is sent when data arrives.
    void collect(const Collected& what, Sink sink);
    std::vector<std::string> libraries() const override;

    // Tells the process to take the next buffer of the slot.
    void take(std::uint32_t slot);
    // Tells the process to take the rest of all slots.
    void take_rest();
    // Receives messages, and checks that the process still runs.
    void look();
    // Waits a moment for data, then does the same as look().
    void wait();
    // Number of buffers that the process has reported as processed. UINT64_MAX if the profiler is
    // lost.
    std::uint64_t taken() const { return lost() ? UINT64_MAX : taken_; }
    // Why the trace cannot be read any further; "" if it can.
    const std::string& damage() const { return damage_; }
    // Waits for the next end of a burst, and returns the totals of each event so far.
    std::vector<std::uint64_t> next_totals();
    // Let the profiler finish. begin_finish() does not wait; finish() receives all remaining
    // samples. `time`: see Feed::impossible_counts().
    void begin_finish(std::chrono::duration<double> time);
    void finish();

    // Called in a process that was forked from this one. The profiler's process stays with the
    // parent.
    void abandon();
    // Sends a signal to all processes of profilers that this process has started or starts later.
    // Async-signal-safe.
    static void signal_all(int signal);

  private:
    void start_process();
    void receive_facts();
    void tell(const Message& message, int descriptor = -1);
    // Waits for the answer of this kind. Returns nothing if the profiler is lost.
    std::optional<std::string> await(MessageKind kind);
    std::optional<std::string> await_text(const Message& question);
    void receive();
    void handle(const Message& message);
    void pass_on(const std::string& samples);
    void watch(bool waits);
    void see_end();
    std::string how_it_ended(int status) const;
    void give_up(const std::string& why);
    void lose_process(const std::string& why);
    void end_process();

    GuestSettings settings_;
    Limit limit_;
    bool samples_ = false;
    bool started_ = false;
    bool loading_ = false, releasing_ = false;
    std::string first_facts_;  // of the first process
    Channel channel_;
    std::shared_ptr<CallState> state_;               // shared with the process
    pid_t pid_ = -1, owner_ = -1;                    // the process, and its parent
    std::deque<Message> answers_;                    // not yet read by await()
    std::deque<std::vector<std::uint64_t>> totals_;  // not yet read by next_totals()
    Sink sink_;
    std::uint64_t taken_ = 0, told_to_take_ = 0;  // buffers
    std::string damage_;
    // State at the last check, and for how long it has not changed.
    std::uint64_t watched_call_ = CallState::kNoCall;
    bool watched_end_ = false;  // of the channel
    std::chrono::steady_clock::time_point last_look_{};
    std::chrono::steady_clock::duration seen_{0};
    // Processor time of the process at the last check, and for how long it has been idle although
    // it had work.
    std::chrono::nanoseconds watched_time_{0}, watched_queue_{0};  // watched_queue_: queued_time()
    std::chrono::steady_clock::duration silent_{0};
};

// Loads one of assay's own profilers into this process, and any other profiler into a new process.
// `debug_cache`: see GuestSettings. Throws Error.
std::unique_ptr<ProfilerHandle> load_profiler(const std::string& path, const std::string& command,
                                              CrashGuard& guard,
                                              const std::string& debug_cache = {});

// Returns the path of the profiler called `name`. This is the file NAME.so, or a file whose vp_name
// is `name`. To read vp_name, the function loads all profilers that do not come with assay. A name
// with a slash is already a path. Throws Error.
std::string find_profiler(const std::string& name, CrashGuard& guard);

}  // namespace assay::collector
