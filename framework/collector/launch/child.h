// The driver's process, a child of assay. The profiled program runs in the same process.
//
// This file also has the pipe that tells the collector when the process ends.
#pragma once

#include "framework/trace/launch.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::collector {

struct Ending {
    int exit_status = 0;
    int signal = 0;            // 0 if it exited
    std::string profile = {};  // of a run: the events file or the index of several; may be empty
};

// While the child runs, assay passes on to it the signals that ask a process to end or to act. The
// terminal sends its signals to the program directly. Only one child can exist at a time.
class Child {
  public:
    struct Settings {
        std::string driver;             // path of its file
        std::vector<std::string> argv;  // of the program
        trace::Launch launch;           // its descriptors stay open in the child
        bool randomize_addresses;
    };

    // Forks. The child waits for start() before it executes the driver: its process id is then
    // known while profilers are set up. Throws Error.
    explicit Child(const Settings& settings);
    // Kills a child that has not ended.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    int pid() const { return pid_; }
    void start();
    // Sends the child a signal if it has not ended. Async-signal-safe.
    static void send(int signal);
    // Waits until the child ends. Signals have their usual effect from then on.
    Ending wait();
    // Called in a process that was forked from this one. The child and its signals stay with the
    // parent.
    void abandon();

  private:
    struct Signals;

    std::unique_ptr<Signals> signals_;
    int pid_ = -1;
    int start_fd_ = -1;
    std::optional<Ending> ending_;
};

// Ends this process in the same way as the child.
[[noreturn]] void end_like(const Ending& ending);

// Tells when a process image has ended (framework/trace/launch.h).

class Lifeline {
  public:
    // Creates a pipe. A driver inherits its writing end. Throws Error.
    Lifeline();
    // Takes the reading end of a pipe that a driver has made.
    explicit Lifeline(int reading_end) : reading_end_(reading_end) {}
    ~Lifeline();
    Lifeline(const Lifeline&) = delete;
    Lifeline& operator=(const Lifeline&) = delete;

    int reading_end() const { return reading_end_; }
    int writing_end() const { return writing_end_; }
    // Called once the driver has the writing end.
    void close_writing_end();
    // From now on, the end of the image increments `doorbell` and sends SIGIO, which wakes a
    // waiting thread. Check ended() before each sleep: `doorbell` has changed by then, so the sleep
    // ends at once. Other senders of SIGIO have the same effect. Only one lifeline can ring at a
    // time.
    void ring_at_end(std::atomic<std::uint32_t>& doorbell) const;
    // Also true if a profiler has closed the descriptor, because nothing more can be heard from it.
    bool ended() const;

  private:
    int reading_end_ = -1, writing_end_ = -1;
};

}  // namespace assay::collector
