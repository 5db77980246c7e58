// Data about all profiles of a run. The collectors of all process images add it to shared memory,
// and the run prints it at the end.
#pragma once

#include "framework/events/index.h"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::collector {

class ProfileLog {
  public:
    struct Entry {
        events::IndexedProfile profile;  // without the parent
        std::vector<std::string> events;
        int parent_pid = 0;
        unsigned earlier = 0;        // number of images of earlier processes with the same id
        std::size_t place = 0;       // among the images of the run, in the order of their starts
        std::size_t part_files = 0;  // in addition to its file
        std::string summary;         // of all profilers
    };

    // Throws Error.
    ProfileLog();
    ~ProfileLog();
    ProfileLog(const ProfileLog&) = delete;
    ProfileLog& operator=(const ProfileLog&) = delete;

    // Can be called in any process that was forked from this one.
    void add(const Entry& entry) const;
    // Returns all entries so far, in the order in which the images began. Sets their parents.
    std::vector<Entry> entries() const;

  private:
    int file_;
};

// Returns the parent of the process; 0 if it is not known.
int parent_of(int pid);

}  // namespace assay::collector
