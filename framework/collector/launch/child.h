// The driver's process, and with it the profiled program: a child of assay.
//
// Also the pipe that tells its end to the collector.
#pragma once

#include "framework/trace/launch.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::collector {

// How a process ended.
struct Ending {
    int exit_status = 0;
    int signal = 0;  // 0 if it exited
};

// While the child runs, signals that ask a process to end, or to do something, are for the program:
// they are passed on to it, except those of the terminal, which the program gets anyway. One child
// at a time.
class Child {
  public:
    struct Settings {
        std::string driver;             // its file
        std::vector<std::string> argv;  // the program's
        trace::Launch launch;           // its descriptors stay open in the child
        bool randomize_addresses;
    };

    // Forks. The child waits for start() before it executes the driver, so that its process id is
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
    // Waits for its end; signals have their usual effect from then on.
    Ending wait();
    // In another process that fork(2) has made of this one: not its child, and not its signals.
    void abandon();

  private:
    struct Signals;

    std::unique_ptr<Signals> signals_;
    int pid_ = -1;
    int start_fd_ = -1;
    std::optional<Ending> ending_;
};

// Ends this process as the child ended.
[[noreturn]] void end_like(const Ending& ending);

// Tells when a process image has ended (framework/trace/launch.h).

class Lifeline {
  public:
    // A new pipe, whose writing end a driver shall inherit. Throws Error.
    Lifeline();
    // The reading end of one that a driver has made.
    explicit Lifeline(int reading_end) : reading_end_(reading_end) {}
    ~Lifeline();
    Lifeline(const Lifeline&) = delete;
    Lifeline& operator=(const Lifeline&) = delete;

    int reading_end() const { return reading_end_; }
    int writing_end() const { return writing_end_; }
    // Once the driver has it.
    void close_writing_end();
    // From now on the end increments `doorbell` and wakes who waits for it, by SIGIO: it interrupts
    // no sleep that begins after the last look at ended(), since the doorbell has changed by then.
    // What else sends SIGIO does the same. One lifeline at a time.
    void ring_at_end(std::atomic<std::uint32_t>& doorbell) const;
    // Also if a profiler has closed it: nothing more is heard from it.
    bool ended() const;

  private:
    int reading_end_ = -1, writing_end_ = -1;
};

}  // namespace assay::collector
