// The files that one process image writes, looked at before it runs: what is wrong with them costs
// no run then.
#pragma once

#include "framework/collector/launch/file_names.h"
#include "framework/collector/launch/session.h"

#include <span>
#include <string>
#include <vector>

namespace assay::collector {

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
Given given_to(const Profiler& profiler, Given given, const Image& image);

// Throws Error if two of them are the same file. A device or a pipe may take several.
void check_distinct(std::span<const OutputFile> files);

// Throws Error if one of them cannot be written. None is changed or made.
void check_writable(std::span<const OutputFile> files);

}  // namespace assay::collector
