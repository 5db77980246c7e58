// Points as tasks of job arrays of Slurm, whose nodes see the folder of the sweep as this machine
// does. What has become of a task, its files say: Slurm is asked only for what is in its queue, so
// that it needs no accounting.
#pragma once

#include "tools/sweep/folder.h"
#include "tools/sweep/local.h"
#include "tools/sweep/plan.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace assay::sweep {

struct SlurmSettings {
    std::vector<std::string> sbatch;  // further options of sbatch(1)
    unsigned retries = 0;             // how often a point is submitted again
    unsigned jobs = 0;                // tasks at once; 0: as many as Slurm likes
};

class SlurmRuns {
  public:
    // Of a point whose folder is there: false if its events file is not complete after all.
    using Finished = std::function<bool(std::size_t point)>;
    // Of a point that has failed as often as it may.
    using Failed = std::function<void(std::size_t point, const std::string& failure)>;

    SlurmRuns(const Plan& plan, const Folder& folder, SlurmSettings settings, Progress& progress,
              Finished finished, Failed failed);

    // Submits the points, but for those that are in the queue since an earlier call of the same
    // sweep, and waits for all. Returns 0; or the signal that asked this process to end, when the
    // jobs go on. Throws Error.
    int execute(std::span<const std::size_t> points);
    // For people who want to end them.
    std::string jobs() const;

  private:
    using Clock = std::chrono::steady_clock;

    // A point that has neither finished nor failed for good.
    struct Pending {
        unsigned submissions = 0;
        Clock::time_point last_seen;  // in the queue
    };
    struct Job {
        std::string id;
        std::size_t first;  // the point of its task 0
    };

    void read_jobs();
    void write_script() const;
    // By point, the state that Slurm calls it. Keeps what it was if Slurm cannot be asked.
    void look_at_queue();
    void look_at_points();
    // What has become of a point that is no longer in the queue; "" if that is not known yet.
    std::string failure_of(std::size_t point, const std::set<std::string>& entries) const;
    void submit(const std::vector<std::size_t>& points);
    void submit_array(std::size_t first, const std::vector<std::size_t>& points);
    void show_progress(std::size_t points) const;
    std::filesystem::path script() const { return folder_.path() / "slurm" / "job.sh"; }
    std::filesystem::path jobs_file() const { return folder_.path() / "slurm" / "jobs"; }

    const Plan& plan_;
    const Folder& folder_;
    const SlurmSettings settings_;
    Progress& progress_;
    const Finished finished_;
    const Failed failed_;
    std::vector<Job> jobs_;
    std::map<std::size_t, Pending> pending_;
    std::map<std::size_t, std::string> queue_;
    bool queue_is_known_ = true;
};

}  // namespace assay::sweep
