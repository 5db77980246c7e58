// A 64-bit ELF image opened with libelf: a file, or the vDSO that the kernel maps into every
// process.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elf.h>
#include <libelf.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbols {

// The path under which traces name the vDSO. The kernel gives every process the same one, so our
// own copy answers for the profiled program's.
inline constexpr std::string_view kVdsoPath = "[vdso]";

struct Section {
    Elf_Scn* handle;
    Elf64_Shdr header;
    std::string_view name;
};

std::string to_hexadecimal(std::string_view bytes);  // in lower case

class ElfFile {
  public:
    // Null if there is no readable 64-bit x86-64 ELF image under that path.
    static std::unique_ptr<ElfFile> open(const std::string& path);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    // Gives the descriptor back, of which a process has fewer than a program may have libraries;
    // what the file holds stays mapped. Not before libdw has begun to read the file: it looks up
    // there what folder .dwo files are in.
    void close_descriptor();

    Elf* elf() const { return elf_; }
    const std::string& path() const { return path_; }
    const std::vector<Section>& sections() const { return sections_; }
    const Section* section(std::string_view name) const;
    const Section* section_at(Address address) const;
    // Contents as they stand in the file; null if there are none or the file is cut short.
    const Elf_Data* data(const Section& section) const;
    // Whether symbol-table section index `index` names a section that holds code.
    bool holds_code(std::size_t index) const;

    // Lower-case hexadecimal, or empty.
    const std::string& build_id() const { return build_id_; }
    // Changes with the file's contents. Empty if it has no build id, from which it is made: the
    // debug file of a build can still be another one after it was processed once more.
    std::string version() const;
    // Whether there is another file under the path by now, or the file was written to.
    bool is_replaced() const;
    // Whether it was written to and has another size: what is mapped is not what it was, and to
    // read where a file has ended is SIGBUS.
    bool is_overwritten() const;
    // Start of the lowest segment that can be executed; 0 if there is none.
    Address code_start() const;
    // See Symbolizer::address_of_offset.
    Address address_of_offset(std::uint64_t file_offset) const;

  private:
    ElfFile() = default;
    bool open_file(const std::string& path);
    bool open_vdso();
    bool is_supported() const;
    void read_sections();
    void read_segments();
    void read_build_id();

    std::string path_;
    int descriptor_ = -1;
    struct stat status_ {};  // when it was opened; all zeros for the vDSO
    std::vector<char> vdso_;
    Elf* elf_ = nullptr;
    std::vector<Section> sections_;
    std::vector<Elf64_Phdr> segments_;  // that are loaded
    std::string build_id_;
};

}  // namespace assay::symbols
