// The driver's process, and with it the profiled program: a child of assay.
#pragma once

#include "framework/trace/launch.h"

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

}  // namespace assay::collector
