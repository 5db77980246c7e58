#include "tools/check_plugin/check_plugin.h"

#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/check_plugin/plugin_checks.h"
#include "tools/check_plugin/policy_checks.h"
#include "tools/command_line/command_line.h"
#include "tools/output/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace assay::check {
namespace {

using Clock = std::chrono::steady_clock;

// The time at which a check must have ended.
class Deadline {
  public:
    // 0 means no limit.
    explicit Deadline(unsigned seconds)
        : end_(seconds == 0 ? Clock::time_point::max()
                            : Clock::now() + std::chrono::seconds(seconds)) {}

    bool is_over() const { return Clock::now() >= end_; }
    // Timeout for poll(2), which may return early.
    int milliseconds_left() const {
        if (end_ == Clock::time_point::max()) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
        return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }

  private:
    Clock::time_point end_;
};

struct Findings {
    std::vector<std::string> broken, advice;  // "FUNCTION: TEXT"
    std::vector<std::pair<std::string, unsigned>> options;
    std::set<std::string> ended_in;  // functions in which a check has crashed
    std::string impossible;          // why the trace cannot check the profiler; "" if it can
    bool hopeless = false;           // true if the remaining checks are impossible

    void add(std::vector<std::string>& to, std::string line) {
        if (seen_.insert(line).second) to.push_back(std::move(line));
    }

    // Stops the checks: most other checks would also reach the time limit.
    void add_endless(const std::string& where, unsigned seconds) {
        hopeless = true;
        add(broken,
            fmt::format("{}, it does not return within {} s (--timeout): look for an endless loop, "
                        "or for a loop over a number from the trace; nothing more was checked",
                        where, seconds));
    }

  private:
    std::set<std::string> seen_;
};

// A working folder, removed with all files that profilers write there.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = std::filesystem::temp_directory_path() / "assay-check-XXXXXX";
        if (!mkdtemp(pattern.data()))
            throw Error(fmt::format("cannot make a folder {}: {}", pattern, system_reason(errno)));
        path_ = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Memory shared with a check, which writes the name of the current call there.
class CurrentCall {
  public:
    CurrentCall() {
        void* const memory =
            mmap(nullptr, sizeof(Text), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            throw Error(fmt::format("cannot share memory: {}", system_reason(errno)));
        text_ = static_cast<Text*>(memory);
    }
    ~CurrentCall() { munmap(text_, sizeof(Text)); }
    CurrentCall(const CurrentCall&) = delete;
    CurrentCall& operator=(const CurrentCall&) = delete;

    using Text = char[Report::kRoom];
    Text& text() const { return *text_; }

  private:
    Text* text_;
};

// Reads the report of one check.
class Reader {
  public:
    explicit Reader(Findings& findings) : findings_(findings) {}

    // Reads until the check has finished or its process has ended. Closes the descriptor.
    void read(int descriptor, const Deadline& deadline) {
        pollfd readable{descriptor, POLLIN, 0};
        while (!finished_ && !deadline.is_over()) {
            if (poll(&readable, 1, deadline.milliseconds_left()) <= 0) continue;
            std::array<char, 4096> room;
            const ssize_t length = ::read(descriptor, room.data(), room.size());
            if (length <= 0) break;
            take_lines({room.data(), static_cast<std::size_t>(length)});
        }
        close(descriptor);
    }

    bool finished() const { return finished_; }

  private:
    void take_lines(std::string_view text) {
        for (const char c : text) {
            if (c != '\n') {
                line_ += c;
            } else {
                take(line_);
                line_.clear();
            }
        }
    }

    void take(std::string_view line) {
        const char kind = line.empty() ? ' ' : line[0];
        const std::size_t tab = std::min(line.find('\t'), line.size());
        const std::string function(line.substr(1, tab - 1));
        const std::string text(line.substr(std::min(tab + 1, line.size())));
        if (kind == '!') findings_.add(findings_.broken, function + ": " + text);
        if (kind == '?') findings_.add(findings_.advice, function + ": " + text);
        if (kind == '~') {
            findings_.impossible = text;
            findings_.hopeless = true;
        }
        if (kind == '-') refused(function, text);
        if (kind == '=')
            findings_.options.emplace_back(
                function, static_cast<unsigned>(std::strtoul(text.c_str(), nullptr, 10)));
        finished_ |= kind == '.';
    }

    // Stops the checks, because every check would fail in the same way.
    void refused(const std::string& function, const std::string& why) {
        findings_.hopeless = true;
        findings_.add(findings_.broken,
                      fmt::format("{}: refuses to start{}{}; nothing more could be checked",
                                  function, why.empty() ? "" : ": ", why));
    }

    Findings& findings_;
    std::string line_;  // an incomplete line
    bool finished_ = false;
};

// Explains faults. Memory of trace data is protected: see trial_trace.h.
constexpr std::string_view kAboutFaults =
    "; unless this is an error of its own, it reads beyond the end of an array, changes the trace, "
    "or uses a pointer of an earlier call: data of the parser are read-only, and valid during one "
    "call";

std::string place(const std::string& function, std::string_view situation) {
    return fmt::format("{}: {}", function.empty() ? "(between calls)" : function, situation);
}

std::string what_happened(int status, const std::string& where) {
    if (WIFEXITED(status))
        return fmt::format(
            "{}, it ends the process with status {}: return a negative number "
            "instead of calling exit",
            where, WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    return fmt::format("{}, it crashes with signal {} ({}){}", where, signal, strsignal(signal),
                       signal == SIGSEGV || signal == SIGBUS ? kAboutFaults : "");
}

// Runs in the child process, with `folder` as the working folder.
[[noreturn]] void run_check(const std::function<void(Report&)>& check, const std::string& folder,
                            Report& report) {
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    if (chdir(folder.c_str()) != 0) _exit(kExitFailure);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    try {
        check(report);
        report.finished();
    } catch (const Error&) {  // not loaded: already reported
        report.finished();
    }
    _exit(0);
}

// Returns the status of the child, or no value if the child was killed at the deadline. Polls,
// because the child may have blocked signals and closed the pipe.
std::optional<int> wait_for(pid_t child, const Deadline& deadline) {
    constexpr timespec kMoment{0, 1'000'000};
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (deadline.is_over()) {
            kill(child, SIGKILL);
            while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
            return std::nullopt;
        }
        nanosleep(&kMoment, nullptr);
    }
    return status;
}

// Runs a check in a child, in an empty folder.
void run_apart(std::string_view situation, const std::function<void(Report&)>& check,
               unsigned seconds, Findings& findings) {
    const TemporaryFolder folder;
    const CurrentCall current;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Error(fmt::format("cannot make a pipe: {}", system_reason(errno)));
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0)
        throw Error(fmt::format("cannot start a process: {}", reason_of_no_process(errno)));
    if (child == 0) {
        close(ends[0]);
        Report report(ends[1], current.text());
        run_check(check, folder.path(), report);
    }
    close(ends[1]);
    const Deadline deadline(seconds);
    Reader reader(findings);
    reader.read(ends[0], deadline);
    const std::optional<int> status = wait_for(child, deadline);
    const std::string function = current.text();
    const std::string where = place(function, situation);
    if (!status) return findings.add_endless(where, seconds);
    // Reports one crash per function. The same crash in another situation is no news.
    if (!reader.finished() && findings.ended_in.insert(function).second)
        findings.add(findings.broken, what_happened(*status, where));
}

Findings check_profiler(const Trial& trial, unsigned seconds) {
    Findings findings;
    if (is_policy_library(trial.path)) {
        run_apart(
            "with random references", [&](Report& report) { check_policies(trial.path, report); },
            seconds, findings);
        return findings;
    }
    bool is_loaded = false;
    for (const Check& check : checks(trial)) {
        run_apart(
            check.situation, [&](Report& report) { check.run(trial, report); }, seconds, findings);
        if (!std::exchange(is_loaded, true) && !findings.broken.empty()) return findings;
        if (findings.hopeless) return findings;
    }
    for (const auto& [name, type] : findings.options)
        for (const std::string_view value : values_of_type(type)) {
            run_apart(
                fmt::format("with --{}=\"{}\"", name, value),
                [&, option = name](Report& report) {
                    check_option(trial, option, std::string(value), report);
                },
                seconds, findings);
            if (!findings.impossible.empty()) {
                // The trace cannot check this value only. Go on with the next value.
                findings.impossible.clear();
                findings.hopeless = false;
            }
            if (findings.hopeless) return findings;
        }
    return findings;
}

// Returns an absolute path, because checks run in other folders.
std::string path_of(const std::string& plugin) {
    collector::CrashGuard guard;
    return std::filesystem::absolute(collector::find_profiler(plugin, guard));
}

struct Arguments {
    std::vector<std::string> plugins;
    std::string trace;  // "" for synthetic traces
    unsigned timeout = 20;
};

constexpr const char* kPurpose =
    "Loads profilers, calls every function of each with synthetic traces or a\n"
    "recorded one, and prints the rules of the interface (assay/vprofiler.h) that\n"
    "they break. No program is profiled. Policies and prefetchers of simulated\n"
    "caches (assay/cache_policy.h) get random references.\n\n"
    "  assay check-plugin [--trace=TRACE] [--timeout=SECONDS] FILE.so...\n";

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay check-plugin", kPurpose,
                  "Exit status: 0 if no rule is broken, 1 if a profiler breaks a rule, 125 if a\n"
                  "check was impossible, for example because the trace is damaged or lacks data\n"
                  "that the profiler captures. Advice does not change the exit status.\n");
    line.add_text("--trace", arguments.trace, "TRACE",
                  "check with this trace of assay record instead of synthetic traces\n"
                  "The trace is replayed twice, then beside another profiler. All replays must "
                  "give the same results.");
    line.add_number("--timeout", arguments.timeout, 0, 86'400, "SECONDS",
                    "stop when a check of a profiler takes longer; 0: never stop; default: 20\n"
                    "Profilers that were built with a sanitizer may need more time.");
    line.add_arguments("FILE", arguments.plugins);
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

}  // namespace assay::check

namespace assay {

int check_plugin_main(int argc, char** argv) {
    const auto arguments = parse_arguments(check::add_options, argc, argv);
    if (!arguments) return 0;
    std::optional<check::TraceFile> trace;
    if (!arguments->trace.empty()) trace.emplace(arguments->trace);
    bool good = true, all = true;
    for (const std::string& plugin : arguments->plugins) {
        const check::Trial trial{check::path_of(plugin), trace ? &*trace : nullptr};
        const check::Findings findings = check::check_profiler(trial, arguments->timeout);
        for (const std::string& line : findings.broken) print("{}: {}\n", plugin, printable(line));
        for (const std::string& line : findings.advice) print("{}: advice: {}\n", plugin, line);
        if (!findings.impossible.empty())
            log::problem(fmt::format("{} cannot be checked with {}: {}", plugin, trace->path(),
                                     findings.impossible));
        else if (findings.broken.empty())
            print("{}: keeps to the rules\n", plugin);
        good &= findings.broken.empty();
        all &= findings.impossible.empty();
    }
    if (!good) return 1;
    return all ? 0 : kExitFailure;
}

}  // namespace assay
