// Runs points as tasks of Slurm's job arrays. The nodes must see the sweep's folder as this machine
// does. The results of tasks come from files: Slurm is asked only for its queue, so it needs no
// accounting.
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
    unsigned retries = 0;             // how often a failed point is submitted again
    unsigned jobs = 0;                // tasks at once; 0: Slurm decides
};

class SlurmRuns {
  public:
    // Called for a point whose folder exists. Returns false if its events file is incomplete after
    // all.
    using Finished = std::function<bool(std::size_t point)>;
    // Called for a point that has failed for good.
    using Failed = std::function<void(std::size_t point, const std::string& failure)>;

    SlurmRuns(const Plan& plan, const Folder& folder, SlurmSettings settings, Progress& progress,
              Finished finished, Failed failed);

    // Submits the points and waits for all. Points that an earlier call of the same sweep submitted
    // and that are still in the queue are not submitted again. Returns 0, or the signal that asked
    // this process to end; the jobs then continue. Throws Error.
    int execute(std::span<const std::size_t> points);
    // The ids of the jobs, for people who want to end them.
    std::string jobs() const;

  private:
    using Clock = std::chrono::steady_clock;

    // A point that has not finished and has failures left.
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
    // Reads the state of each point from Slurm's queue. Keeps the old states if Slurm does not
    // answer.
    void look_at_queue();
    void look_at_points();
    // Why a point failed that is no longer in the queue; "" if that is not known yet.
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
