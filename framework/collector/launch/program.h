// Finds the program to profile in the way of execvp(3), and refuses early a file that cannot be
// executed.
#pragma once

#include "framework/isa/architecture.h"

#include <string>
#include <vector>

namespace assay::collector {

struct Program {
    std::string file;               // the ELF file to load
    std::string invoked;            // the file that was found first: a script, or `file`
    std::vector<std::string> argv;  // arguments that the program sees
    std::string name;               // name that the user wrote, without folders
    std::string dynamic_linker;     // path that the file names; empty for a static program
    isa::ElfKind elf;               // of `file`
    std::string privilege;          // see support/program_file.h; "" for an ordinary program
};

// `argv` is what the user wrote. A script is replaced by its interpreter. Throws Error with exit
// status 126 or 127.
Program find_program(const std::vector<std::string>& argv);

}  // namespace assay::collector
