// The variables of an ELF file, by their addresses: from its symbol tables, or those of a separate
// debug file. What no symbol covers is known by its section, as `.rodata` or `.got`.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::symbols {

struct DataSymbol {
    Address start = 0, size = 0;  // at link time
    std::string name;             // demangled
    bool is_section = false;
};

class DataSymbols {
  public:
    // Null if there is no ELF file under that path. Debug files are looked for as Symbolizer does.
    static std::unique_ptr<DataSymbols> open(const std::string& path,
                                             const std::string& debug_root = kDebugRoot);

    // What contains the address, and the range around it for which that is so. A variable in
    // another one, as a symbol for a part of an array, is not told apart.
    struct Found {
        const DataSymbol* symbol;
        Address start, end;
    };
    std::optional<Found> find(Address address) const;
    // The thread-local variable that has that byte of the file's thread-local block; null if none
    // has.
    const DataSymbol* find_thread_local(std::uint64_t offset) const;
    // PT_TLS; zeros if there is none.
    struct ThreadLocalBlock {
        Address address = 0;
        std::uint64_t bytes = 0, alignment = 0;
    };
    ThreadLocalBlock thread_local_block() const;

    // Of the loaded segment that has that byte of the file; 0 if none has.
    Address address_of_offset(std::uint64_t file_offset) const;

  private:
    explicit DataSymbols(std::unique_ptr<ElfFile> file) : file_(std::move(file)) {}
    void read(const ElfFile* debug_file);
    void add_symbols(const ElfFile& file, const Section& table, Names& names);
    void add_sections();

    std::unique_ptr<ElfFile> file_;
    // Both by address, and none in another.
    std::vector<DataSymbol> variables_, sections_;
    std::vector<DataSymbol> thread_locals_;  // by offset
};

}  // namespace assay::symbols
