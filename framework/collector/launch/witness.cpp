#include "framework/collector/launch/witness.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <string>
#include <string_view>

namespace assay::collector {
namespace {

constexpr int kSignals = 32;                   // those of POSIX: 1 to 31
constexpr std::uint32_t kPatience = 10;        // milliseconds
constexpr std::uint32_t kAtTheSameTime = 100;  // milliseconds

// What has come last of a signal: 0 if none has. Aligned so that it is read and written as a whole.
struct alignas(8) Arrival {
    std::uint32_t when;  // milliseconds of the clock
    std::uint32_t sender;
};

// Shared with the witness. It stays mapped: a handler may still look there.
using Arrivals = std::array<std::atomic<Arrival>, kSignals>;
static_assert(std::atomic<Arrival>::is_always_lock_free);
std::atomic<Arrivals*> arrivals{nullptr};

// /proc/PID/status of the witness.
std::atomic<int> status_file{-1};

std::uint32_t milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint32_t>(now.tv_sec * 1'000 + now.tv_nsec / 1'000'000);
}

// Signals sent by name (pkill(1), killall(1)) to assay are not for the group: neither the name nor
// the command line shall be assay's. System calls only, as in all of this process.
void take_other_name() {
    constexpr std::string_view kName = "witness";
    prctl(PR_SET_NAME, kName.data());
    std::array<char, 2048> text{};
    const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = read(file, text.data(), text.size() - 1);
    close(file);
    // proc_pid_stat(5): the second field ends with the last ')', the command line's addresses are
    // the 48th and the 49th.
    const char* field = bytes > 0 ? std::strrchr(text.data(), ')') : nullptr;
    for (int number = 2; field && number < 48; ++number) field = std::strchr(field + 1, ' ');
    if (!field) return;
    char* next = nullptr;
    const std::uint64_t begin = std::strtoull(field, &next, 10);
    const std::uint64_t end = std::strtoull(next, nullptr, 10);
    if (begin == 0 || end < begin + kName.size()) return;
    auto* const line = reinterpret_cast<char*>(begin);
    std::memset(line, 0, end - begin);
    std::memcpy(line, kName.data(), kName.size());
}

[[noreturn]] void watch(Arrivals& seen, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    // Others wait for the end of what the descriptors write to.
    closefrom(0);
    take_other_name();
    sigset_t all;
    sigfillset(&all);
    for (;;) {
        siginfo_t info{};
        const int signal = sigwaitinfo(&all, &info);
        if (signal > 0 && signal < kSignals)
            seen[static_cast<unsigned>(signal)] =
                Arrival{milliseconds(), static_cast<std::uint32_t>(info.si_pid)};
    }
}

// The witness may have to wait for a processor.
bool is_on_its_way(int signal) {
    constexpr std::string_view kLine = "ShdPnd:";
    std::array<char, 4096> text{};
    if (pread(status_file, text.data(), text.size() - 1, 0) <= 0) return false;
    const char* const line = std::strstr(text.data(), kLine.data());
    if (!line) return false;
    return std::strtoull(line + kLine.size(), nullptr, 16) >> (signal - 1) & 1;
}

bool has_come(int signal, pid_t sender) {
    const Arrival last = (*arrivals.load())[static_cast<unsigned>(signal)];
    return last.when != 0 && last.sender == static_cast<std::uint32_t>(sender) &&
           milliseconds() - last.when < kAtTheSameTime;
}

}  // namespace

Witness::Witness() {
    void* const shared =
        mmap(nullptr, sizeof(Arrivals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return;
    auto* const seen = new (shared) Arrivals{};
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) watch(*seen, parent);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    arrivals = seen;
    if (pid_ < 0) return;
    const std::string status = "/proc/" + std::to_string(pid_) + "/status";
    status_file = open(status.c_str(), O_RDONLY | O_CLOEXEC);
}

Witness::~Witness() {
    end();
}

// One that was sent twice at the same time counts as one, as where the first is still pending when
// the second comes.
bool Witness::saw(int signal, pid_t sender) {
    constexpr timespec kMoment{0, 1'000'000};
    if (!arrivals || signal >= kSignals) return false;
    const std::uint32_t start = milliseconds();
    while (!is_on_its_way(signal) && !has_come(signal, sender)) {
        if (milliseconds() - start >= kPatience) return false;
        nanosleep(&kMoment, nullptr);
    }
    return true;
}

void Witness::end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    abandon();
}

void Witness::abandon() {
    pid_ = -1;
    if (const int file = status_file.exchange(-1); file >= 0) close(file);
}

}  // namespace assay::collector
