// The process that gives every new image of the profiled program a collector.
//
// It is forked when the profilers are loaded and nothing has been processed, receives the
// announcements of drivers (framework/trace/launch.h), and forks one collector for each:
// that one begins as this process has begun, and what happens to it reaches no other.
//
// It can be killed itself. The collectors that are there go on. `assay run`, which has a copy of
// the channel, then turns announcements away, since drivers would wait for their answer's sake, and
// says at the end what is missing.
#pragma once

#include <sys/types.h>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

namespace assay::collector {

class Supervisor {
  public:
    struct Arrival {
        int pid;
        int segment_fd;
        int lifeline_fd;
        std::size_t place;  // the first has 1
        // Images of processes of this run that had the same id before.
        unsigned earlier;
    };
    // Sends what may be lost, and is if the supervisor has no time for it.
    static constexpr std::size_t kMostToTell = std::size_t{64} * 1024;
    using Tell = std::function<void(std::string_view)>;
    struct Work {
        // First, in the supervisor's process: gives up what belongs to this one.
        std::function<void()> begin;
        // In the supervisor's, before the first collector is forked: what all of them need.
        std::function<void()> prepare;
        // In a collector's process, which ends with it. What it tells goes to `learn`. False if the
        // profile is not what was asked for.
        std::function<bool(const Arrival&, const Tell& tell)> collect;
        // In the supervisor's, when it has nothing else to do: what a collector has found out, for
        // those that are forked later.
        std::function<void(std::string_view)> learn;
    };

    // Makes the channel. Throws Error.
    Supervisor();
    ~Supervisor();
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;

    // Of the channel: drivers inherit it.
    int driver_end() const { return driver_end_; }
    void close_driver_end();
    // Forks. This process must have no other threads. Throws Error.
    void start(const Work& work);
    // Returns when the collectors of all processes that have ended are done. Those of processes
    // that still run go on behind, silently. False if one of the profiles that were due is missing,
    // which has been said.
    bool leave();

  private:
    class Loop;
    struct Tally;
    enum class Answer { kDone, kNone, kKilled };

    Answer hear();
    void say_if_stopped();
    void stand_in();
    void end_stand_in();
    bool turn_away();
    bool leave_without();

    int driver_end_ = -1, receiving_end_ = -1;
    int link_ = -1;  // to the supervisor's process; closed by either side to say that it is done
    int collectors_ = -1;  // a pipe's end; the supervisor and the collectors have the other one
    pid_t pid_ = -1;
    Tally* tally_ = nullptr;
    std::atomic<std::uint32_t> turned_away_{0};
    bool told_stopped_ = false;
    bool leaving_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::thread stand_in_;  // last, because it uses the others
};

}  // namespace assay::collector
