// What another command prints.
#pragma once

#include <string>
#include <vector>

namespace assay::sweep {

struct CommandOutput {
    int status = 0;       // its exit status; 128 and the signal's number if that has ended it
    std::string text;     // of standard output
    std::string problem;  // of standard error, on one line
};

// Runs a command, which is looked for on PATH, to its end. Throws Error if it cannot be run.
CommandOutput output_of(const std::vector<std::string>& words);

}  // namespace assay::sweep
