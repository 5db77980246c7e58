#include "tools/sweep/point_run.h"

#include "framework/collector/run/run.h"
#include "framework/support/descriptor.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/sweep/results.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

namespace assay::sweep {
namespace {

// Reads the bytes that the descriptor has now. False at its end.
bool read_some(int descriptor, std::string& text) {
    std::array<char, 65536> buffer;
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
}

void read_both(int out, int errors, CommandOutput& output) {
    std::array<pollfd, 2> ends{pollfd{out, POLLIN, 0}, pollfd{errors, POLLIN, 0}};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
        if (ends[0].revents != 0 && !read_some(out, output.text)) ends[0].fd = -1;
        if (ends[1].revents != 0 && !read_some(errors, output.problem)) ends[1].fd = -1;
    }
}

}  // namespace

CommandOutput output_of(const std::vector<std::string>& words) {
    std::vector<std::string> copies = words;
    std::vector<char*> argv;
    argv.reserve(copies.size() + 1);
    for (std::string& word : copies) argv.push_back(word.data());
    argv.push_back(nullptr);
    int out[2], errors[2];
    if (pipe2(out, O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + system_reason(errno));
    const Descriptor out_end(out[0]);
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close(out[1]);
        throw Error("cannot make a pipe: " + system_reason(errno));
    }
    const Descriptor errors_end(errors[0]);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, errors[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(out[1]);
    close(errors[1]);
    if (error != 0)
        throw Error(fmt::format("cannot run {}: {}", words.front(), system_reason(error)));
    CommandOutput output;
    read_both(out[0], errors[0], output);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    while (output.problem.ends_with('\n')) output.problem.pop_back();
    std::replace(output.problem.begin(), output.problem.end(), '\n', ' ');
    return output;
}

namespace {

namespace fs = std::filesystem;

// A log that begins with the command.
int open_log(const fs::path& path, const std::string& command) {
    const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    const std::string line = "$ " + command + "\n";
    if (log < 0 || write(log, line.data(), line.size()) < 0)
        throw Error(fmt::format("cannot write '{}': {}", path.string(), system_reason(errno)));
    return log;
}

// Runs in the child. It gets its own process group: Ctrl-C then reaches only the sweep, which
// decides what to do, and all processes that the program leaves behind can be ended.
void begin_child(pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kExitFailure);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(empty, STDIN_FILENO);
}

[[noreturn]] void execute(std::vector<std::string> command, int log) {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(words[0], words.data());
    _exit(kExitNotExecutable);
}

// The settings of `assay replay OPTION... TRACE`.
collector::CoreSettings settings_of(const std::vector<std::string>& command) {
    const auto line =
        collector::parse_command_line(std::span(command).subspan(2), collector::kReplay);
    return collector::take_core_settings(line.settings, collector::kReplay);
}

}  // namespace

PointRun::PointRun(const Plan& plan, const Folder& folder, std::span<const std::size_t> points)
    : folder_(folder), statuses_(memfd_create("exit statuses", MFD_CLOEXEC)) {
    for (const std::size_t number : points) {
        const std::string name = plan.name(number);
        const fs::path place = folder.unfinished(name);
        std::error_code error;
        fs::remove_all(place, error);
        if (!fs::create_directory(place, error))
            throw Error(
                fmt::format("cannot make the folder {}: {}", place.string(), error.message()));
        std::vector<std::string> command = plan.command(number, place / kEventsFile);
        const int log = open_log(folder.log(name), shell_line(command));
        points_.push_back(
            {number, name, place, std::move(command), std::make_unique<Descriptor>(log)});
    }
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0)
        throw Error(fmt::format("cannot start a process: {}", reason_of_no_process(errno)));
    if (pid_ == 0) {
        begin_child(parent);
        if (plan.is_of_trace()) replay(plan);
        execute(points_.front().command, points_.front().log->number());
    }
    setpgid(pid_, pid_);  // also in the parent, because either may be first
}

// Runs in the child. Failures of the whole replay go to the log of each point.
void PointRun::replay(const Plan& plan) const {
    log::call_before_line({});
    std::vector<std::uint8_t> statuses;
    for (auto first = points_.begin(); first != points_.end();) {
        const std::string& trace = plan.trace(first->number);
        const auto end = std::find_if(first, points_.end(), [&](const Point& point) {
            return plan.trace(point.number) != trace;
        });
        const std::span<const Point> together(first, end);
        first = end;
        try {
            std::vector<collector::ReplayPoint> points;
            for (const Point& point : together)
                points.push_back({settings_of(point.command), point.log->number()});
            const std::vector<int> got = collector::replay(points, trace);
            statuses.insert(statuses.end(), got.begin(), got.end());
        } catch (const std::exception& e) {
            statuses.insert(statuses.end(), together.size(), kExitFailure);
            for (const Point& point : together)
                dprintf(point.log->number(), "assay: %s\n", e.what());
        }
    }
    const ssize_t written = write(statuses_.number(), statuses.data(), statuses.size());
    _exit(written == static_cast<ssize_t>(statuses.size()) ? 0 : kExitFailure);
}

void PointRun::send(int signal) const {
    kill(signal == SIGKILL ? -pid_ : pid_, signal);
}

void PointRun::finish(int status, int accepted_status, const PointEnd& ended) const {
    std::size_t index = 0;
    for (const Point& point : points_) {
        std::uint8_t own = 0;
        const bool told = pread(statuses_.number(), &own, 1, static_cast<off_t>(index++)) == 1;
        std::string failure;
        if (WIFSIGNALED(status))
            failure = fmt::format("it was ended by signal {}", WTERMSIG(status));
        else if (const int exit_status = told ? own : WEXITSTATUS(status);
                 exit_status != (told ? 0 : accepted_status))
            failure = fmt::format("its exit status is {}", exit_status);
        else
            failure = keep(point);
        ended(point.number, failure);
    }
    discard();
}

// Returns the reason why the point is not finished; "" if it is.
std::string PointRun::keep(const Point& point) const {
    try {
        read_point(point.place);
    } catch (const Error& error) {
        return error.what();
    }
    // If another run was first, its folder is complete as well.
    if (rename(point.place.c_str(), folder_.point(point.name).c_str()) == 0 || errno == ENOTEMPTY ||
        errno == EEXIST)
        return "";
    return fmt::format("cannot rename {}: {}", point.place.string(), system_reason(errno));
}

void PointRun::discard() const {
    std::error_code error;
    for (const Point& point : points_) fs::remove_all(point.place, error);
}

}  // namespace assay::sweep
