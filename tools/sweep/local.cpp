#include "tools/sweep/local.h"

#include "framework/support/error.h"
#include "tools/sweep/point_run.h"

#include <sys/wait.h>
#include <csignal>
#include <list>

namespace assay::sweep {
namespace {

using std::chrono::milliseconds;

class Runs {
  public:
    Runs(const Plan& plan, const Folder& folder, std::span<const std::size_t> points, unsigned jobs,
         int accepted_status, Progress& progress, const PointEnd& ended)
        : plan_(plan),
          folder_(folder),
          points_(points),
          jobs_(jobs),
          accepted_status_(accepted_status),
          progress_(progress),
          on_end_(ended) {}
    ~Runs() { end_all(); }
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;

    int execute() {
        constexpr milliseconds kSecond{1000};
        while (started_ < points_.size() || !running_.empty()) {
            while (started_ < points_.size() && running_.size() < jobs_)
                running_.emplace_back(plan_, folder_, points_[started_++]);
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
            run->send(SIGKILL);  // to what it has left behind in its group
            const std::string failure = run->finish(status, accepted_status_);
            const std::size_t point = run->point();
            if (!failure.empty()) run->discard();
            run = running_.erase(run);
            ++ended_;
            on_end_(point, failure);
        }
    }

    // First as a user would.
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
    const unsigned jobs_;
    const int accepted_status_;
    Progress& progress_;
    const PointEnd& on_end_;
    std::size_t started_ = 0, ended_ = 0;
    std::list<PointRun> running_;
};

}  // namespace

EndSignals::EndSignals() {
    // Whoever ignores it does not hear of the ends of children.
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
