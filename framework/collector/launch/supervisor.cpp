#include "framework/collector/launch/supervisor.h"

#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/collector/launch/deadline.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/trace/launch.h"
#include "framework/trace/segment_layout.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::collector {
namespace {

[[noreturn]] void fail(const char* what) {
    throw Error(fmt::format("cannot {}: {}", what, system_reason(errno)));
}

bool hung_up(int descriptor) {
    pollfd end{descriptor, 0, 0};
    return poll(&end, 1, 0) > 0 && end.revents & POLLHUP;
}

void discard_stream(int stream) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, stream);
    close(null);
}

constexpr int kBeSilent = SIGUSR1;

// Called in a collector that outlives the run. It closes stderr, because a reader of assay's stderr
// waits until all writers have closed it. The supervisor sends the signal for that. The same signal
// to the whole process group is meant for the program.
void be_silent(int, siginfo_t* info, void*) {
    if (info->si_pid != getppid()) return;
    const int error = errno;
    discard_stream(STDERR_FILENO);
    HostedProfiler::signal_all(kBeSilent);  // its process has the same handler
    errno = error;
}

// A terminal or a user sends signals to the run for the sake of the program. The collectors ignore
// them: they end when the program ends.
void ignore_signals() {
    for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGUSR2, SIGTSTP})
        std::signal(number, SIG_IGN);
    struct sigaction silent {};
    silent.sa_sigaction = be_silent;
    silent.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(kBeSilent, &silent, nullptr);
}

sigset_t child_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

// Returns the number of the image within its process, from 1.
unsigned image_number(int segment) {
    std::uint32_t number = 0;
    const auto offset = trace::kControlOffset + offsetof(trace::Control, image);
    const ssize_t got = pread(segment, &number, sizeof number, static_cast<off_t>(offset));
    return got == sizeof number ? number : 1;
}

// Returns the result of recv(2). The descriptors stay -1 if the message does not come from a driver
// of this version. They also stay -1 if this process has too many open files; `truncated` is then
// true.
ssize_t receive_announcement(int channel, Supervisor::Arrival& arrival, bool& truncated) {
    trace::Announcement announcement;
    std::array<int, trace::kAnnouncedDescriptors> descriptors{-1, -1};
    iovec content{&announcement, sizeof announcement};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors) + CMSG_SPACE(sizeof(ucred))>
        control{};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got <= 0) return got;
    ucred sender{};
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        // The kernel passes fewer descriptors if this process reaches its limit.
        if (part->cmsg_type == SCM_RIGHTS)
            std::memcpy(descriptors.data(), CMSG_DATA(part),
                        std::min(sizeof descriptors, part->cmsg_len - CMSG_LEN(0)));
        if (part->cmsg_type == SCM_CREDENTIALS)
            std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
    }
    truncated = message.msg_flags & MSG_CTRUNC;
    const bool complete = descriptors.back() >= 0;
    if (complete && announcement.version == trace::Announcement::kVersion) {
        arrival = {sender.pid, descriptors[trace::kAnnouncedSegment],
                   descriptors[trace::kAnnouncedLifeline], 0, 0};
        return got;
    }
    // The closed lifeline tells the driver to go on without a collector.
    for (const int descriptor : descriptors)
        if (descriptor >= 0) close(descriptor);
    arrival = {sender.pid, -1, -1, 0, 0};
    return got;
}

}  // namespace

// Counts collectors, in memory that assay, the supervisor and the collectors share.
struct Supervisor::Tally {
    std::atomic<std::uint32_t> announced;  // images that drivers have announced
    std::atomic<std::uint32_t> done;       // collectors whose profile is as requested
    std::atomic<std::uint32_t> failed;     // collectors that failed or did not start
};

// Runs in the supervisor's process.
class Supervisor::Loop {
  public:
    Loop(int channel, int link, Tally& tally, const Work& work)
        : channel_(channel), link_(link), tally_(tally), work_(work) {
        const sigset_t set = child_signal();
        sigprocmask(SIG_BLOCK, &set, nullptr);
        ended_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        std::array<int, 2> ends{-1, -1};
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0)
            std::tie(heard_, told_) = std::pair(ends[0], ends[1]);
        // Each running process needs two descriptors.
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }

    // Returns when no driver and no collector is left.
    void run() {
        while (channel_ >= 0 || link_ >= 0 || !collectors_.empty()) {
            std::array<pollfd, 4> sources{{{ended_, POLLIN, 0},
                                           {channel_, POLLIN, 0},
                                           {leaving_ ? -1 : link_, POLLIN, 0},
                                           {heard_, POLLIN, 0}}};
            poll(sources.data(), sources.size(), -1);
            reap();
            if (sources[1].revents)
                receive();
            else if (sources[2].revents)
                leave();
            else if (sources[3].revents)
                learn();
            if (leaving_ && link_ >= 0 && !any_awaited()) let_go();
        }
    }

  private:
    // Counts the images of all processes with one id.
    struct Numbers {
        unsigned earlier = 0, last = 0;
    };
    struct Collector {
        pid_t pid, process;
        int lifeline;
        bool awaited;  // its process ended before the first process
    };

    void reap() {
        signalfd_siginfo ignored{};
        while (read(ended_, &ignored, sizeof ignored) > 0) {
        }
        int status = 0;
        for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            const auto it = std::find_if(collectors_.begin(), collectors_.end(),
                                         [&](const Collector& c) { return c.pid == pid; });
            if (it == collectors_.end()) continue;
            // For example, the kernel ends a collector when memory is short. In all other cases the
            // collector has reported the problem itself.
            if (WIFSIGNALED(status))
                log::problem(
                    fmt::format("there is no profile of process {}: its collector was ended by "
                                "signal {} ({})",
                                it->process, WTERMSIG(status), strsignal(WTERMSIG(status))));
            if (status != 0) ++tally_.failed;
            close(it->lifeline);
            collectors_.erase(it);
        }
    }

    // Receives all waiting announcements.
    void receive() {
        while (channel_ >= 0) {
            Arrival arrival{};
            bool truncated = false;
            const ssize_t got = receive_announcement(channel_, arrival, truncated);
            if (got < 0) return;
            if (got == 0) {
                close(std::exchange(channel_, -1));  // no driver is left
            } else if (arrival.segment_fd >= 0) {
                arrival.place = ++tally_.announced;
                arrival.earlier = earlier_images(arrival);
                if (!std::exchange(prepared_, true)) work_.prepare();
                start_collector(arrival);
            } else if (truncated) {
                no_collector(arrival.pid, "too many open files; raise the limit (ulimit -n)");
            }
        }
    }

    // The kernel reuses the ids of ended processes, for example in a build with many processes. A
    // new process begins with image 1.
    unsigned earlier_images(const Arrival& arrival) {
        const unsigned number = image_number(arrival.segment_fd);
        Numbers& numbers = numbers_[arrival.pid];
        if (number == 1) numbers.earlier = numbers.last;
        numbers.last = numbers.earlier + number;
        return numbers.earlier;
    }

    void learn() const {
        std::array<char, kMostToTell> message;
        const ssize_t got = recv(heard_, message.data(), message.size(), 0);
        if (got > 0 && !leaving_) work_.learn({message.data(), static_cast<std::size_t>(got)});
    }

    void no_collector(int pid, std::string_view why) {
        ++tally_.failed;
        log::problem(fmt::format("no collector can be started for process {}: {}", pid, why));
    }

    void start_collector(const Arrival& arrival) {
        const pid_t pid = fork();
        if (pid == 0) become_collector(arrival);
        close(arrival.segment_fd);
        if (pid > 0) return collectors_.push_back({pid, arrival.pid, arrival.lifeline_fd, false});
        no_collector(arrival.pid, system_reason(errno));
        close(arrival.lifeline_fd);  // this tells the driver to go on without a collector
    }

    [[noreturn]] void become_collector(const Arrival& arrival) {
        for (const int descriptor : {channel_, link_, ended_, heard_})
            if (descriptor >= 0) close(descriptor);
        for (const Collector& other : collectors_) close(other.lifeline);
        const sigset_t set = child_signal();
        sigprocmask(SIG_UNBLOCK, &set, nullptr);
        bool done = false;
        try {
            done = work_.collect(arrival, [this](std::string_view told) {
                send(told_, told.data(), told.size(), MSG_NOSIGNAL);
            });
        } catch (const std::exception& e) {
            log::problem(e.what());
        }
        if (done) ++tally_.done;
        std::fflush(nullptr);
        std::_Exit(done ? 0 : kExitFailure);
    }

    // Called when the first process has ended. From now on, assay waits only for collectors whose
    // own process has also ended.
    void leave() {
        leaving_ = true;
        for (Collector& collector : collectors_) collector.awaited = hung_up(collector.lifeline);
        const auto running = std::count_if(collectors_.begin(), collectors_.end(),
                                           [](const Collector& c) { return !c.awaited; });
        if (running == 0) return;
        log::remark(
            fmt::format("{} of the program's processes {} still running; each writes its "
                        "file when it ends",
                        running, running == 1 ? "is" : "are"));
    }

    bool any_awaited() const {
        return std::any_of(collectors_.begin(), collectors_.end(),
                           [](const Collector& collector) { return collector.awaited; });
    }

    void let_go() {
        for (const Collector& collector : collectors_) kill(collector.pid, kBeSilent);
        discard_stream(STDERR_FILENO);
        send(link_, "", 1, MSG_NOSIGNAL);  // tells this end from the end of a killed supervisor
        close(std::exchange(link_, -1));
    }

    int channel_, link_, ended_ = -1;
    int told_ = -1, heard_ = -1;  // ends of a socket that collectors write to
    Tally& tally_;
    const Work& work_;
    std::vector<Collector> collectors_;
    std::map<int, Numbers> numbers_;  // by process id
    bool prepared_ = false;
    bool leaving_ = false;
};

Supervisor::Supervisor() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        fail("create a socket for the program's children");
    receiving_end_ = ends[0];
    driver_end_ = trace::move_high(ends[1]);
    // The kernel adds the sender's process id, as this PID namespace knows it (unix(7)).
    const int wanted = 1;
    setsockopt(receiving_end_, SOL_SOCKET, SO_PASSCRED, &wanted, sizeof wanted);
}

Supervisor::~Supervisor() {
    end_stand_in();
    close_driver_end();
    for (const int descriptor : {receiving_end_, link_, collectors_})
        if (descriptor >= 0) close(descriptor);
    if (tally_) munmap(tally_, sizeof *tally_);
}

void Supervisor::close_driver_end() {
    if (driver_end_ >= 0) close(std::exchange(driver_end_, -1));
}

void Supervisor::start(const Work& work) {
    int link[2], collectors[2];
    void* const shared =
        mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("map memory for the program's children");
    tally_ = new (shared) Tally{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0 ||
        pipe2(collectors, O_CLOEXEC) != 0)
        fail("create a socket for the program's children");
    std::fflush(nullptr);  // otherwise both processes would write the buffered output
    pid_ = fork();
    if (pid_ < 0)
        throw Error(fmt::format("cannot start a process for the program's children: {}",
                                reason_of_no_process(errno)));
    if (pid_ == 0) {
        for (const int descriptor : {link[0], collectors[0]}) close(descriptor);
        close_driver_end();
        work.begin();
        ignore_signals();
        discard_stream(STDIN_FILENO);
        discard_stream(STDOUT_FILENO);
        Loop(receiving_end_, link[1], *tally_, work).run();
        std::_Exit(0);
    }
    close(link[1]);
    close(collectors[1]);
    link_ = link[0];
    collectors_ = collectors[0];
    const SignalsBlocked blocked;
    stand_in_ = std::thread([this] { stand_in(); });
}

bool Supervisor::leave() {
    if (link_ < 0) return true;
    end_stand_in();
    shutdown(link_, SHUT_WR);
    const Answer answer = hear();
    if (answer == Answer::kKilled) return leave_without();
    return answer == Answer::kNone || tally_->failed == 0;
}

// Returns kNone if a profiler has closed the descriptor of the link.
Supervisor::Answer Supervisor::hear() {
    constexpr int kPatience = 1000;  // milliseconds
    for (;;) {
        pollfd link{link_, POLLIN, 0};
        const int ready = poll(&link, 1, kPatience);
        if (ready == 0) say_if_stopped();
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        char byte = 0;
        const ssize_t got = ready > 0 ? read(link_, &byte, 1) : -1;
        return got > 0 ? Answer::kDone : got == 0 ? Answer::kKilled : Answer::kNone;
    }
}

void Supervisor::say_if_stopped() {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != pid_ || std::exchange(told_stopped_, true))
        return;
    log::problem(
        fmt::format("the process that starts the collectors of children is stopped: kill -CONT {} "
                    "lets it go on",
                    pid_));
}

// Runs in a thread. It acts if the supervisor dies before assay leaves. It polls, because it would
// block for ever if a profiler closed the descriptor.
void Supervisor::stand_in() {
    constexpr std::chrono::milliseconds kPause{100};
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kPause, [this] { return leaving_; }))
        if (hung_up(link_) && !turn_away()) return;
}

void Supervisor::end_stand_in() {
    if (!stand_in_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        leaving_ = true;
    }
    changed_.notify_all();
    stand_in_.join();
}

// Turns away all waiting announcements. The closed lifelines tell the drivers to go on without a
// collector. Returns false if no driver is left.
bool Supervisor::turn_away() {
    for (;;) {
        Arrival arrival{};
        bool truncated = false;
        const ssize_t got = receive_announcement(receiving_end_, arrival, truncated);
        if (got < 0) return errno == EAGAIN;
        if (got == 0) return false;
        ++turned_away_;
        for (const int descriptor : {arrival.segment_fd, arrival.lifeline_fd})
            if (descriptor >= 0) close(descriptor);
    }
}

// The remaining collectors end soon, except those of processes that outlive the program.
bool Supervisor::leave_without() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    char nothing = 0;
    if (!turn_away())
        while (read(collectors_, &nothing, 1) < 0 && errno == EINTR) {
        }
    const std::uint32_t missing = tally_->announced - tally_->done + turned_away_;
    if (missing == 0) return true;
    const std::string how = WIFSIGNALED(status)
                                ? fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                              strsignal(WTERMSIG(status)))
                                : "has ended too early";
    log::problem(
        fmt::format("the process that starts the collectors of children {}: the profiles "
                    "of up to {} images of the program are missing",
                    how, missing));
    return false;
}

}  // namespace assay::collector
