// The run of one point, as a process of its own.
#pragma once

#include "tools/sweep/folder.h"
#include "tools/sweep/plan.h"

#include <sys/types.h>
#include <cstddef>
#include <filesystem>
#include <string>

namespace assay::sweep {

class PointRun {
  public:
    // Starts it. It ends with this process, however that ends. Throws Error.
    PointRun(const Plan& plan, const Folder& folder, std::size_t point);
    PointRun(const PointRun&) = delete;
    PointRun& operator=(const PointRun&) = delete;

    pid_t pid() const { return pid_; }
    std::size_t point() const { return point_; }
    // To the run, which passes it on to the program; or with SIGKILL to all its processes.
    void send(int signal) const;
    // It has ended with this status of waitpid(2). The point is finished if the result is "", which
    // else says what is wrong.
    std::string finish(int status, int accepted_status) const;
    // It has been ended before its time.
    void discard() const;

  private:
    const Folder& folder_;
    const std::size_t point_;
    const std::string name_;
    const std::filesystem::path place_;
    pid_t pid_ = -1;
};

}  // namespace assay::sweep
