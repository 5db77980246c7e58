#include "tools/sweep/local.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "tools/sweep/point_run.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <list>
#include <thread>

namespace assay::sweep {

Progress::Progress(std::size_t points, std::size_t finished)
    : points_(points), finished_(finished), line_(isatty(STDERR_FILENO) != 0 && !log::quiet()) {}

void Progress::show(std::size_t ended, std::size_t left, const std::string& waiting) {
    std::string line = fmt::format("assay: {} of {} points", finished_ + ended, points_);
    if (!waiting.empty()) line += ", " + waiting;
    // Assumes that each remaining point takes as long as those before.
    if (ended > 0 && left > 0)
        line += ", " +
                time_left((Clock::now() - start_) *
                          (static_cast<double>(left) / static_cast<double>(ended))) +
                " left";
    line_.show(line);
}

std::string time_left(std::chrono::duration<double> time) {
    constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
    const double seconds = time.count();
    if (seconds < kMinute) return "less than a minute";
    if (seconds < 2 * kHour) return fmt::format("about {:.0f} min", std::ceil(seconds / kMinute));
    if (seconds < 2 * kDay) return fmt::format("about {:.0f} h", seconds / kHour);
    return fmt::format("about {:.0f} days", seconds / kDay);
}

namespace {

using std::chrono::milliseconds;

class Runs {
  public:
    Runs(const Plan& plan, const Folder& folder, std::span<const std::size_t> points, unsigned jobs,
         int accepted_status, Progress& progress, const PointEnd& ended)
        : plan_(plan),
          folder_(folder),
          points_(points),
          accepted_status_(accepted_status),
          progress_(progress),
          on_end_(ended) {
        constexpr unsigned kUsual = 32, kMost = 256;  // each point needs memory for a profile, and
                                                      // open files
        if (plan.is_of_trace())
            points_in_run_ = jobs != 0 ? std::min(jobs, kMost) : kUsual;
        else
            runs_ = jobs != 0 ? jobs : std::max(1u, std::thread::hardware_concurrency());
    }
    ~Runs() { end_all(); }
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;

    int execute() {
        constexpr milliseconds kSecond{1000};
        while (started_ < points_.size() || !running_.empty()) {
            while (started_ < points_.size() && running_.size() < runs_) {
                const auto some = points_.subspan(
                    started_, std::min<std::size_t>(points_in_run_, points_.size() - started_));
                running_.emplace_back(plan_, folder_, some);
                started_ += some.size();
            }
            progress_.show(ended_, points_.size() - ended_);
            const int signal = signals_.wait(kSecond, true);
            if (signal != 0 && signal != SIGCHLD) return signal;
            take_ended();
        }
        return 0;
    }

  private:
    void take_ended() {
        for (auto run = running_.begin(); run != running_.end();) {
            int status = 0;
            if (waitpid(run->pid(), &status, WNOHANG) != run->pid()) {
                ++run;
                continue;
            }
            run->send(SIGKILL);  // kills the processes that the run left in its group
            run->finish(status, accepted_status_,
                        [this](std::size_t point, const std::string& failure) {
                            ++ended_;
                            on_end_(point, failure);
                        });
            run = running_.erase(run);
        }
    }

    // Sends SIGTERM first, as a user would, and SIGKILL after some seconds.
    void end_all() {
        constexpr milliseconds kStep{100}, kPatience{5000};
        for (const PointRun& run : running_) run.send(SIGTERM);
        for (milliseconds waited{0}; !running_.empty(); waited += kStep) {
            for (auto run = running_.begin(); run != running_.end();) {
                if (waited >= kPatience) run->send(SIGKILL);
                if (waitpid(run->pid(), nullptr, waited >= kPatience ? 0 : WNOHANG) == 0) {
                    ++run;
                    continue;
                }
                run->send(SIGKILL);
                run->discard();
                run = running_.erase(run);
            }
            if (!running_.empty()) signals_.wait(kStep, true);
        }
    }

    const EndSignals signals_;
    const Plan& plan_;
    const Folder& folder_;
    const std::span<const std::size_t> points_;
    std::size_t runs_ = 1, points_in_run_ = 1;  // at once
    const int accepted_status_;
    Progress& progress_;
    const PointEnd& on_end_;
    std::size_t started_ = 0, ended_ = 0;
    std::list<PointRun> running_;
};

}  // namespace

EndSignals::EndSignals() {
    // A process that ignores SIGCHLD cannot wait for it.
    std::signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set_);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
        struct sigaction action {};
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN) sigaddset(&set_, signal);
    }
    sigaddset(&set_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_, &before_);
}

EndSignals::~EndSignals() {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int EndSignals::wait(milliseconds at_most, bool children) const {
    sigset_t wanted = set_;
    if (!children) sigdelset(&wanted, SIGCHLD);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const timespec time{seconds.count(), std::chrono::nanoseconds(at_most - seconds).count()};
    const int signal = sigtimedwait(&wanted, nullptr, &time);
    return signal < 0 ? 0 : signal;
}

int run_points(const Plan& plan, const Folder& folder, std::span<const std::size_t> points,
               unsigned jobs, int accepted_status, Progress& progress, const PointEnd& ended) {
    return Runs(plan, folder, points, jobs, accepted_status, progress, ended).execute();
}

}  // namespace assay::sweep
