// The process that gives every new image of the profiled program a collector.
//
// The supervisor is forked when the profilers are loaded and nothing has been processed. It
// receives the announcements of drivers (framework/trace/launch.h), and forks one collector for
// each. Every collector therefore begins in the same state, and a failure of one does not affect
// the others.
//
// The supervisor itself can be killed. Running collectors continue. `assay run` has a copy of the
// channel: it turns announcements away, because drivers would wait for an answer, and says at the
// end which profiles are missing.
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
        std::size_t place;  // from 1
        // Number of images of earlier processes of this run that had the same id.
        unsigned earlier;
    };
    // Sends a message that may be lost if the supervisor is busy.
    static constexpr std::size_t kMostToTell = std::size_t{64} * 1024;
    using Tell = std::function<void(std::string_view)>;
    struct Work {
        // Called first, in the supervisor's process: gives up resources of the parent.
        std::function<void()> begin;
        // Called in the supervisor, before it forks the first collector: prepares data that all
        // collectors need.
        std::function<void()> prepare;
        // Called in a collector's process, which ends afterwards. `learn` gets the texts passed to
        // `tell`. Returns false if the profile is not as requested.
        std::function<bool(const Arrival&, const Tell& tell)> collect;
        // Called in the supervisor when it is idle, with a text from a collector. Collectors that
        // are forked later profit from it.
        std::function<void(std::string_view)> learn;
    };

    // Creates the channel. Throws Error.
    Supervisor();
    ~Supervisor();
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;

    // Drivers inherit this end of the channel.
    int driver_end() const { return driver_end_; }
    void close_driver_end();
    // Forks. This process must have no other threads. Throws Error.
    void start(const Work& work);
    // Returns when the collectors of all ended processes are done. Collectors of processes that
    // still run continue silently. Returns false, after a message, if a profile is missing that was
    // due.
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
    int link_ = -1;  // to the supervisor's process; either side closes it when it is done
    int collectors_ =
        -1;  // one end of a pipe; the supervisor and the collectors have the other end
    pid_t pid_ = -1;
    Tally* tally_ = nullptr;
    std::atomic<std::uint32_t> turned_away_{0};
    bool told_stopped_ = false;
    bool leaving_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::thread stand_in_;  // last, because it uses the other members
};

}  // namespace assay::collector
