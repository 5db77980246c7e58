// Finds the program to profile, as execvp(3) would, and refuses early what cannot be executed.
#pragma once

#include <string>
#include <vector>

namespace assay::collector {

struct Program {
    std::string file;               // the ELF file to load
    std::string invoked;            // the file that was found first: a script, or the same
    std::vector<std::string> argv;  // as it shall see it
    std::string name;               // of what the user named, without folders
    std::string dynamic_linker;     // as the file names it; empty if it names none
    std::string privilege;          // see support/program_file.h; "" for an ordinary program
};

// `argv` is what the user wrote. A script is replaced by its interpreter. Throws Error with exit
// status 126 or 127.
Program find_program(const std::vector<std::string>& argv);

}  // namespace assay::collector
