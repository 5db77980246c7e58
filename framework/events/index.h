// The index file of a run, which names its profiles: docs/reference/events-file.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::events {

// The profile of one process image. An image ends with its process, or when the process executes
// another program.
struct IndexedProfile {
    std::string file;  // the events file, or ""
    int pid = 0;
    unsigned image = 1;                 // within the process
    std::string command, rank;          // rank: among the processes of MPI, or ""
    std::string incomplete;             // why the counts do not cover a whole run
    std::vector<std::uint64_t> counts;  // in total, one per event of the index
    // Index of the image that started this process. It precedes this one in the same list.
    static constexpr std::size_t kNone = SIZE_MAX;
    std::size_t parent = kNone;
};

// The program's name without folders and arguments.
std::string program_of(const std::string& command);

struct Index {
    std::string command;
    std::vector<std::string> events;
    std::vector<IndexedProfile> profiles;  // in the order in which they began
};

// Throws Error. Names of files in the folder of the index or below are written relative to that
// folder.
void write_index(const std::string& path, const Index& index);
// True if the file can be opened and begins as an index does.
bool begins_as_index(const std::string& path);
// The names of files in the result can be opened from the current folder. Throws Error.
Index read_index(const std::string& path);

}  // namespace assay::events
