#include "tools/sweep/slurm.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/sweep/local.h"
#include "tools/sweep/point_run.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <utility>

namespace assay::sweep {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Task numbers must be below MaxArraySize, which is 1001 by default (slurm.conf(5)).
constexpr std::size_t kMostTasks = 1000;
// A task that has left the queue may have a result that this machine does not see yet. NFS caches a
// folder for up to a minute (nfs(5), acdirmax), but reads it again when it has changed. A task that
// is declared lost too early costs a second run, but no result.
constexpr seconds kUntilLost{15};

// The numbers in the form of sbatch: 1-3,7.
std::string ranges_of(const std::vector<std::size_t>& tasks) {
    std::string text;
    for (std::size_t i = 0; i < tasks.size();) {
        std::size_t end = i + 1;
        while (end < tasks.size() && tasks[end] == tasks[end - 1] + 1) ++end;
        text += (text.empty() ? "" : ",") + std::to_string(tasks[i]);
        if (end - i > 1) text += "-" + std::to_string(tasks[end - 1]);
        i = end;
    }
    return text;
}

std::string in_shell(const std::string& word) {
    return shell_line({word});
}

}  // namespace

SlurmRuns::SlurmRuns(const Plan& plan, const Folder& folder, SlurmSettings settings,
                     Progress& progress, Finished finished, Failed failed)
    : plan_(plan),
      folder_(folder),
      settings_(std::move(settings)),
      progress_(progress),
      finished_(std::move(finished)),
      failed_(std::move(failed)) {
    fs::create_directories(script().parent_path());
    read_jobs();
}

int SlurmRuns::execute(std::span<const std::size_t> points) {
    // Slurm need not answer every second for hours.
    constexpr milliseconds kFirst{1000}, kLongest{10'000};
    const EndSignals signals;
    look_at_queue();
    if (!queue_is_known_)
        throw Error("squeue: Slurm does not answer; does this machine belong to it?");
    if (queue_.empty()) folder_.remove_unfinished(Folder::Use::kTask);
    std::vector<std::size_t> to_submit;
    for (const std::size_t point : points) {
        pending_[point] = {};
        if (queue_.contains(point))
            pending_[point].submissions = 1;
        else
            to_submit.push_back(point);
    }
    write_script();
    submit(to_submit);
    for (milliseconds pause = kFirst; !pending_.empty();
         pause = std::min(kLongest, pause * 5 / 4)) {
        show_progress(points.size());
        if (const int signal = signals.wait(pause, false); signal != 0) return signal;
        look_at_queue();
        look_at_points();
    }
    return 0;
}

std::string SlurmRuns::jobs() const {
    std::set<std::string> ids;
    for (const Job& job : jobs_)
        for (const auto& [point, state] : queue_)
            if (point >= job.first && point < job.first + kMostTasks) ids.insert(job.id);
    return join(std::vector<std::string>(ids.begin(), ids.end()), " ");
}

// A line for each job has its id and the point of its task 0. A sweep that is continued needs both.
void SlurmRuns::read_jobs() {
    std::ifstream file(jobs_file());
    Job job;
    while (file >> job.id >> job.first) jobs_.push_back(job);
}

void SlurmRuns::write_script() const {
    const std::string assay = fs::read_symlink("/proc/self/exe");
    events::OutputFile file(script());
    file.write(
        fmt::format("#!/bin/sh\n"
                    "# A task of the sweep in this folder: written and submitted by assay "
                    "sweep --slurm.\n"
                    "exec {} sweep --point=$(($1 + SLURM_ARRAY_TASK_ID)) -o {}\n",
                    in_shell(assay), in_shell(folder_.path())));
    file.finish();
    chmod(script().c_str(), 0755);
}

void SlurmRuns::submit(const std::vector<std::size_t>& points) {
    for (std::size_t i = 0; i < points.size();) {
        const std::size_t first = points[i] / kMostTasks * kMostTasks;
        std::vector<std::size_t> array;
        for (; i < points.size() && points[i] < first + kMostTasks; ++i) array.push_back(points[i]);
        submit_array(first, array);
    }
}

void SlurmRuns::submit_array(std::size_t first, const std::vector<std::size_t>& points) {
    std::vector<std::size_t> tasks;
    for (const std::size_t point : points) {
        tasks.push_back(point - first + 1);
        std::error_code error;
        fs::remove(folder_.failure(plan_.name(point)), error);
    }
    std::string array = "--array=" + ranges_of(tasks);
    if (settings_.jobs != 0) array += fmt::format("%{}", settings_.jobs);
    std::vector<std::string> words{"sbatch", "--parsable", "--job-name=assay-sweep", array,
                                   // In the file name, %A is the job and %a is the task.
                                   "--output=" + (folder_.path() / "slurm" / "%A_%a.log").string()};
    words.insert(words.end(), settings_.sbatch.begin(), settings_.sbatch.end());
    words.push_back(script());
    words.push_back(std::to_string(first));
    const CommandOutput output = output_of(words);
    if (output.status != 0)
        throw Error(
            fmt::format("sbatch refused the points: {} (exit status {}); the command "
                        "was: {}",
                        output.problem, output.status, shell_line(words)));
    // JOB or JOB;CLUSTER
    const std::string id = output.text.substr(0, output.text.find_first_of(";\n"));
    jobs_.push_back({id, first});
    std::ofstream(jobs_file(), std::ios::app) << id << ' ' << first << '\n' << std::flush;
    log::remark(fmt::format("submitted {} points as job {}", points.size(), id));
    for (const std::size_t point : points) {
        Pending& pending = pending_.at(point);
        ++pending.submissions;
        pending.last_seen = Clock::now();
    }
}

void SlurmRuns::look_at_queue() {
    const CommandOutput output =
        output_of({"squeue", "--noheader", "--array", fmt::format("--user={}", getuid()),
                   "--format=%F|%K|%T"});
    const bool is_known = output.status == 0;
    if (!is_known && queue_is_known_)
        log::remark(fmt::format("squeue: {}; trying again", output.problem));
    queue_is_known_ = is_known;
    if (!is_known) return;
    queue_.clear();
    for (const std::string& line : split(output.text, '\n')) {
        const std::vector<std::string> fields = split(line, '|');
        if (fields.size() != 3) continue;
        for (const Job& job : jobs_)
            if (job.id == fields[0])
                queue_[job.first + static_cast<std::size_t>(std::atoll(fields[1].c_str())) - 1] =
                    fields[2];
    }
}

void SlurmRuns::look_at_points() {
    const std::set<std::string> entries = folder_.entries();
    std::vector<std::size_t> again;
    for (auto next = pending_.begin(); next != pending_.end();) {
        const auto each = next++;
        const std::size_t point = each->first;
        if (queue_.contains(point) || !queue_is_known_) each->second.last_seen = Clock::now();
        if (entries.contains(plan_.name(point)) && finished_(point)) {
            pending_.erase(each);
            continue;
        }
        const std::string failure = failure_of(point, entries);
        if (failure.empty()) continue;
        if (each->second.submissions > settings_.retries) {
            failed_(point, failure);
            pending_.erase(each);
            continue;
        }
        log::remark(fmt::format("{} has failed: {}; submitting it again ({} of {})",
                                plan_.subject(point), failure, each->second.submissions,
                                settings_.retries));
        again.push_back(point);
    }
    submit(again);
}

std::string SlurmRuns::failure_of(std::size_t point, const std::set<std::string>& entries) const {
    const fs::path failure = folder_.failure(plan_.name(point));
    if (entries.contains(failure.filename())) {
        std::string text;
        events::read_file(failure, [&](std::string_view block) { text += block; });
        while (text.ends_with('\n')) text.pop_back();
        return text;
    }
    if (Clock::now() - pending_.at(point).last_seen < kUntilLost) return "";
    return "its task has left the queue without a result (a node that is down, a time limit, "
           "scancel)";
}

void SlurmRuns::show_progress(std::size_t points) const {
    std::size_t running = 0, waiting = 0;
    for (const auto& [point, state] : queue_) {
        if (!pending_.contains(point)) continue;
        ++(state == "RUNNING" || state == "COMPLETING" ? running : waiting);
    }
    progress_.show(points - pending_.size(), pending_.size(),
                   fmt::format("{} running, {} waiting", running, waiting));
}

}  // namespace assay::sweep
