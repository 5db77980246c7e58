// assay merge: the sum of events files as an events file, and several files of block vectors as
// one.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/profile/profile.h"

#include <string>
#include <vector>

namespace assay {

// Writes all that the profile, which is finished, has; see writer.h. Throws Error.
void write_events_file(const Profile& profile, const std::string& path);

// The subcommand. argv[0] is its name. Throws Error.
int merge_main(int argc, char** argv);

std::vector<Option> merge_options();

// Basic block vectors of several threads or runs as those of one.

struct BlockVectorFiles {
    std::vector<std::string> vectors;
    // As bbv's --pc-out-file writes them, one for each file of vectors; or none, if the files have
    // the same numbers for the same blocks, as those of the threads of one run have.
    std::vector<std::string> addresses;
    std::string out;
    std::string addresses_out;  // empty: not written
};

// Whether it is a regular file that begins as block vectors do. Throws Error if it cannot be read.
bool begins_as_block_vectors(const std::string& path);

// Writes the intervals of all files, one file behind the other. Blocks of one address and function
// have one number, given in the order in which they occur first. Behind the vectors stands, as a
// comment, which intervals are of which file. Throws Error.
void merge_block_vectors(const BlockVectorFiles& files);

}  // namespace assay
