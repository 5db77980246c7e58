#include "framework/collector/launch/child.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/trace/futex.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace assay::collector {
namespace {

// Used by the signal handler.
std::atomic<int> forward_pid{0};

// The terminal sends its signals to all foreground processes, and so to the program. These signals
// come from the kernel (drivers/tty/n_tty.c, isig()). A signal that the program sends to its
// process group or to its parent must not come back to the program.
void forward(int signal, siginfo_t* info, void*) {
    const int error = errno;
    if (info->si_code != SI_KERNEL && info->si_pid != forward_pid) Child::send(signal);
    errno = error;
}

constexpr std::array kForwarded{SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// Runs between fork and exec, so it may use system calls only.
[[noreturn]] void become_driver(const char* driver, char* const* argv, char* const* environment,
                                const trace::Launch& launch, int start_fd) {
    // The program would hang without the collector, because nothing would empty the trace buffers.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char go = 0;
    while (read(start_fd, &go, 1) < 0 && errno == EINTR) {
    }
    if (go != 1) _exit(kExitFailure);
    for (const int fd :
         {launch.segment_fd, launch.program_fd, launch.lifeline_fd, launch.channel_fd})
        if (fd >= 0) fcntl(fd, F_SETFD, 0);
    execve(driver, argv, environment);
    constexpr std::string_view kMessage = "assay: the driver cannot be executed\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
    _exit(kExitFailure);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> to;
    to.reserve(words.size() + 1);
    for (const std::string& word : words) to.push_back(const_cast<char*>(word.c_str()));
    to.push_back(nullptr);
    return to;
}

// The child inherits the personality. A personality takes effect only at an exec, so the collector
// itself is not affected. Containers may forbid the call. The driver still chooses the program's
// addresses itself then, but its own addresses are random: the driver may lie where the program
// demands memory.
class AddressesNotRandomized {
  public:
    explicit AddressesNotRandomized(bool wanted) {
        constexpr unsigned long kQuery = 0xFFFFFFFF;
        before_ = personality(kQuery);
        if (wanted && before_ >= 0)
            personality(static_cast<unsigned long>(before_) | ADDR_NO_RANDOMIZE);
    }
    ~AddressesNotRandomized() {
        // The child keeps the personality for its exec.
        if (before_ >= 0 && getpid() == parent_) personality(static_cast<unsigned long>(before_));
    }
    AddressesNotRandomized(const AddressesNotRandomized&) = delete;
    AddressesNotRandomized& operator=(const AddressesNotRandomized&) = delete;

  private:
    int before_;
    pid_t parent_ = getpid();
};

}  // namespace

struct Child::Signals {
    struct Saved {
        int signal;
        struct sigaction action;
    };
    std::vector<Saved> saved;

    // Also handles signals that are ignored, such as SIGINT in a background job of a script. The
    // program inherits this setting, but may have set a handler since.
    void set(int signal, struct sigaction action) {
        Saved before{signal, {}};
        sigaction(signal, nullptr, &before.action);
        sigaction(signal, &action, nullptr);
        saved.push_back(before);
    }
    void restore() {
        for (const Saved& before : saved) sigaction(before.signal, &before.action, nullptr);
        saved.clear();
    }
};

Child::Child(const Settings& settings) : signals_(std::make_unique<Signals>()) {
    const std::vector<char*> argv = pointers(settings.argv);
    std::vector<char*> own;
    // `environ` is null after clearenv(3).
    for (char** variable = environ; variable && *variable; ++variable) own.push_back(*variable);
    const trace::DriverEnvironment environment = trace::driver_environment(own, settings.launch);
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        throw Error(fmt::format("cannot create a pipe: {}", system_reason(errno)));

    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    struct sigaction ignore {
    }, take_default{}, pass_on{};
    ignore.sa_handler = SIG_IGN;
    take_default.sa_handler = SIG_DFL;
    pass_on.sa_sigaction = forward;
    pass_on.sa_flags = SA_SIGINFO | SA_RESTART;
    // The reader of assay's stderr may have gone away. That must not end the run.
    signals_->set(SIGPIPE, ignore);
    // If SIGCHLD is ignored, the kernel forgets how the program ended.
    signals_->set(SIGCHLD, take_default);
    for (const int signal : kForwarded) signals_->set(signal, pass_on);
    {
        const AddressesNotRandomized personality_of_child(!settings.randomize_addresses);
        pid_ = fork();
    }
    const int error = errno;
    if (pid_ == 0) {
        signals_->restore();
        close(pipe_ends[1]);
        sigprocmask(SIG_SETMASK, &before, nullptr);
        become_driver(settings.driver.c_str(), argv.data(), environment.pointers.data(),
                      settings.launch, pipe_ends[0]);
    }
    forward_pid = std::max(pid_, 0);
    if (pid_ < 0) signals_->restore();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    close(pipe_ends[0]);
    start_fd_ = pipe_ends[1];
    if (pid_ > 0) return;
    close(start_fd_);
    throw Error(fmt::format("cannot start a process: {}", reason_of_no_process(error)));
}

Child::~Child() {
    close(start_fd_);
    if (pid_ > 0 && !ending_) {
        kill(pid_, SIGKILL);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    forward_pid = 0;
    signals_->restore();
}

void Child::start() {
    constexpr char kGo = 1;
    // ended() notices a child that was killed in the meantime.
    [[maybe_unused]] const auto written = write(start_fd_, &kGo, 1);
}

void Child::send(int signal) {
    if (const int pid = forward_pid.load()) kill(pid, signal);
}

Ending Child::wait() {
    if (ending_) return *ending_;
    siginfo_t info{};
    const auto pid = static_cast<id_t>(pid_);
    const auto wait_for_end = [&](int options) {
        int status = 0;
        while ((status = waitid(P_PID, pid, &info, WEXITED | options)) != 0 && errno == EINTR) {
        }
        return status == 0;
    };
    // The child stays a zombie at first: its process id must not be reused while signals are sent
    // to it.
    const bool found = wait_for_end(WNOWAIT);
    forward_pid = 0;
    signals_->restore();
    if (!found || !wait_for_end(0)) {
        log::problem("it is unknown how the program ended: a profiler has waited for its process");
        ending_ = Ending{kExitFailure, 0};
    } else {
        ending_ =
            info.si_code == CLD_EXITED ? Ending{info.si_status, 0} : Ending{0, info.si_status};
    }
    return *ending_;
}

void Child::abandon() {
    forward_pid = 0;
    signals_->restore();
    pid_ = -1;
    close(std::exchange(start_fd_, -1));
}

void end_like(const Ending& ending) {
    if (ending.signal == 0) std::exit(ending.exit_status);
    // The program has already dumped its core if it was to. A core of assay must not follow.
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(ending.signal, SIG_DFL);
    sigset_t unblocked;
    sigemptyset(&unblocked);
    sigaddset(&unblocked, ending.signal);
    sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
    raise(ending.signal);
    constexpr int kSignalBase = 128;  // a shell's status for a process that a signal ended
    std::exit(kSignalBase + ending.signal);
}

namespace {

// Used by the signal handler.
std::atomic<std::atomic<std::uint32_t>*> rung{nullptr};

void on_end(int) {
    const int error = errno;
    if (auto* doorbell = rung.load()) {
        doorbell->fetch_add(1);
        trace::futex_wake(*doorbell);
    }
    errno = error;
}

}  // namespace

Lifeline::Lifeline() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Error(fmt::format("cannot create a pipe: {}", system_reason(errno)));
    reading_end_ = ends[0];
    writing_end_ = trace::move_high(ends[1]);
}

Lifeline::~Lifeline() {
    rung = nullptr;
    close(reading_end_);
    close_writing_end();
}

void Lifeline::close_writing_end() {
    if (writing_end_ >= 0) close(std::exchange(writing_end_, -1));
}

void Lifeline::ring_at_end(std::atomic<std::uint32_t>& doorbell) const {
    rung = &doorbell;
    struct sigaction action {};
    action.sa_handler = on_end;
    action.sa_flags = SA_RESTART;
    sigaction(SIGIO, &action, nullptr);
    fcntl(reading_end_, F_SETOWN, getpid());
    fcntl(reading_end_, F_SETFL, O_ASYNC);
}

bool Lifeline::ended() const {
    pollfd end{reading_end_, 0, 0};
    return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLNVAL);
}

}  // namespace assay::collector
