// Writes source files with counts before each line, and instructions below their lines.
#pragma once

#include "tools/annotate/annotate.h"
#include "tools/annotate/function_list.h"
#include "tools/output/output.h"
#include "tools/profile/profile.h"
#include "tools/sources/source_finder.h"
#include "tools/table/table.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::annotate {

// The source files to annotate, and those that cannot be annotated.
struct SourceChoice {
    struct Source {
        std::uint32_t file;  // an index in the profile
        std::filesystem::path path;
        bool is_named;  // by the user
    };
    std::vector<Source> found;
    std::vector<std::uint32_t> not_found;
    // Files that SourceFinder does not accept as sources.
    std::vector<std::uint32_t> left_out;
    // Several different files have this name after replacements.
    std::vector<std::uint32_t> ambiguous;
};

// Chooses the sources that the user named, then the files shown. Throws Error if a source that the
// user named has no counts or cannot be read.
SourceChoice choose_sources(const Options& options, const Profile& profile,
                            const std::vector<std::uint32_t>& files_shown);

// The text of the instructions that are shown below source lines.
struct Assembly {
    // By object and address. Instructions whose code cannot be read are missing.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> text;
    // Why the code of objects cannot be read, with remedies.
    std::vector<std::string> problems;
    bool has_counts = false;  // true if any instruction has counts
};

// Reads the code of the files in `choice.found`. The profile must have read the details.
Assembly assembly_of(const Profile& profile, const SourceChoice& choice);

// Writes lines that matter by `event`, with inclusive counts, or all lines with counts if
// `inclusive` is null. The profile must have read the details.
void write_sources(const Options& options, const Profile& profile, const Columns& columns,
                   const SourceChoice& choice, const Assembly& assembly,
                   const InclusiveColumn* inclusive, std::size_t event, Output& output);

}  // namespace assay::annotate
