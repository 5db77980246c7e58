// The folder of a sweep: a description of the sweep, and its finished points. Each point has its
// own folder, which gets its final name when the point's events file is complete.
#pragma once

#include "framework/support/descriptor.h"
#include "tools/sweep/options.h"
#include "tools/sweep/plan.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::sweep {

inline constexpr std::string_view kEventsFile = "assay.out";

class Folder {
  public:
    // The runs in the folder belong to the sweep itself or to a task of a job array.
    enum class Use : std::uint8_t { kSweep, kTask };

    // Throws Error if the folder cannot be made.
    explicit Folder(const std::string& path, Use use = Use::kSweep);

    const std::filesystem::path& path() const { return path_; }
    // The folder of a finished point.
    std::filesystem::path point(const std::string& name) const { return points() / name; }
    // The output of the last run of a point.
    std::filesystem::path log(const std::string& name) const { return points() / (name + ".log"); }
    // The file with the reason why the task of a point failed. It exists only after a failure.
    std::filesystem::path failure(const std::string& name) const {
        return points() / (name + ".failed");
    }
    // The names of all finished points, logs and failures.
    std::set<std::string> entries() const;
    // The folder in which a run of a point works. No other run, on any machine, uses it.
    std::filesystem::path unfinished(const std::string& name) const;

    // Throws Error if another sweep is using the folder.
    void lock();
    // Records which sweep the folder belongs to. Throws Error if it belongs to another sweep, or if
    // a file that affects the numbers has changed since.
    void claim(const Options& options, const Plan& plan) const;
    // The command line of the recorded sweep, and its working directory. Throws Error.
    std::pair<std::vector<std::string>, std::filesystem::path> call() const;
    // Removes the folders of interrupted runs. No run may be going on.
    void remove_unfinished(Use use) const;

  private:
    std::filesystem::path points() const { return path_ / "points"; }
    std::filesystem::path plan_file() const { return path_ / "plan.json"; }

    std::filesystem::path path_;
    Use use_;
    std::unique_ptr<Descriptor> lock_;
};

}  // namespace assay::sweep
