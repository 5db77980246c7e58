// The dynamic linker that a program names, as the kernel reads it (fs/binfmt_elf.c,
// load_elf_binary). Of several PT_INTERP segments only the first one counts.
#pragma once

#include <elf.h>
#include <unistd.h>
#include <climits>
#include <optional>
#include <string>

namespace assay {

// `segment`: of type PT_INTERP, of the file that is open. Nothing if the kernel would not execute
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

}  // namespace assay
