#include "framework/collector/child.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/trace/futex.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace assay::collector {
namespace {

// For the signal handlers.
std::atomic<int> forward_pid{0};
std::atomic<std::atomic<std::uint32_t>*> doorbell{nullptr};

void on_forwarded(int signal) {
    const int error = errno;
    if (const int pid = forward_pid.load()) kill(pid, signal);
    errno = error;
}

// The child may end between the collector's last look and its sleep: the changed doorbell makes
// futex(2) return at once then.
void on_child(int) {
    const int error = errno;
    if (auto* word = doorbell.load()) {
        word->fetch_add(1);
        trace::futex_wake(*word);
    }
    errno = error;
}

// SIGPIPE: nobody may be reading assay's stderr any more, which must not end the run.
constexpr std::array kIgnored{SIGINT, SIGQUIT, SIGPIPE};
constexpr std::array kForwarded{SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// Between fork and exec: system calls only.
[[noreturn]] void become_driver(char* const* argv, int segment_fd, int start_fd) {
    // Without the collector nothing empties the trace buffers: the program would hang.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char go = 0;
    while (read(start_fd, &go, 1) < 0 && errno == EINTR) {
    }
    if (go != 1) _exit(kExitFailure);
    fcntl(segment_fd, F_SETFD, 0);
    execv(argv[0], argv);
    constexpr std::string_view kMessage = "assay: the driver cannot be executed\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
    _exit(kExitFailure);
}

// The child inherits the personality; the collector's own takes effect only with an exec.
class AddressesNotRandomized {
  public:
    explicit AddressesNotRandomized(bool wanted) {
        constexpr unsigned long kQuery = 0xFFFFFFFF;
        before_ = personality(kQuery);
        if (wanted && (before_ < 0 ||
                       personality(static_cast<unsigned long>(before_) | ADDR_NO_RANDOMIZE) < 0))
            log::remark(fmt::format(
                "address-space randomisation cannot be turned off ({}): counts may differ from run "
                "to run",
                system_reason(errno)));
    }
    ~AddressesNotRandomized() {
        // Not in the child, which keeps it for its exec.
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

    // A signal that is ignored already, as SIGHUP is under nohup(1), stays so.
    void set(int signal, void (*handler)(int), bool even_if_ignored) {
        struct sigaction action {};
        action.sa_handler = handler;
        Saved before{signal, {}};
        sigaction(signal, nullptr, &before.action);
        if (before.action.sa_handler == SIG_IGN && !even_if_ignored) return;
        sigaction(signal, &action, nullptr);
        saved.push_back(before);
    }
    void restore() {
        for (const Saved& before : saved) sigaction(before.signal, &before.action, nullptr);
        saved.clear();
    }
};

Child::Child(const Settings& settings) : signals_(std::make_unique<Signals>()) {
    std::vector<char*> argv;
    for (const std::string& word : settings.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        throw Error(fmt::format("cannot create a pipe: {}", system_reason(errno)));

    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    doorbell = settings.doorbell;
    signals_->set(SIGCHLD, on_child, true);
    for (const int signal : kIgnored) signals_->set(signal, SIG_IGN, false);
    for (const int signal : kForwarded) signals_->set(signal, on_forwarded, false);
    {
        const AddressesNotRandomized personality_of_child(!settings.randomize_addresses);
        pid_ = fork();
    }
    const int error = errno;
    if (pid_ == 0) {
        signals_->restore();
        close(pipe_ends[1]);
        sigprocmask(SIG_SETMASK, &before, nullptr);
        become_driver(argv.data(), settings.segment_fd, pipe_ends[0]);
    }
    forward_pid = std::max(pid_, 0);
    if (pid_ < 0) signals_->restore();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    close(pipe_ends[0]);
    start_fd_ = pipe_ends[1];
    if (pid_ > 0) return;
    close(start_fd_);
    throw Error(fmt::format("cannot start a process: {}", system_reason(error)));
}

Child::~Child() {
    close(start_fd_);
    if (!ending_) {
        kill(pid_, SIGKILL);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    forward_pid = 0;
    signals_->restore();
    doorbell = nullptr;
}

void Child::start() {
    constexpr char kGo = 1;
    // A child that was killed meanwhile is found by ended().
    [[maybe_unused]] const auto written = write(start_fd_, &kGo, 1);
}

std::optional<Ending> Child::ended() {
    if (ending_) return ending_;
    siginfo_t info{};
    // It is left a zombie at first: its process id must not be reused while signals go there.
    const auto pid = static_cast<id_t>(pid_);
    const int status = waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (status == 0 && info.si_pid == 0) return {};
    forward_pid = 0;
    signals_->restore();
    if (status != 0) {  // a profiler has waited for it: how it ended is not known
        ending_ = Ending{kExitFailure, 0};
        return ending_;
    }
    waitid(P_PID, pid, &info, WEXITED | WNOHANG);
    ending_ = info.si_code == CLD_EXITED ? Ending{info.si_status, 0} : Ending{0, info.si_status};
    return ending_;
}

void end_like(const Ending& ending) {
    if (ending.signal == 0) std::exit(ending.exit_status);
    // The program has dumped its core if it was to: not assay on top.
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

}  // namespace assay::collector
