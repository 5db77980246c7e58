// The driver's process, and with it the profiled program: assay's only child.
#pragma once

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

// While the child runs, signals are dealt with as a run needs it: SIGINT and SIGQUIT, which a
// terminal sends to the program as well, are ignored; those that are meant for the program are
// passed on to it; the child's end increments `doorbell` and wakes who waits for it. One child
// at a time.
class Child {
  public:
    struct Settings {
        std::vector<std::string> argv;  // the driver's; argv[0] is its file
        int segment_fd;                 // stays open in the child
        bool randomize_addresses;
        std::atomic<std::uint32_t>* doorbell;
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
    // How it ended, if it has; signals have their usual effect from then on.
    std::optional<Ending> ended();

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
