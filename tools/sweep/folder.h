// The folder of a sweep: which sweep it is of, and the points that are finished. A point has a
// folder of its own, which gets its name once its events file is complete.
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
    // Whose runs work there: those of the sweep itself, or a task's of a job array.
    enum class Use : std::uint8_t { kSweep, kTask };

    // Throws Error if it cannot be made.
    explicit Folder(const std::string& path, Use use = Use::kSweep);

    const std::filesystem::path& path() const { return path_; }
    // Of a finished point.
    std::filesystem::path point(const std::string& name) const { return points() / name; }
    // What the runs of a point have printed, the last one's.
    std::filesystem::path log(const std::string& name) const { return points() / (name + ".log"); }
    // Why the task of a point has failed; there if it has.
    std::filesystem::path failure(const std::string& name) const {
        return points() / (name + ".failed");
    }
    // The names of finished points and of these files.
    std::set<std::string> entries() const;
    // Where a run of a point works: nobody else's, on whatever machine.
    std::filesystem::path unfinished(const std::string& name) const;

    // Throws Error if another sweep uses the folder now.
    void lock();
    // Writes down which sweep this is; or throws Error if the folder is another one's, or if a file
    // that the numbers depend on has changed since.
    void claim(const Options& options, const Plan& plan) const;
    // How the sweep was called that the folder is claimed for, and in which folder. Throws Error.
    std::pair<std::vector<std::string>, std::filesystem::path> call() const;
    // Of runs that were interrupted. Not while any is going on.
    void remove_unfinished(Use use) const;

  private:
    std::filesystem::path points() const { return path_ / "points"; }
    std::filesystem::path plan_file() const { return path_ / "plan.json"; }

    std::filesystem::path path_;
    Use use_;
    std::unique_ptr<Descriptor> lock_;
};

}  // namespace assay::sweep
