#include "framework/collector/launch/program.h"

#include "framework/support/error.h"
#include "framework/support/program_file.h"
#include "framework/support/text.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace assay::collector {
namespace {

// The path that execvp(3) searches on a system without confstr.
constexpr const char* kDefaultPath = "/bin:/usr/bin";

[[noreturn]] void cannot_run(const std::string& file, const std::string& why,
                             int status = kExitNotExecutable) {
    throw Error(fmt::format("cannot run {}: {}", file, why), status);
}

// Returns 0, or the errno with which the kernel would refuse to execute the file.
int executable_error(const std::string& file) {
    struct stat status;
    if (stat(file.c_str(), &status) != 0) return errno;
    if (!S_ISREG(status.st_mode)) return S_ISDIR(status.st_mode) ? EISDIR : EACCES;
    return access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

int exit_status(int error) {
    return error == ENOENT || error == ENOTDIR ? kExitNotFound : kExitNotExecutable;
}

// Searches in the way of execvp: skips a file that may not be executed, but reports it if nothing
// else is found.
std::string search(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        if (const int error = executable_error(name))
            cannot_run(name, system_reason(error), exit_status(error));
        return name;
    }
    const char* path = std::getenv("PATH");
    std::string forbidden;
    for (const std::string& folder : split(path ? path : kDefaultPath, ':')) {
        std::string file = folder.empty() ? name : fmt::format("{}/{}", folder, name);
        const int error = executable_error(file);
        if (error == 0) return file;
        if (error == EACCES && forbidden.empty()) forbidden = file;
    }
    if (!forbidden.empty()) cannot_run(forbidden, system_reason(EACCES));
    cannot_run(name, "not found on PATH", kExitNotFound);
}

// A regular file, read on demand.
class File {
  public:
    explicit File(const std::string& path)
        : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (fd_ < 0) cannot_run(path, system_reason(errno));
        struct stat status;
        if (fstat(fd_, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
    }
    ~File() { close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int descriptor() const { return fd_; }
    std::uint64_t size() const { return size_; }
    std::size_t read(void* into, std::size_t bytes, std::uint64_t offset = 0) const {
        const ssize_t got = pread(fd_, into, bytes, static_cast<off_t>(offset));
        return got < 0 ? 0 : static_cast<std::size_t>(got);
    }

  private:
    int fd_;
    std::uint64_t size_ = 0;
};

// Makes those checks of the kernel's ELF loader (fs/binfmt_elf.c, load_elf_binary) that need no
// mapping. Returns the path of the dynamic linker.
std::string check_elf(const std::string& path, const File& file) {
    Elf64_Ehdr header{};
    if (file.read(&header, sizeof header) < sizeof header)
        cannot_run(path, "its ELF header is truncated");
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        cannot_run(path, fmt::format("an ELF file of type {}, not a program", header.e_type));

    const std::uint64_t table = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
        header.e_phoff > file.size() || table > file.size() - header.e_phoff)
        cannot_run(path, "its ELF program headers lie outside of the file");
    bool loads = false;
    std::optional<std::string> dynamic_linker;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        file.read(&segment, sizeof segment, header.e_phoff + i * sizeof segment);
        if (segment.p_type == PT_INTERP && !dynamic_linker) {
            dynamic_linker = dynamic_linker_name(file.descriptor(), segment);
            if (!dynamic_linker) cannot_run(path, "the name of its dynamic linker is damaged");
        }
        if (segment.p_type != PT_LOAD) continue;
        loads = true;
        if (segment.p_offset > file.size() || segment.p_filesz > file.size() - segment.p_offset)
            cannot_run(path, "the file is truncated: a segment ends after the end of the file");
    }
    if (!loads) cannot_run(path, "an ELF file without a loadable segment");
    return dynamic_linker.value_or("");
}

// The instruction set of an ELF file.
isa::ElfKind elf_kind(const std::string& path, const File& file) {
    char magic[SELFMAG];
    if (file.read(magic, sizeof magic) < sizeof magic || std::memcmp(magic, ELFMAG, SELFMAG) != 0)
        cannot_run(path, "neither an ELF file nor a script that begins with #!");
    const isa::ElfKind kind = isa::kind_of_file(file.descriptor());
    if (kind == isa::ElfKind{}) cannot_run(path, "its ELF header is truncated");
    if (isa::architecture_of(kind) == nullptr)
        cannot_run(path,
                   fmt::format("built for a processor that assay does not know (ELF machine "
                               "{}, {}, {}-endian)",
                               kind.machine, kind.word_class == ELFCLASS32 ? "32-bit" : "64-bit",
                               kind.byte_order == ELFDATA2MSB ? "big" : "little"));
    return kind;
}

// Programs of other processors are checked by QEMU. Returns the path of the dynamic linker.
std::string foreign_linker(const std::string& path, const File& file) {
    elf_version(EV_CURRENT);
    Elf* const elf = elf_begin(file.descriptor(), ELF_C_READ, nullptr);
    std::size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) count = 0;
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr ||
            segment.p_type != PT_INTERP)
            continue;
        const std::optional<std::string> name = dynamic_linker_name(file.descriptor(), segment);
        elf_end(elf);
        if (!name) cannot_run(path, "the name of its dynamic linker is damaged");
        return *name;
    }
    elf_end(elf);
    return {};
}

}  // namespace

Program find_program(const std::vector<std::string>& argv) {
    Program program;
    program.file = program.invoked = search(argv[0]);
    program.argv = argv;
    program.name = std::filesystem::path(argv[0]).filename();
    for (int depth = 0; depth <= kMostInterpreters; ++depth) {
        const File file(program.file);
        std::string line(kInterpreterLineBytes, '\0');
        line.resize(file.read(line.data(), line.size()));
        const std::optional<InterpreterLine> script = interpreter_line(line);
        if (!script) {
            program.elf = elf_kind(program.file, file);
            program.dynamic_linker = program.elf == isa::kX86 ? check_elf(program.file, file)
                                                              : foreign_linker(program.file, file);
            if (const char* why = privilege(file.descriptor())) program.privilege = why;
            return program;
        }
        if (const int error = executable_error(script->interpreter))
            cannot_run(program.file, fmt::format("its interpreter \"{}\": {}", script->interpreter,
                                                 system_reason(error)));
        // The kernel replaces argv[0] by the path of the script.
        std::vector<std::string> words{script->interpreter};
        if (script->argument) words.push_back(*script->argument);
        words.push_back(program.file);
        program.argv.erase(program.argv.begin());
        program.argv.insert(program.argv.begin(), words.begin(), words.end());
        program.file = script->interpreter;
    }
    cannot_run(argv[0], "too many interpreters of interpreters");
}

}  // namespace assay::collector
