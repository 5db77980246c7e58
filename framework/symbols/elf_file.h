// A 64-bit ELF image opened with libelf: a file, or the vDSO that the kernel maps into every
// process.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbols {

// The path of the vDSO in traces. The kernel gives every process the same vDSO, so assay reads its
// own.
inline constexpr std::string_view kVdsoPath = "[vdso]";

struct Section {
    Elf_Scn* handle;
    Elf64_Shdr header;
    std::string_view name;
};

std::string to_hexadecimal(std::string_view bytes);  // in lower case

class ElfFile {
  public:
    // Null if the path has no readable ELF image.
    static std::unique_ptr<ElfFile> open(const std::string& path);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    // Closes the descriptor, because a program may have more libraries than a process may have
    // descriptors. The contents stay mapped. Call it only after libdw has begun to read the file:
    // libdw finds the folder of .dwo files by the descriptor.
    void close_descriptor();
    int descriptor() const { return descriptor_; }  // -1: closed, or not a file

    Elf* elf() const { return elf_; }
    const std::string& path() const { return path_; }
    const std::vector<Section>& sections() const { return sections_; }
    const Section* section(std::string_view name) const;
    const Section* section_at(Address address) const;
    // The contents as they are in the file; null if the section is empty or the file is truncated.
    const Elf_Data* data(const Section& section) const;
    // The symbols of a table, as in files of 64 bits and in this machine's byte order. Empty for
    // other sections.
    std::vector<Elf64_Sym> symbols(const Section& table) const;
    const GElf_Ehdr& header() const { return header_; }
    // True if the file has the layout that this machine's own programs have.
    bool is_like_own() const {
        return header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_ident[EI_DATA] == ELFDATA2LSB;
    }
    // `index` is a section number, as in symbol tables.
    bool holds_code(std::size_t index) const;

    // Lower-case hexadecimal, or empty.
    const std::string& build_id() const { return build_id_; }
    // Identifies the contents of the file: its build id, size and time, because tools can rewrite a
    // debug file and keep its build id. Empty without a build id.
    std::string version() const;
    // True if the path now leads to another file, or if the file was modified.
    bool is_replaced() const;
    // True if the file was modified and has another size. The mapped contents are then wrong, and
    // reading beyond the new end raises SIGBUS.
    bool is_overwritten() const;
    // Start of the lowest executable segment, or 0.
    Address code_start() const;
    // See Symbolizer::address_of_offset.
    Address address_of_offset(std::uint64_t file_offset) const;

  private:
    ElfFile() = default;
    bool open_file(const std::string& path);
    bool open_vdso();
    bool read_header();
    void read_sections();
    void read_segments();
    void read_build_id();

    std::string path_;
    int descriptor_ = -1;
    struct stat status_ {};  // at the time of open(); zeros for the vDSO
    std::vector<char> vdso_;
    Elf* elf_ = nullptr;
    GElf_Ehdr header_{};
    std::vector<Section> sections_;
    std::vector<Elf64_Phdr> segments_;  // PT_LOAD only
    std::string build_id_;
};

}  // namespace assay::symbols
