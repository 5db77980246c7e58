// Reads the dynamic linker, the interpreter line and the privileges of a program file, as the
// kernel does.
#pragma once

#include <elf.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <climits>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// The dynamic linker that a program names (fs/binfmt_elf.c, load_elf_binary). Only the first of
// several PT_INTERP segments counts.

// `segment` is of type PT_INTERP, in the open file. No value if the kernel would refuse to execute
// it.
inline std::optional<std::string> dynamic_linker_name(int descriptor, const Elf64_Phdr& segment) {
    if (segment.p_filesz < 2 || segment.p_filesz > PATH_MAX) return {};
    std::string bytes(segment.p_filesz, '\0');
    if (pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(segment.p_offset)) !=
        static_cast<ssize_t>(bytes.size()))
        return {};
    if (bytes.front() == '\0' || bytes.back() != '\0') return {};
    return bytes.c_str();
}

// The first line of a script (fs/binfmt_script.c, load_script).

// The number of bytes of a file that the kernel reads (BINPRM_BUF_SIZE), and the number of nested
// interpreters that it accepts (fs/exec.c, exec_binprm).
inline constexpr std::size_t kInterpreterLineBytes = 256;
inline constexpr int kMostInterpreters = 5;

struct InterpreterLine {
    std::string interpreter;
    std::optional<std::string> argument;
};

// `file` is the first kInterpreterLineBytes bytes of the file, or all of a shorter one. No value if
// the kernel would not take it for a script.
inline std::optional<InterpreterLine> interpreter_line(std::string_view file) {
    constexpr std::string_view kBlanks = " \t";
    constexpr std::string_view kEnds("\0 \t", 3);
    if (!file.starts_with("#!")) return {};
    file.remove_prefix(2);
    const std::size_t newline = file.find('\n');
    const std::size_t begin = file.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos || begin >= newline) return {};
    // If the line is longer than the bytes read, these must not end within the interpreter's name.
    // The line then ends before the last byte read.
    if (newline == std::string_view::npos && file.size() + 2 >= kInterpreterLineBytes) {
        if (file.find_first_of(kEnds, begin) == std::string_view::npos) return {};
        file.remove_suffix(1);
    }
    std::string_view line = file.substr(begin, newline - begin);
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    const std::size_t end = line.find_first_of(kEnds);
    InterpreterLine found{std::string(line.substr(0, end)), {}};
    if (end == std::string_view::npos || line[end] == '\0') return found;
    std::string_view argument = line.substr(end);
    argument.remove_prefix(argument.find_first_not_of(kBlanks));
    found.argument = argument.substr(0, argument.find('\0'));
    return found;
}

// The reason why executing the file would change the identity or the capabilities of a process;
// null if it would not (fs/exec.c, bprm_fill_uid; security/commoncap.c, get_file_caps). A process
// that executes the driver instead would not get these privileges. Root has all capabilities anyway
// (handle_privileged_root).
inline const char* privilege(int descriptor) {
    struct stat status {};
    struct statvfs system {};
    if (fstat(descriptor, &status) != 0 || fstatvfs(descriptor, &system) != 0) return nullptr;
    if (system.f_flag & ST_NOSUID || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return nullptr;
    if (status.st_mode & S_ISUID && status.st_uid != geteuid()) return "it is set-user-ID";
    constexpr mode_t kSetGroup = S_ISGID | S_IXGRP;
    if ((status.st_mode & kSetGroup) == kSetGroup && status.st_gid != getegid())
        return "it is set-group-ID";
    const bool is_root = getuid() == 0 && !(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NOROOT);
    if (!is_root && fgetxattr(descriptor, "security.capability", nullptr, 0) > 0)
        return "it has file capabilities";
    return nullptr;
}

}  // namespace assay
