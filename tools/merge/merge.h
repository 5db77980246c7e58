// assay merge: adds up events files, and joins files of block vectors.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/profile/profile.h"

#include <string>
#include <vector>

namespace assay {

// Writes the contents of a finished profile; see writer.h. Throws Error.
void write_events_file(const Profile& profile, const std::string& path);

// The subcommand. argv[0] is its name. Throws Error.
int merge_main(int argc, char** argv);

std::vector<Option> merge_options();

struct BlockVectorFiles {
    std::vector<std::string> vectors;
    // Addresses of blocks as bbv's --pc-out-file writes them, one file for each file of vectors.
    // Empty if all files number blocks in the same way, as the threads of one run do.
    std::vector<std::string> addresses;
    std::string out;
    std::string addresses_out;  // empty: not written
};

// True for a regular file that begins as block vectors do. Throws Error if the file cannot be read.
bool begins_as_block_vectors(const std::string& path);

// Writes the intervals of all files, in their order. Blocks with the same address and function get
// one number, in the order of their first occurrence. A final comment lists the intervals of each
// file. Throws Error.
void merge_block_vectors(const BlockVectorFiles& files);

}  // namespace assay
