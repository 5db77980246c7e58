// What the collectors of a run's process images have to say at its end, in memory that all of them
// share.
#pragma once

#include "framework/events/index.h"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::collector {

class ProfileLog {
  public:
    struct Entry {
        events::IndexedProfile profile;  // without its parent
        std::vector<std::string> events;
        int parent_pid = 0;
        unsigned earlier = 0;        // images of earlier processes that had the same id
        std::size_t place = 0;       // among the images of the run, as they have begun
        std::size_t part_files = 0;  // beside its file
        std::string summary;         // of its profilers
    };

    // Throws Error.
    ProfileLog();
    ~ProfileLog();
    ProfileLog(const ProfileLog&) = delete;
    ProfileLog& operator=(const ProfileLog&) = delete;

    // In any of the processes that fork(2) makes of this one.
    void add(const Entry& entry) const;
    // What has been added so far, in the order in which the images began, with their parents.
    std::vector<Entry> entries() const;

  private:
    int file_;
};

// The parent of the process; 0 if that is not known.
int parent_of(int pid);

}  // namespace assay::collector
