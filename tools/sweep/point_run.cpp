#include "tools/sweep/point_run.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/sweep/results.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

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
[[noreturn]] void execute(char* const* words, int log, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kExitFailure);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(empty, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(words[0], words);
    _exit(kExitNotExecutable);
}

}  // namespace

PointRun::PointRun(const Plan& plan, const Folder& folder, std::size_t point)
    : folder_(folder), point_(point), name_(plan.name(point)), place_(folder.unfinished(name_)) {
    std::error_code error;
    fs::remove_all(place_, error);
    if (!fs::create_directory(place_, error))
        throw Error(fmt::format("cannot make the folder {}: {}", place_.string(), error.message()));
    std::vector<std::string> command = plan.command(point, place_ / kEventsFile);
    const Descriptor log(open_log(folder.log(name_), shell_line(command)));
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw Error(fmt::format("cannot start a process: {}", system_reason(errno)));
    if (pid_ == 0) execute(words.data(), log.number(), parent);
    setpgid(pid_, pid_);  // whoever is first
}

void PointRun::send(int signal) const {
    kill(signal == SIGKILL ? -pid_ : pid_, signal);
}

std::string PointRun::finish(int status, int accepted_status) const {
    if (WIFSIGNALED(status)) return fmt::format("it was ended by signal {}", WTERMSIG(status));
    if (WEXITSTATUS(status) != accepted_status)
        return fmt::format("its exit status is {}", WEXITSTATUS(status));
    try {
        read_point(place_);
    } catch (const Error& error) {
        return error.what();
    }
    // Whoever was first: both are complete.
    if (rename(place_.c_str(), folder_.point(name_).c_str()) == 0 || errno == ENOTEMPTY ||
        errno == EEXIST) {
        discard();
        return "";
    }
    return fmt::format("cannot rename {}: {}", place_.string(), system_reason(errno));
}

void PointRun::discard() const {
    std::error_code error;
    fs::remove_all(place_, error);
}

}  // namespace assay::sweep
