// Many programs at once: the profiles of two folders, matched by what was run.
#pragma once

#include "tools/diff/comparison.h"

#include <memory>
#include <string>
#include <vector>

namespace assay::diff {

struct Programs {
    struct Program {
        std::string command;
        std::unique_ptr<Comparison> comparison;
    };
    bool are_many = false;  // of folders, even if there is one
    std::vector<Program> all;
    std::vector<std::string> only_old, only_new;  // commands
    bool are_exceeded() const;
};

// Of two files, or of two folders: several profiles of one command are added up. Throws Error if
// one is a folder and the other is not, or if no command is in both.
Programs compare_programs(const Options& options);

}  // namespace assay::diff
