// Source files with the counts of each line before it, and of instructions below them.
#pragma once

#include "tools/annotate/annotate.h"
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

// Which source files are annotated, and what becomes of the others.
struct SourceChoice {
    struct Source {
        std::uint32_t file;  // an index in the profile
        std::filesystem::path path;
    };
    std::vector<Source> found;
    std::vector<std::uint32_t> not_found;
    // Nothing says that they are sources: see SourceFinder.
    std::vector<std::uint32_t> left_out;
    // Of several names that were made one, more than one is there, and they differ.
    std::vector<std::uint32_t> ambiguous;
};

// The sources that the user named, then the files shown, by their indices. Throws Error if one that
// the user named has no counts or cannot be read.
SourceChoice choose_sources(const Options& options, const Profile& profile,
                            const std::vector<std::uint32_t>& files_shown);

// The text of the instructions that are shown below source lines.
struct Assembly {
    // By object and address. What is missing here has no code that could be read.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> text;
    // Why objects have none, with remedies.
    std::vector<std::string> problems;
    bool has_counts = false;  // of any instruction
};

// Of the files that were found, of which the profile has read the details.
Assembly assembly_of(const Profile& profile, const SourceChoice& choice);

// Annotates what was chosen. The profile has read the details.
void write_sources(const Options& options, const Profile& profile, const Columns& columns,
                   const SourceChoice& choice, const Assembly& assembly, Output& output);

}  // namespace assay::annotate
