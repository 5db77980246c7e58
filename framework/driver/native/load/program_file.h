// The file that execve(2) would run: the file itself, or the interpreter that its first line names.
// Also tells whether the driver can run it.
//
// The driver refuses no file. It leaves a file that it cannot run to the kernel. The kernel runs
// the file natively or reports an error, so all errors of execve(2) are the kernel's own.
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

    // An ELF program that the driver can run, opened for reading; -1 for other files.
    int descriptor = -1;
    // Without a descriptor: the reason, for the user, why the kernel runs the file natively. Empty
    // if the kernel refuses it.
    std::string natively;
    // The name that execve(2) was given: AT_EXECFN.
    std::string name;
    // The interpreter's arguments in place of a script's argv[0]; empty without a script.
    std::vector<std::string> instead_of_argv0;
};

// The arguments are those of execveat(2); `path` is a copy of the program's string.
ProgramFile find_program_file(int folder, const std::string& path, int flags);

}  // namespace assay::native
