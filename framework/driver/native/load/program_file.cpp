#include "framework/driver/native/load/program_file.h"

#include "framework/support/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace assay::native {
namespace {

// True for a regular file that is executable for this process and on a file system that permits
// execution: fs/exec.c, do_open_execat.
bool may_execute(int descriptor) {
    struct stat status {};
    struct statvfs system {};
    // Goes through /proc because faccessat(2) knows AT_EMPTY_PATH only since Linux 5.8.
    const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
           fstatvfs(descriptor, &system) == 0 && !(system.f_flag & ST_NOEXEC) &&
           faccessat(AT_FDCWD, name.c_str(), X_OK, AT_EACCESS) == 0;
}

// Most of the kernel's checks: fs/binfmt_elf.c, load_elf_binary.
bool has_program_headers(int descriptor, const Elf64_Ehdr& header) {
    constexpr unsigned kMostHeaders = 512;
    struct stat status {};
    if ((header.e_type != ET_EXEC && header.e_type != ET_DYN) ||
        header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
        header.e_phnum > kMostHeaders || fstat(descriptor, &status) != 0)
        return false;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    bool loads = false;
    std::optional<std::string> linker;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (pread(descriptor, &segment, sizeof segment,
                  static_cast<off_t>(header.e_phoff + i * sizeof segment)) !=
            static_cast<ssize_t>(sizeof segment))
            return false;
        if (segment.p_type == PT_LOAD) {
            loads = true;
            if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset ||
                segment.p_memsz < segment.p_filesz)
                return false;
        }
        if (segment.p_type == PT_INTERP && !linker) {
            linker = dynamic_linker_name(descriptor, segment);
            if (!linker || faccessat(AT_FDCWD, linker->c_str(), X_OK | R_OK, AT_EACCESS) != 0)
                return false;
        }
    }
    return loads;
}

// The reason why an ELF file can only run natively; nullptr if the driver can run it.
const char* foreign(const Elf64_Ehdr& header) {
    if (header.e_machine == EM_386 || header.e_ident[EI_CLASS] == ELFCLASS32)
        return "it is a 32-bit program";
    if (header.e_machine != EM_X86_64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return "it is built for another processor";
    return nullptr;
}

// True if the driver can run `file`, which starts with the bytes at `begin`. If only the kernel can
// run it, sets `natively` to the reason.
bool is_for_driver(int descriptor, const char* begin, const std::string& file,
                   std::string& natively) {
    Elf64_Ehdr header;
    std::memcpy(&header, begin, sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
    const char* why = foreign(header);
    if (why == nullptr && !has_program_headers(descriptor, header)) return false;
    if (why == nullptr) why = privilege(descriptor);
    if (why != nullptr) natively = file + ": " + why;
    return why == nullptr;
}

// The arguments of an interpreter that replace the script's argv[0]. `scripts`: the arguments that
// already replace it if the script is an interpreter itself.
std::vector<std::string> words_of(const InterpreterLine& line, const std::string& script,
                                  std::span<const std::string> scripts) {
    std::vector<std::string> words{line.interpreter};
    if (line.argument) words.push_back(*line.argument);
    words.push_back(script);
    if (!scripts.empty()) words.insert(words.end(), scripts.begin() + 1, scripts.end());
    return words;
}

// The name that the kernel gives to a file that is named by a descriptor: fs/exec.c, alloc_bprm.
std::string name_of(int folder, const std::string& path) {
    if (folder == AT_FDCWD || path.starts_with('/')) return path;
    const std::string name = "/dev/fd/" + std::to_string(folder);
    return path.empty() ? name : name + "/" + path;
}

}  // namespace

ProgramFile::~ProgramFile() {
    if (descriptor >= 0) close(descriptor);
}

ProgramFile& ProgramFile::operator=(ProgramFile&& other) noexcept {
    std::swap(descriptor, other.descriptor);
    natively = std::move(other.natively);
    name = std::move(other.name);
    instead_of_argv0 = std::move(other.instead_of_argv0);
    return *this;
}

ProgramFile find_program_file(int folder, const std::string& path, int flags) {
    ProgramFile found;
    found.name = name_of(folder, path);
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) return found;
    // O_NONBLOCK: opening a pipe without a writer must not wait.
    constexpr int kHow = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    std::string file =
        path.empty() && flags & AT_EMPTY_PATH ? "/proc/self/fd/" + std::to_string(folder) : path;
    int descriptor =
        openat(folder, file.c_str(), kHow | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
    file = found.name;
    for (int depth = 0; depth <= kMostInterpreters; ++depth) {
        if (descriptor < 0) {
            if (errno == EACCES) found.natively = file + ": it cannot be read";
            return found;
        }
        found.descriptor = descriptor;
        std::array<char, kInterpreterLineBytes> begin{};
        const ssize_t got = pread(descriptor, begin.data(), begin.size(), 0);
        if (got < 0 || !may_execute(descriptor)) break;
        const std::optional<InterpreterLine> line =
            interpreter_line({begin.data(), static_cast<std::size_t>(got)});
        if (!line) {
            if (is_for_driver(descriptor, begin.data(), file, found.natively)) return found;
            break;
        }
        // The interpreter could not open the script (BINPRM_FLAGS_PATH_INACCESSIBLE).
        if (depth == 0 && file != path && fcntl(folder, F_GETFD) & FD_CLOEXEC) break;
        found.instead_of_argv0 = words_of(*line, file, found.instead_of_argv0);
        close(std::exchange(found.descriptor, -1));
        file = line->interpreter;
        descriptor = open(file.c_str(), kHow);
    }
    close(std::exchange(found.descriptor, -1));
    return found;
}

}  // namespace assay::native
