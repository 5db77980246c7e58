// Source files with the counts of each line before it.
#pragma once

#include "tools/annotate/assembly.h"
#include "tools/annotate/options.h"
#include "tools/output/output.h"
#include "tools/profile/function_profile.h"
#include "tools/sources/source_files.h"
#include "tools/table/table.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
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
SourceChoice choose_sources(const Options& options, const FunctionProfile& profile,
                            const std::vector<std::uint32_t>& files_shown);

// Annotates what was chosen. The profile has read the details.
void write_sources(const Options& options, const FunctionProfile& profile, const Columns& columns,
                   const SourceChoice& choice, const Assembly& assembly, Output& output);

}  // namespace assay::annotate
