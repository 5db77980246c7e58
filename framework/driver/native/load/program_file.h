// What execve(2) would run: the file itself, or the interpreter that its first line names, and
// whether the driver can run it.
//
// Nothing is refused here. What the driver cannot run is left to the kernel, which runs it natively
// or says what is wrong with it: the errors of execve(2) are always the kernel's own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace assay::native {

class ProgramFile {
  public:
    ProgramFile() = default;
    ~ProgramFile();
    ProgramFile(ProgramFile&& other) noexcept { *this = std::move(other); }
    ProgramFile& operator=(ProgramFile&& other) noexcept;

    // An ELF program that the driver can run, opened for reading; -1: there is none.
    int descriptor = -1;
    // If there is none: why the kernel may nevertheless run the file natively, for the user; "" if
    // it will not.
    std::string natively;
    // As execve(2) names the file: AT_EXECFN.
    std::string name;
    // What a script's interpreter is given in place of argv[0]; empty if it is no script.
    std::vector<std::string> instead_of_argv0;
};

// The arguments are execveat(2)'s, the path as it was read.
ProgramFile find_program_file(int folder, const std::string& path, int flags);

}  // namespace assay::native
