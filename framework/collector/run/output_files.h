// The files that one process image writes: their names, and whether they can be written, looked at
// before it runs: what is wrong with them costs no run then.
#pragma once

#include "framework/collector/run/session.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

// One of the images that a process goes through: the next begins with a successful execve(2).
struct Image {
    int pid = 0;
    unsigned number = 1;           // within the process
    std::size_t place = 0;         // among all images of the run, as they have begun
    bool of_first_process = true;  // that assay has started itself
    std::string program;           // its name, without folders
    std::string command;           // its command line
    std::string rank;              // among the processes of MPI; "" if it is none of them
    unsigned earlier = 0;          // images of earlier processes that had the same id

    // Among the images of all processes with this id.
    unsigned number_of_id() const { return earlier + number; }
};

// Of a command's words, in one line.
std::string command_line(const std::vector<std::string>& words);

// The name behind `pattern` (expand_file_name) for the process: where the pattern does not have the
// process id, that of a child is appended, and where it has nothing that tells the processes of MPI
// apart, the rank. A process whose id another process had before has a number appended. Extensions
// are put before .gz and .zst, which mean a compressed file.
std::string file_of_process(std::string_view pattern, const Image& image);

// With the image's number appended.
std::string file_of_image(std::string_view pattern, const Image& image);

// Of a profiler's own file: with "image" and the number from the second image on. Which image of a
// process is its last is not known when the profiler begins; and a bare number is a thread's.
std::string own_file_of_image(std::string_view pattern, const Image& image);

// The file of a part of the profile that is in `file`: with the part's name appended, in which
// all but letters, digits, '-' and '.' become '_'. `file` itself if that is a device.
std::string file_of_part(std::string_view file, std::string_view name);

struct OutputFile {
    std::string option;  // that names it, as it is written: "--out"
    std::string path;
    bool in_place;  // or else it replaces what is there once it is complete
};

// The events file, if there are any columns, and those of the profilers' options. What an option
// has as its default counts, too.
std::vector<OutputFile> output_files(const Session& session, const Image& image);

// The profiler's options as it gets them: files are those of this image, and what such an option
// has as its default is given.
Given given_to(const ProfilerHandle& profiler, Given given, const Image& image);

// Throws Error if two of them are the same file. A device or a pipe may take several.
void check_distinct(std::span<const OutputFile> files);

// Throws Error if one of them cannot be written. None is changed or made.
void check_writable(std::span<const OutputFile> files);

}  // namespace assay::collector
