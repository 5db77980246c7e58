// The variables of an ELF file, by their addresses: from its symbol tables, or those of a separate
// debug file. What no symbol covers is known by its section, as `.rodata` or `.got`. Of files that
// have debug information and no symbol tables, the former tells the variables.
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
    std::string type = {};  // of a variable, once read_debug_information() has found it
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

    // Gives variables their types, and static variables of C functions the name that debuggers
    // show: "function::name" instead of "name.0". Those of different blocks of a function have the
    // same. Reads all debug information, a tenth of a second for libc's: for the end, when
    // variables are shown. Symbols stay where they are.
    void read_debug_information(const std::string& cache_folder = {});

    // Of the loaded segment that has that byte of the file; 0 if none has.
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
    // Both by address, and none in another.
    std::vector<DataSymbol> variables_, sections_;
    std::vector<DataSymbol> thread_locals_;  // by offset
};

}  // namespace assay::symbols
