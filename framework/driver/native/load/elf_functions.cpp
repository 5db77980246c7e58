#include "framework/driver/native/load/elf_functions.h"

#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/memory/address_space.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstring>
#include <vector>

namespace assay::native {
namespace {

class File {
  public:
    explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (fd_ >= 0) fd_ = own_descriptor(fd_);
        struct stat state {};
        if (fd_ >= 0 && fstat(fd_, &state) == 0) size_ = static_cast<std::uint64_t>(state.st_size);
    }
    ~File() {
        if (fd_ >= 0) close_own_descriptor(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    // Returns `count` elements at `offset`, or no elements if the file does not have all of them.
    template <typename T>
    std::vector<T> read(std::uint64_t offset, std::uint64_t count) const {
        if (offset > size_ || count > (size_ - offset) / sizeof(T)) return {};
        std::vector<T> out(count);
        const std::size_t bytes = count * sizeof(T);
        const ssize_t got = pread(fd_, out.data(), bytes, static_cast<off_t>(offset));
        if (got != static_cast<ssize_t>(bytes)) out.clear();
        return out;
    }

  private:
    int fd_;
    std::uint64_t size_ = 0;
};

bool is_function(const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
}

}  // namespace

void for_each_function(const std::string& path,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit) {
    const File file(path);
    const auto headers = file.read<Elf64_Ehdr>(0, 1);
    if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return;
    const auto segments = file.read<Elf64_Phdr>(headers[0].e_phoff, headers[0].e_phnum);
    const auto sections = file.read<Elf64_Shdr>(headers[0].e_shoff, headers[0].e_shnum);
    for (const Elf64_Shdr& table : sections) {
        const bool symbols = table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM;
        if (!symbols || table.sh_link >= sections.size()) continue;
        auto names =
            file.read<char>(sections[table.sh_link].sh_offset, sections[table.sh_link].sh_size);
        names.push_back('\0');
        for (const Elf64_Sym& symbol :
             file.read<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
            if (!is_function(symbol) || symbol.st_name >= names.size()) continue;
            for (const Elf64_Phdr& segment : segments)
                if (segment.p_type == PT_LOAD && symbol.st_value >= segment.p_vaddr &&
                    symbol.st_value - segment.p_vaddr < segment.p_filesz)
                    visit(&names[symbol.st_name],
                          symbol.st_value - segment.p_vaddr + segment.p_offset);
        }
    }
}

namespace {

// Moves all of `parts` by `distance`, or none of them. The kernel moves only whole parts
// (arch/x86/entry/vdso/vma.c, vdso_mremap()), and refuses if they are sealed (mseal(2)).
bool move_all(const std::vector<Range>& parts, std::uint64_t distance) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Range& part = parts[i];
        const std::uint64_t bytes = part.end - part.start;
        if (mremap(reinterpret_cast<void*>(part.start), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   reinterpret_cast<void*>(part.start + distance)) != MAP_FAILED)
            continue;
        std::vector<Range> moved(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i));
        for (Range& back : moved) back = {back.start + distance, back.end + distance};
        move_all(moved, -distance);
        return false;
    }
    return true;
}

}  // namespace

std::uint64_t move_vdso(const std::vector<Mapping>& mappings) {
    const std::uint64_t code = getauxval(AT_SYSINFO_EHDR);
    if (code == 0 || !chooses_addresses()) return code;
    // The code finds the data at a fixed distance, so both move together.
    std::vector<Range> parts;
    for (const Mapping& mapping : mappings)
        if (mapping.name == "[vdso]" || mapping.name.starts_with("[vvar"))
            parts.push_back({mapping.start, mapping.end});
    if (parts.empty()) return code;
    const std::uint64_t distance = kVdsoAddress - code;
    const std::uint64_t bytes = parts.back().end - parts.front().start;
    void* const wanted = reinterpret_cast<void*>(parts.front().start + distance);
    void* const room =
        mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (room == MAP_FAILED) return code;
    if (move_all(parts, distance)) return kVdsoAddress;
    munmap(room, bytes);
    return code;
}

}  // namespace assay::native
