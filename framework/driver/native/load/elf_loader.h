// Maps the target's ELF file and its interpreter into the driver's address space, as execve(2)
// would into an empty one. Who started the driver has resolved scripts.
#pragma once

#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/memory/own_memory.h"

#include <sys/types.h>
#include <string>
#include <vector>

namespace assay::native {

// Part of a file.
struct LoadedPart {
    std::uint64_t start = 0, end = 0, offset = 0;
    std::string path;
};

struct LoadedProgram {
    std::uint64_t entry = 0;  // of the program itself
    std::uint64_t start = 0;  // where execution begins: the interpreter's entry, or `entry`
    std::uint64_t program_headers = 0;  // address of the program's headers
    std::uint64_t header_count = 0;
    std::uint64_t interpreter_base = 0;
    std::uint64_t vdso = 0;         // where it is; 0: there is none
    std::uint64_t break_start = 0;  // end of the program's data
    std::uint64_t stack_start = 0, stack_end = 0;
    // From here to stack_start there would be nothing if the kernel had made the stack.
    std::uint64_t stack_guard = 0;
    bool is_below_stack(std::uint64_t address) const {
        return stack_guard <= address && address < stack_start;
    }
    bool executable_stack = false;
    // As they are on the stack: what the process is shown in /proc/self/environ and auxv.
    std::string environment;
    std::vector<std::uint64_t> auxiliary_vector;
    std::string name;        // as execve(2) was given it: perhaps a script's
    std::string executable;  // the file, absolute and without symbolic links
    dev_t device = 0;        // of that file
    ino_t inode = 0;
    std::vector<LoadedPart> code;    // what can be executed
    std::vector<LoadedPart> images;  // all of the program, and of its interpreter
    std::vector<Range> zeroed;       // what of them is in no file, in whole pages
};

struct LoadError {
    std::string reason;  // empty: no error
    int exit_status = 0;
};

// `file`: the program, opened for reading; `name`: for AT_EXECFN. `preferred_base`: where a
// position-independent program goes, in reach of the code cache's 32-bit displacements, if it fits.
LoadError load_program(int file, const std::string& name, std::uint64_t preferred_base,
                       MemoryMap& memory, LoadedProgram& out);

}  // namespace assay::native
