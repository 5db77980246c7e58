#include "framework/driver/native/load/elf_functions.h"

#include "framework/driver/native/machine/own_descriptors.h"

#include <elf.h>
#include <fcntl.h>
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

    // `count` elements at `offset`; none if the file does not have them.
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

}  // namespace assay::native
