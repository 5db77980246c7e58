// A profiler whose code runs in a process of its own (channel.h): whatever it does there, to its
// memory, its descriptors, its signals or the process itself, costs its own columns only.
//
// The process reads the same trace segment as the collector, which it cannot change, and sends back
// what the profiler returns. The collector says which buffer is next, so that all see the records
// of several threads in one order, and gives a buffer back to the driver when all have read it.
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
    // How long a call may take, as of now; 0: as long as it likes.
    using Limit = std::function<std::chrono::milliseconds()>;

    // Starts the process and waits until the profiler is loaded. This one must have no other thread
    // that is doing anything. Throws Error if the profiler is unusable.
    explicit HostedProfiler(GuestSettings settings);
    // Ends the process.
    ~HostedProfiler() override;

    // In place of the one of the settings.
    void set_limit(Limit limit) { limit_ = std::move(limit); }
    void set_command(std::string command) override { settings_.command = std::move(command); }
    void set_sampling(bool samples) override { samples_ = samples; }
    // In a process that fork(2) has made of the one before: starts another one, first.
    void set_options(std::span<const std::pair<std::string, std::string>> settings) override;
    trace::Spec start() override;
    std::string summary(std::span<const std::uint64_t> totals) override;
    void stop() override;
    std::optional<std::string> preface(const trace_instr_t& instr, std::string_view list) override;
    std::optional<std::string> format(const trace_instr_t& instr, std::uint64_t value) override;

    // --- The steps between start() and summary(). Samples arrive in any of them.

    struct Collected {
        int pid;
        int segment;  // its descriptor
        const trace::Spec& spec;
        std::uint64_t interval;  // of trace_capture_intervals
        bool contexts;           // of all profilers
    };
    // The segment has its specification. From now on SIGIO says when something has arrived.
    void collect(const Collected& what, Sink sink);
    std::vector<std::string> libraries() const override;

    // The next buffer of the slot is to be processed.
    void take(std::uint32_t slot);
    // What the slots have left is.
    void take_rest();
    // Receives what has arrived, and sees whether the process is still there.
    void look();
    // The same, after waiting for something a moment.
    void wait();
    // Of the buffers, how many have been processed, as far as has been received. All of them if the
    // profiler is lost.
    std::uint64_t taken() const { return lost() ? UINT64_MAX : taken_; }
    // Why the trace cannot be read any further; "" if it can.
    const std::string& damage() const { return damage_; }
    // What had been counted so far, by event, at the end of the next burst.
    std::vector<std::uint64_t> next_totals();
    // Lets the profiler finish, and receives all that it has counted. begin_finish() does not wait.
    // `time`: see Feed::impossible_counts().
    void begin_finish(std::chrono::duration<double> time);
    void finish();

    // In another process that fork(2) has made of this one: its process is not this one's.
    void abandon();
    // The processes of profilers that this one has started, and starts from now on, get a signal.
    // Async-signal-safe.
    static void signal_all(int signal);

  private:
    void start_process();
    void receive_facts();
    void tell(const Message& message, int descriptor = -1);
    // Waits for the answer, which is of this kind, or for the profiler's loss.
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
    std::string first_facts_;  // of the process that was started first
    Channel channel_;
    std::shared_ptr<CallState> state_;               // shared with the process
    pid_t pid_ = -1, owner_ = -1;                    // the process, and who has started it
    std::deque<Message> answers_;                    // that have not been looked at
    std::deque<std::vector<std::uint64_t>> totals_;  // likewise
    Sink sink_;
    std::uint64_t taken_ = 0, told_to_take_ = 0;  // buffers
    std::string damage_;
    // What was seen at the last look, and how long it has been so.
    std::uint64_t watched_call_ = CallState::kNoCall;
    bool watched_end_ = false;  // of the channel
    std::chrono::steady_clock::time_point last_look_{};
    std::chrono::steady_clock::duration seen_{0};
    // The processor time of the process then, and how long it has had something to do and done
    // nothing.
    std::chrono::nanoseconds watched_time_{0};
    std::chrono::steady_clock::duration silent_{0};
};

// Loads a profiler into this process if it is one of assay's own, and else into one of its own.
// `debug_cache`: see GuestSettings. Throws Error.
std::unique_ptr<ProfilerHandle> load_profiler(const std::string& path, const std::string& command,
                                              CrashGuard& guard,
                                              const std::string& debug_cache = {});

// Profilers by the name of their file, and by the name that they give themselves.

// The path of the profiler called `name`: of the file NAME.so, or else of that whose vp_name says
// so, for which those that do not come with assay are loaded. A name with a slash is a path
// already. Throws Error.
std::string find_profiler(const std::string& name, CrashGuard& guard);

}  // namespace assay::collector
