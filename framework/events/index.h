// The profiles of one run, which a file names: docs/reference/events-file.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::events {

// A profile of one process image, which ends with the process or where it executes another program.
struct IndexedProfile {
    std::string file;  // the events file; "" if there is none
    int pid = 0;
    unsigned image = 1;         // within the process
    std::string command, rank;  // rank: among the processes of MPI; "" if it is none of them
    std::string incomplete;     // why the counts are not those of a whole run
    std::vector<std::uint64_t> counts;  // in total, one per event of the index
    // That of the image by which the process was started, in the same list, before this one.
    static constexpr std::size_t kNone = SIZE_MAX;
    std::size_t parent = kNone;
};

// Without folders, and without the arguments.
std::string program_of(const std::string& command);

struct Index {
    std::string command;
    std::vector<std::string> events;
    std::vector<IndexedProfile> profiles;  // in the order in which they began
};

// Throws Error. Names of files in the folder of the index, or below, do not depend on where that
// is.
void write_index(const std::string& path, const Index& index);
// Whether the file can be opened and begins as one of these does.
bool begins_as_index(const std::string& path);
// Names of files are such that they can be opened. Throws Error.
Index read_index(const std::string& path);

}  // namespace assay::events
