// Maps the program's ELF file and its interpreter into the driver's address space, like execve(2)
// into an empty one. The caller has already replaced a script by its interpreter.
#pragma once

#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/memory/own_memory.h"

#include <sys/types.h>
#include <string>
#include <vector>

namespace assay::native {

struct LoadedPart {
    std::uint64_t start = 0, end = 0, offset = 0;
    std::string path;
};

struct LoadedProgram {
    std::uint64_t entry = 0;  // the entry point of the program itself
    std::uint64_t start = 0;  // where execution begins: the interpreter's entry, or `entry`
    std::uint64_t program_headers = 0;  // their address
    std::uint64_t header_count = 0;
    std::uint64_t interpreter_base = 0;
    std::uint64_t vdso = 0;         // its address; 0: there is no vDSO
    std::uint64_t break_start = 0;  // end of the program's data
    std::uint64_t stack_start = 0, stack_end = 0;
    // The kernel leaves [stack_guard, stack_start) unmapped below a stack that it makes itself.
    std::uint64_t stack_guard = 0;
    bool is_below_stack(std::uint64_t address) const {
        return stack_guard <= address && address < stack_start;
    }
    bool executable_stack = false;
    // Copies of the data on the stack, for /proc/self/environ and /proc/self/auxv.
    std::string environment;
    std::vector<std::uint64_t> auxiliary_vector;
    std::string name;        // from execve(2); perhaps a script's
    std::string executable;  // the absolute path, without symbolic links
    dev_t device = 0;        // of the executable
    ino_t inode = 0;
    std::vector<LoadedPart> code;    // executable parts
    std::vector<LoadedPart> images;  // all parts of the program and of its interpreter
    std::vector<Range> zeroed;       // whole pages of the images that come from no file
};

struct LoadError {
    std::string reason;  // empty: no error
    int exit_status = 0;
};

// `file`: the program, opened for reading. `name`: the value for AT_EXECFN. `preferred_base`: the
// address for a position-independent program that fits there, within reach of the code cache's
// 32-bit displacements.
LoadError load_program(int file, const std::string& name, std::uint64_t preferred_base,
                       MemoryMap& memory, LoadedProgram& out);

}  // namespace assay::native
