// The output files of one process image: their names, and whether they can be written. A run checks
// this before it starts, so that a bad name does not cost a run.
#pragma once

#include "framework/collector/run/session.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

// One of the images of a process: each successful execve(2) begins the next image.
struct Image {
    int pid = 0;
    unsigned number = 1;           // within the process
    std::size_t place = 0;         // among all images of the run, in the order of their starts
    bool of_first_process = true;  // assay has started this process itself
    std::string program;           // its name, without folders
    std::string command;           // its command line
    std::string rank;              // among the processes of MPI; "" outside of MPI
    unsigned earlier = 0;          // number of images of earlier processes with the same id
    // In a replay of several programs: the one that this is, whose counts the file has.
    std::optional<std::size_t> mixed{};

    // Number of this image among the images of all processes with this id.
    unsigned number_of_id() const { return earlier + number; }
};

// Joins a command's words in one line.
std::string command_line(const std::vector<std::string>& words);

// Returns the name that `pattern` (expand_file_name) gives for the process. A child's process id is
// appended if the pattern has no process id. The rank is appended if the pattern does not tell
// processes of MPI apart. A number is appended if an earlier process had the same id. All are put
// before .gz and .zst, which mean a compressed file.
std::string file_of_process(std::string_view pattern, const Image& image);

// Returns the same name with the image's number appended.
std::string file_of_image(std::string_view pattern, const Image& image);

// Returns the name of a profiler's own file. From the second image on, "image" and the number are
// appended. The number does not depend on later images, because a profiler needs the name when it
// starts. A number without "image" would mean a thread.
std::string own_file_of_image(std::string_view pattern, const Image& image);

// Returns the file for a part of the profile in `file`. The part's name is appended; all characters
// except letters, digits, '-' and '.' become '_'. Returns `file` itself if it is a device.
std::string file_of_part(std::string_view file, std::string_view name);

struct OutputFile {
    std::string option;  // the option that names the file, as written: "--out"
    std::string path;
    bool in_place;  // otherwise, the complete file replaces an existing one
};

// Returns the events file, if there are any columns, and the files of the profilers' options,
// including their defaults.
std::vector<OutputFile> output_files(const Session& session, const Image& image);

// Returns the options to pass to the profiler. File names are changed to those of this image, and
// defaults of file options are added.
Given given_to(const ProfilerHandle& profiler, Given given, const Image& image);

// Throws Error if two of them are the same regular file.
void check_distinct(std::span<const OutputFile> files);

// Throws Error if one of them cannot be written. Changes and creates no file.
void check_writable(std::span<const OutputFile> files);

}  // namespace assay::collector
