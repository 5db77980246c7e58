#include "tools/sweep/point_run.h"

#include "framework/collector/run/replay.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/sweep/results.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

namespace assay::sweep {
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

// In the child. A group of its own, so that Ctrl-C reaches the sweep alone, which decides, and all
// that the program leaves behind can be ended.
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

// Of `assay replay OPTION... TRACE`.
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
        if (plan.is_of_trace()) replay(plan.program().front());
        execute(points_.front().command, points_.front().log->number());
    }
    setpgid(pid_, pid_);  // whoever is first
}

// In the child. What is wrong with the whole stands in the log of each point.
void PointRun::replay(const std::string& trace) const {
    log::call_before_line({});
    std::vector<std::uint8_t> statuses(points_.size(), kExitFailure);
    try {
        std::vector<collector::ReplayPoint> points;
        for (const Point& point : points_)
            points.push_back({settings_of(point.command), point.log->number()});
        const std::vector<int> got = collector::replay(points, trace);
        statuses.assign(got.begin(), got.end());
    } catch (const std::exception& e) {
        for (const Point& point : points_) dprintf(point.log->number(), "assay: %s\n", e.what());
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

// Returns why it is not finished; "" if it is.
std::string PointRun::keep(const Point& point) const {
    try {
        read_point(point.place);
    } catch (const Error& error) {
        return error.what();
    }
    // Whoever was first: both are complete.
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
