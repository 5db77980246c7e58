
#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "tools/output/output.h"
#include "tools/sweep/folder.h"
#include "tools/sweep/local.h"
#include "tools/sweep/options.h"
#include "tools/sweep/plan.h"
#include "tools/sweep/results.h"
#include "tools/sweep/slurm.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::sweep {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void end_by(int signal) {
    std::signal(signal, SIG_DFL);
    raise(signal);
    std::abort();
}

class Sweep {
  public:
    explicit Sweep(const Options& options)
        : options_(options), plan_(options), folder_(options.folder), points_(plan_.size()) {
        folder_.lock();
        folder_.claim(options_, plan_);
    }

    int execute() {
        folder_.remove_unfinished(Folder::Use::kSweep);
        const std::vector<std::size_t> left = points_left();
        if (left.size() < plan_.size())
            log::remark(fmt::format("{} of {} points were finished before; they are in {}",
                                    finished(), plan_.size(), options_.folder));
        if (!left.empty()) {
            if (options_.slurm)
                submit(left);
            else
                run(left);
        }
        write(Results(points_, options_.show));
        const std::size_t failed = plan_.size() - finished();
        if (failed == 0) return 0;
        log::problem(fmt::format("{} of {} points have failed; the same command runs them again",
                                 failed, plan_.size()));
        return 1;
    }

  private:
    std::size_t finished() const {
        return points_.size() -
               static_cast<std::size_t>(std::count(points_.begin(), points_.end(), std::nullopt));
    }

    std::vector<std::size_t> points_left() {
        std::vector<std::size_t> left;
        for (std::size_t point = 0; point < plan_.size(); ++point)
            if (!take_result(point)) left.push_back(point);
        return left;
    }

    // Reads the result of a point. False if the point is not finished, or if its file is damaged:
    // the machine may have crashed before all of the file was on the disk.
    bool take_result(std::size_t point) {
        const fs::path place = folder_.point(plan_.name(point));
        if (!fs::exists(place)) return false;
        try {
            points_[point] = read_point(place);
            return true;
        } catch (const Error& error) {
            log::remark(fmt::format("{} must run again: {}", plan_.subject(point), error.what()));
            fs::remove_all(place);
            return false;
        }
    }

    void run(const std::vector<std::size_t>& left) {
        int signal = 0;
        {
            Progress progress(plan_.size(), finished());
            signal = run_points(plan_, folder_, left, options_.jobs, options_.accepted_status,
                                progress, [&](std::size_t point, const std::string& failure) {
                                    if (failure.empty())
                                        take_result(point);
                                    else
                                        tell_failure(point, failure);
                                });
        }
        if (signal == 0) return;
        log::remark(
            fmt::format("interrupted: {} of {} points are finished; the same command continues "
                        "with the others",
                        finished(), plan_.size()));
        end_by(signal);
    }

    void submit(const std::vector<std::size_t>& left) {
        int signal = 0;
        std::string jobs;
        {
            Progress progress(plan_.size(), finished());
            SlurmRuns runs(
                plan_, folder_, {options_.sbatch, options_.retries, options_.jobs}, progress,
                [&](std::size_t point) { return take_result(point); },
                [&](std::size_t point, const std::string& why) { tell_failure(point, why); });
            signal = runs.execute(left);
            jobs = runs.jobs();
        }
        if (signal == 0) return;
        log::remark(
            fmt::format("interrupted: {} of {} points are finished, and the others continue; the "
                        "same command waits for them, scancel {} ends them",
                        finished(), plan_.size(), jobs));
        end_by(signal);
    }

    void tell_failure(std::size_t point, const std::string& failure) const {
        const fs::path place = folder_.point(plan_.name(point)) / kEventsFile;
        log::problem(fmt::format("{} has failed: {}; see {}; command: {}", plan_.subject(point),
                                 failure, folder_.log(plan_.name(point)).string(),
                                 shell_line(plan_.command(point, place))));
    }

    void write(const Results& results) const {
        Sink page(folder_.path() / "sweep.html"), document(folder_.path() / "sweep.json");
        write_html(plan_, results, page);
        page.finish();
        write_json(plan_, results, document);
        document.finish();
        Sink output("");
        if (options_.format == "json")
            write_json(plan_, results, output);
        else if (options_.format == "csv")
            write_csv(plan_, results, output);
        else
            output.write(text_table(plan_, results));
        output.finish();
    }

    const Options& options_;
    const Plan plan_;
    Folder folder_;
    std::vector<std::optional<PointResult>> points_;  // without a value: not finished
};

Options options_of_call(const std::vector<std::string>& words) {
    std::vector<const char*> argv{"sweep"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    return *parse_options(static_cast<int>(argv.size()), argv.data());
}

// Removes variables that Slurm adds, because they differ between tasks. Programs read their
// environment, so points would differ in more than their options.
void remove_variables_of_task() {
    std::vector<std::string> names{"ENVIRONMENT", "HOSTNAME"};
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        if (text.starts_with("SLURM")) names.emplace_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) unsetenv(name.c_str());
}

// Runs one point as a task of a job array. The sweep waits for the files that show the result.
int run_task(const std::string& path, std::size_t number) {
    const Folder folder(path, Folder::Use::kTask);
    const auto& [words, working_folder] = folder.call();
    fs::current_path(working_folder);
    const Options options = options_of_call(words);
    const Plan plan(options, Plan::Check::kNothing);
    if (number > plan.size())
        throw Error(fmt::format("--point={}: the sweep has {} points", number, plan.size()));
    const std::size_t point = number - 1;
    const std::string name = plan.name(point);
    if (fs::exists(folder.point(name))) return 0;
    fs::remove(folder.failure(name));
    remove_variables_of_task();
    int status = 0;
    Progress progress(1, 0);
    const int signal =
        run_points(plan, folder, std::vector{point}, 1, options.accepted_status, progress,
                   [&](std::size_t, const std::string& failure) {
                       if (failure.empty()) return;
                       events::OutputFile file(folder.failure(name));
                       file.write(failure + "\n");
                       file.finish();
                       log::problem(fmt::format("{} has failed: {}", plan.subject(point), failure));
                       status = 1;
                   });
    if (signal != 0) end_by(signal);
    return status;
}

}  // namespace

int sweep_main(int argc, char** argv) {
    const std::optional<Options> options = parse_options(argc, argv);
    if (!options) return 0;
    log::set_quiet(options->quiet);
    if (options->point != 0) return run_task(options->folder, options->point);
    return Sweep(*options).execute();
}

}  // namespace assay::sweep
