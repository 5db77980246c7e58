#include "framework/driver/native/load/elf_loader.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/support/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace assay::native {
namespace {

constexpr int kFailure = 125, kNotExecutable = 126, kNotFound = 127;
// The base of programs that do not fit between the code cache and the mappings below it. It is
// below the driver, leaves room for terabytes, and is an address that sanitizers accept.
constexpr std::uint64_t kBaseOfLargePrograms = 0x550000000000;

std::uint64_t page_down(std::uint64_t value) {
    return value & ~(kPage - 1);
}
std::uint64_t page_up(std::uint64_t value) {
    return (value + kPage - 1) & ~(kPage - 1);
}

class ElfFile {
  public:
    explicit ElfFile(int fd) : fd_(fd) {}
    explicit ElfFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~ElfFile() {
        if (fd_ >= 0) close(fd_);
    }
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;
    int fd() const { return fd_; }
    // The absolute path, without symbolic links.
    std::string name() const {
        std::array<char, 4096> target{};
        const std::string link = "/proc/self/fd/" + std::to_string(fd_);
        const ssize_t length = readlink(link.c_str(), target.data(), target.size());
        return {target.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
    }
    struct stat status() const {
        struct stat status {};
        if (fstat(fd_, &status) != 0) return {};
        return status;
    }
    std::uint64_t size() const { return static_cast<std::uint64_t>(status().st_size); }
    bool read_at(std::uint64_t offset, void* out, std::size_t bytes) const {
        return pread(fd_, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
    }

  private:
    int fd_;
};

struct Image {
    Elf64_Ehdr header{};
    std::vector<Elf64_Phdr> segments;
    std::uint64_t bias = 0;
    std::uint64_t end = 0;
};

LoadError read_headers(const ElfFile& file, const std::string& path, Image& image) {
    if (!file.read_at(0, &image.header, sizeof image.header) ||
        std::memcmp(image.header.e_ident, ELFMAG, SELFMAG) != 0)
        return {path + ": not an ELF file", kNotExecutable};
    if (image.header.e_ident[EI_CLASS] != ELFCLASS64)
        return {path + ": a 32-bit program; the native driver runs x86-64 programs only", kFailure};
    if (image.header.e_machine != EM_X86_64)
        return {path + ": a program for another machine (ELF machine " +
                    std::to_string(image.header.e_machine) +
                    "); the native driver runs x86-64 programs only",
                kFailure};
    if (image.header.e_type != ET_EXEC && image.header.e_type != ET_DYN)
        return {path + ": not an executable (ELF type " + std::to_string(image.header.e_type) + ")",
                kNotExecutable};
    if (image.header.e_phentsize != sizeof(Elf64_Phdr) || image.header.e_phnum == 0 ||
        image.header.e_phnum > 512)
        return {path + ": damaged ELF file: invalid program headers", kNotExecutable};
    image.segments.resize(image.header.e_phnum);
    if (!file.read_at(image.header.e_phoff, image.segments.data(),
                      image.segments.size() * sizeof(Elf64_Phdr)))
        return {path + ": truncated ELF file: its program headers are missing", kNotExecutable};
    return {};
}

LoadError check_segments(const ElfFile& file, const std::string& path, const Image& image) {
    bool loadable = false;
    for (const Elf64_Phdr& segment : image.segments) {
        if (segment.p_type != PT_LOAD) continue;
        loadable = true;
        if (segment.p_offset + segment.p_filesz > file.size() ||
            segment.p_offset + segment.p_filesz < segment.p_offset)
            return {path + ": truncated ELF file: a segment ends at byte " +
                        std::to_string(segment.p_offset + segment.p_filesz) + " of " +
                        std::to_string(file.size()),
                    kNotExecutable};
        if (segment.p_memsz < segment.p_filesz || segment.p_vaddr > 1ULL << 47 ||
            segment.p_memsz > 1ULL << 46 || (segment.p_vaddr - segment.p_offset) % kPage != 0)
            return {path + ": damaged ELF file: invalid segment", kNotExecutable};
    }
    if (!loadable) return {path + ": damaged ELF file: no segment to load", kNotExecutable};
    return {};
}

// Executable segments are also readable, because the driver has to read the program's code.
int protection_of(const Elf64_Phdr& segment) {
    return (segment.p_flags & PF_R ? PROT_READ : 0) | (segment.p_flags & PF_W ? PROT_WRITE : 0) |
           (segment.p_flags & PF_X ? PROT_READ | PROT_EXEC : 0);
}

// Maps the file's bytes, then zeros. The zeros go on to the end of the page even if memsz ends
// before: execve(2) does the same, and programs rely on it.
bool map_segment(const ElfFile& file, const Elf64_Phdr& segment, std::uint64_t bias,
                 std::vector<Range>& zeroed) {
    const std::uint64_t start = bias + segment.p_vaddr;
    const std::uint64_t file_end = start + segment.p_filesz;
    const std::uint64_t memory_end = page_up(start + segment.p_memsz);
    const int protection = protection_of(segment);
    if (segment.p_filesz != 0) {
        void* at = reinterpret_cast<void*>(page_down(start));
        if (mmap(at, page_up(file_end) - page_down(start), protection, MAP_PRIVATE | MAP_FIXED,
                 file.fd(), static_cast<off_t>(page_down(segment.p_offset))) == MAP_FAILED)
            return false;
        if (segment.p_memsz > segment.p_filesz && (protection & PROT_WRITE) &&
            page_up(file_end) > file_end)
            std::memset(reinterpret_cast<void*>(file_end), 0, page_up(file_end) - file_end);
    }
    const std::uint64_t zero_start = segment.p_filesz != 0 ? page_up(file_end) : page_down(start);
    if (memory_end <= zero_start) return true;
    zeroed.push_back({zero_start, memory_end});
    return mmap(reinterpret_cast<void*>(zero_start), memory_end - zero_start, protection,
                MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

// Returns MAP_FAILED, with errno, if something is mapped there.
void* reserve_at(std::uint64_t address, std::uint64_t bytes) {
    void* memory = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != MAP_FAILED) note_mapped({address, address + bytes});
    return memory;
}

void* reserve_anywhere(std::uint64_t bytes) {
    unsigned char* memory = reserve_in_arena(bytes);
    return memory != nullptr ? memory : MAP_FAILED;
}

// The alignment of the base of a position-independent program. Its data may rely on it.
std::uint64_t alignment_of(const Image& image) {
    std::uint64_t largest = kPage;
    for (const Elf64_Phdr& segment : image.segments)
        if (segment.p_type == PT_LOAD && std::has_single_bit(segment.p_align))
            largest = std::max(largest, segment.p_align);
    return largest;
}

// Reserves addresses for a position-independent image, near the code cache if it fits there.
void* reserve_for(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t preferred) {
    if (preferred == 0) return reserve_anywhere(bytes);
    void* base = reserve_at((preferred + alignment - 1) & ~(alignment - 1), bytes);
    return base != MAP_FAILED ? base : reserve_at(kBaseOfLargePrograms, bytes);
}

LoadError map_image(const ElfFile& file, const std::string& path, std::uint64_t preferred,
                    MemoryMap& memory, LoadedProgram& out, Image& image) {
    std::uint64_t low = ~0ULL, high = 0, offset = 0;
    for (const Elf64_Phdr& segment : image.segments) {
        if (segment.p_type != PT_LOAD) continue;
        if (page_down(segment.p_vaddr) < low) offset = page_down(segment.p_offset);
        low = std::min(low, page_down(segment.p_vaddr));
        high = std::max(high, page_up(segment.p_vaddr + segment.p_memsz));
    }
    const bool fixed = image.header.e_type == ET_EXEC;
    void* base = fixed ? reserve_at(low, high - low)
                       : reserve_for(high - low, alignment_of(image), preferred);
    if (base == MAP_FAILED)
        return {path + ": cannot be loaded at its address: " + std::strerror(errno), kFailure};
    image.bias = fixed ? 0 : reinterpret_cast<std::uint64_t>(base) - low;
    image.end = image.bias + high;
    const std::string name = file.name();
    out.images.push_back({image.bias + low, image.end, offset, name});
    for (const Elf64_Phdr& segment : image.segments) {
        if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
        if (!map_segment(file, segment, image.bias, out.zeroed))
            return {path + ": cannot be mapped: " + std::strerror(errno), kFailure};
        if (!(segment.p_flags & PF_X)) continue;
        const std::uint64_t start = page_down(image.bias + segment.p_vaddr);
        const std::uint64_t end = page_up(image.bias + segment.p_vaddr + segment.p_memsz);
        const bool writable = segment.p_flags & PF_W;
        memory.add({.start = start, .end = end, .writable = writable, .changeable = writable});
        out.code.push_back({start, end, page_down(segment.p_offset), name});
    }
    return {};
}

}  // namespace

LoadError load_program(int descriptor, const std::string& name, std::uint64_t preferred_base,
                       MemoryMap& memory, LoadedProgram& out) {
    const ElfFile file(descriptor);
    out.name = name;
    out.executable = file.name();
    out.device = file.status().st_dev;
    out.inode = file.status().st_ino;
    Image image;
    if (LoadError error = read_headers(file, out.executable, image); error.exit_status)
        return error;
    if (LoadError error = check_segments(file, out.executable, image); error.exit_status)
        return error;
    if (LoadError error = map_image(file, out.executable, preferred_base, memory, out, image);
        error.exit_status)
        return error;
    out.entry = out.start = image.header.e_entry + image.bias;
    out.header_count = image.header.e_phnum;
    out.break_start = image.end;
    std::optional<std::string> interpreter;
    for (const Elf64_Phdr& segment : image.segments) {
        if (segment.p_type == PT_LOAD && segment.p_offset <= image.header.e_phoff &&
            image.header.e_phoff < segment.p_offset + segment.p_filesz)
            out.program_headers =
                image.bias + segment.p_vaddr + image.header.e_phoff - segment.p_offset;
        if (segment.p_type == PT_GNU_STACK) out.executable_stack = segment.p_flags & PF_X;
        if (segment.p_type != PT_INTERP || interpreter) continue;
        interpreter = dynamic_linker_name(descriptor, segment);
        if (!interpreter)
            return {out.executable + ": damaged ELF file: invalid name of its interpreter",
                    kNotExecutable};
    }
    if (!interpreter) return {};
    const ElfFile loader(*interpreter);
    if (loader.fd() < 0)
        return {out.executable + ": its interpreter " + *interpreter + ": " + std::strerror(errno),
                kNotFound};
    Image second;
    if (LoadError error = read_headers(loader, *interpreter, second); error.exit_status)
        return error;
    if (LoadError error = check_segments(loader, *interpreter, second); error.exit_status)
        return error;
    if (LoadError error = map_image(loader, *interpreter, 0, memory, out, second);
        error.exit_status)
        return error;
    out.start = second.header.e_entry + second.bias;
    out.interpreter_base = second.bias;
    return {};
}

}  // namespace assay::native
