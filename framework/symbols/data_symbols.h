// The variables of an ELF file, by their addresses. They come from the symbol tables of the file or
// of a separate debug file. If there are no symbol tables, they come from the debug information. An
// address that no symbol covers is known by its section, such as `.rodata` or `.got`.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/static_variables.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::symbols {

struct DataSymbol {
    Address start = 0, size = 0;  // at link time
    std::string name;             // demangled
    bool is_section = false;
    std::string type = {};  // of a variable; set by read_debug_information()
};

class DataSymbols {
  public:
    // Returns null if the path has no ELF file. Searches for debug files like Symbolizer.
    static std::unique_ptr<DataSymbols> open(const std::string& path,
                                             const std::string& debug_root = kDebugRoot);

    // The variable or section that contains an address, and the whole range with this answer. A
    // symbol within another one, such as that for a part of an array, is not found.
    struct Found {
        const DataSymbol* symbol;
        Address start, end;
    };
    std::optional<Found> find(Address address) const;
    // The variable at this offset in the thread-local block of the file, or null.
    const DataSymbol* find_thread_local(std::uint64_t offset) const;
    // The segment PT_TLS; zeros if the file has no such segment.
    struct ThreadLocalBlock {
        Address address = 0;
        std::uint64_t bytes = 0, alignment = 0;
    };
    ThreadLocalBlock thread_local_block() const;

    // Sets the types of variables. Renames static variables of C functions from "name.0" to
    // "function::name", as debuggers show them; variables of different blocks of a function can
    // then share a name. Reads all debug information (0.1 s for that of libc), so call it only when
    // variables are shown. Pointers to symbols stay valid.
    void read_debug_information(const std::string& cache_folder = {});

    // The link-time address of a byte of the file; 0 if no segment loads the byte.
    Address address_of_offset(std::uint64_t file_offset) const;

  private:
    DataSymbols(std::unique_ptr<ElfFile> file, std::string debug_root)
        : file_(std::move(file)), debug_root_(std::move(debug_root)) {}
    void read(const ElfFile* debug_file);
    void add_debug_information(const std::vector<StaticVariable>& variables);
    void add_symbols(const ElfFile& file, const Section& table, Names& names);
    void add_sections();

    std::vector<StaticVariable> static_variables(const std::string& cache_folder) const;

    std::unique_ptr<ElfFile> file_;
    std::string debug_root_;
    // Both sorted by address; their ranges are disjoint.
    std::vector<DataSymbol> variables_, sections_;
    std::vector<DataSymbol> thread_locals_;  // by offset
};

}  // namespace assay::symbols
