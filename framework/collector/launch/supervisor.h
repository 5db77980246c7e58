// The process that gives every new image of the profiled program a collector.
//
// It is forked when the profilers are loaded and nothing has been processed, receives the
// announcements of drivers (framework/trace/process_channel.h), and forks one collector for each:
// that one begins as this process has begun, and what happens to it reaches no other.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace assay::collector {

class Supervisor {
  public:
    struct Arrival {
        int pid;
        int segment_fd;
        int lifeline_fd;
    };
    // Sends what may be lost, and is if the supervisor has no time for it.
    static constexpr std::size_t kMostToTell = std::size_t{64} * 1024;
    using Tell = std::function<void(std::string_view)>;
    struct Work {
        // First, in the supervisor's process: gives up what belongs to this one.
        std::function<void()> begin;
        // In the supervisor's, before the first collector is forked: what all of them need.
        std::function<void()> prepare;
        // In a collector's process, which ends with it. What it tells goes to `learn`.
        std::function<void(const Arrival&, const Tell& tell)> collect;
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
    // that still run go on behind, silently.
    void leave();

  private:
    int driver_end_ = -1, receiving_end_ = -1;
    int link_ = -1;  // to the supervisor's process; closed by either side to say that it is done
};

}  // namespace assay::collector
