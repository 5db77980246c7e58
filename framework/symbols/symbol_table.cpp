#include "framework/symbols/symbol_table.h"

#include "framework/symbols/object_symbols.h"

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <string>

namespace assay::symbols {

namespace {

struct Symbol {
    Address low, high;  // equal if the size is not recorded
    std::string_view name;
};

// The name that Valgrind 3.19 prefers among symbols of the same range (its debug information
// reader's prefersym): the shortest without its version, then one that has a version, then the
// first in the alphabet. glibc gives most of its functions several names.
bool preferred(std::string_view a, std::string_view b) {
    std::size_t length_a = std::min(a.find('@'), a.size());
    std::size_t length_b = std::min(b.find('@'), b.size());
    if (length_a != length_b) return length_a < length_b;
    bool versioned_a = length_a < a.size(), versioned_b = length_b < b.size();
    if (versioned_a != versioned_b) return versioned_a;
    return a < b;
}

// Symbols that matter for `addresses`. Symbols without a size extend up to where the next function
// begins, the one that they lie in ends, or their section does.
class SymbolTable {
  public:
    explicit SymbolTable(std::span<const Address> addresses) : addresses_(addresses) {}

    void add(const ElfFile& file, const Section& table);
    void add_mini_debug_info(const ElfFile& file, Names& names);
    void add_all(const ElfFile& object, const ElfFile* debug_file, Names& names);
    // For each address the index of its symbol, or IntervalMap::kNone.
    std::vector<std::uint32_t> lookup();
    const Symbol& symbol(std::uint32_t index) const { return symbols_[index]; }

  private:
    static bool may_be_function(const ElfFile& file, const Elf64_Sym& symbol);
    bool is_wanted(const Elf64_Sym& symbol) const;
    void add_borders(const Elf64_Sym& symbol);
    void extend_unsized();

    std::span<const Address> addresses_;
    std::vector<Symbol> symbols_;
    std::vector<Address> borders_;  // of all functions, wanted or not, and the ends of sections
};

bool SymbolTable::may_be_function(const ElfFile& file, const Elf64_Sym& symbol) {
    switch (ELF64_ST_TYPE(symbol.st_info)) {
        case STT_FUNC:
        case STT_GNU_IFUNC:
            return symbol.st_shndx != SHN_UNDEF;
        case STT_NOTYPE:  // labels of assembly code
            return symbol.st_name != 0 && file.holds_code(symbol.st_shndx);
        default:
            return false;
    }
}

bool SymbolTable::is_wanted(const Elf64_Sym& symbol) const {
    if (symbol.st_size == 0) return true;
    return any_within(addresses_, symbol.st_value, symbol.st_value + symbol.st_size);
}

void SymbolTable::add(const ElfFile& file, const Section& table) {
    const Elf_Data* data = file.data(table);
    if (data == nullptr || data->d_type != ELF_T_SYM) return;
    std::span symbols(static_cast<const Elf64_Sym*>(data->d_buf), data->d_size / sizeof(Elf64_Sym));
    for (const Elf64_Sym& symbol : symbols) {
        if (!may_be_function(file, symbol)) continue;
        add_borders(symbol);
        if (!is_wanted(symbol)) continue;
        const char* name = elf_strptr(file.elf(), table.header.sh_link, symbol.st_name);
        if (name == nullptr || *name == '\0') continue;
        symbols_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, name});
    }
    for (const Section& section : file.sections()) {
        // Others, such as debug information, have the address 0.
        if ((section.header.sh_flags & SHF_ALLOC) != 0)
            borders_.push_back(section.header.sh_addr + section.header.sh_size);
    }
}

// .gnu_debugdata holds a whole ELF file with a .symtab, compressed with xz; libdwfl unpacks it.
void SymbolTable::add_mini_debug_info(const ElfFile& file, Names& names) {
    Dwfl_Callbacks callbacks{};
    callbacks.find_elf = dwfl_build_id_find_elf;
    callbacks.section_address = dwfl_offline_section_address;
    callbacks.find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*,
                                  const char*, GElf_Word, char**) { return -1; };
    Dwfl* session = dwfl_begin(&callbacks);
    if (session == nullptr) return;
    Dwfl_Module* module = dwfl_report_offline(session, "", file.path().c_str(), -1);
    dwfl_report_end(session, nullptr, nullptr);
    int count = module != nullptr ? dwfl_module_getsymtab(module) : 0;
    for (int i = 0; i < count; ++i) {
        GElf_Sym symbol;
        GElf_Addr loaded_at = 0;
        const char* name =
            dwfl_module_getsym_info(module, i, &symbol, &loaded_at, nullptr, nullptr, nullptr);
        if (name == nullptr || *name == '\0' || !may_be_function(file, symbol)) continue;
        add_borders(symbol);
        if (!is_wanted(symbol)) continue;
        symbols_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, names.keep(name)});
    }
    dwfl_end(session);
}

void SymbolTable::add_borders(const Elf64_Sym& symbol) {
    borders_.push_back(symbol.st_value);
    if (symbol.st_size != 0) borders_.push_back(symbol.st_value + symbol.st_size);
}

void SymbolTable::extend_unsized() {
    auto unsized = [](const Symbol& symbol) { return symbol.low == symbol.high; };
    if (std::none_of(symbols_.begin(), symbols_.end(), unsized)) return;
    // A label within a function is part of it, as Valgrind has it too.
    std::sort(symbols_.begin(), symbols_.end(),
              [](const Symbol& a, const Symbol& b) { return a.low < b.low; });
    Address covered = 0;
    std::erase_if(symbols_, [&](const Symbol& symbol) {
        if (unsized(symbol)) return symbol.low < covered;
        covered = std::max(covered, symbol.high);
        return false;
    });
    std::sort(borders_.begin(), borders_.end());
    for (Symbol& symbol : symbols_) {
        if (!unsized(symbol)) continue;
        auto next = std::upper_bound(borders_.begin(), borders_.end(), symbol.low);
        symbol.high = next != borders_.end() ? *next : UINT64_MAX;
    }
}

std::vector<std::uint32_t> SymbolTable::lookup() {
    extend_unsized();
    // IntervalMap lets the last of equal ranges win.
    std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
        return a.low != b.low ? a.low < b.low : preferred(b.name, a.name);
    });
    IntervalMap map;
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
        map.add(symbols_[i].low, symbols_[i].high, static_cast<std::uint32_t>(i));
    }
    map.seal();
    return map.find_all(addresses_);
}

void SymbolTable::add_all(const ElfFile& object, const ElfFile* debug_file, Names& names) {
    if (const Section* full = object.section(".symtab")) {
        add(object, *full);
    } else if (const Section* separate = debug_file ? debug_file->section(".symtab") : nullptr) {
        add(*debug_file, *separate);
    } else {
        if (const Section* dynamic = object.section(".dynsym")) add(object, *dynamic);
        if (object.section(".gnu_debugdata") != nullptr) add_mini_debug_info(object, names);
    }
}

}  // namespace

std::vector<FunctionName> symbol_names(const ElfFile& object, const ElfFile* debug_file,
                                       std::span<const Address> addresses, Names& names) {
    SymbolTable table(addresses);
    table.add_all(object, debug_file, names);
    std::vector<FunctionName> result;
    result.reserve(addresses.size());
    std::uint32_t last = IntervalMap::kNone;
    FunctionName name;
    for (const std::uint32_t symbol : table.lookup()) {
        if (symbol != last) {
            name = symbol != IntervalMap::kNone ? names.function(table.symbol(symbol).name)
                                                : FunctionName{};
            last = symbol;
        }
        result.push_back(name);
    }
    name_plt_entries(object, addresses, names, result);
    return result;
}

std::vector<FunctionRange> functions_with(const ElfFile& object, const ElfFile* debug_file,
                                          std::span<const Address> addresses, Names& names) {
    SymbolTable table(addresses);
    table.add_all(object, debug_file, names);
    std::vector<FunctionRange> functions;
    std::vector<std::uint32_t> indices = table.lookup();
    std::sort(indices.begin(), indices.end());  // symbols are sorted by address
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    for (const std::uint32_t index : indices) {
        if (index == IntervalMap::kNone) continue;
        const Symbol& symbol = table.symbol(index);
        const Section* const section = object.section_at(symbol.low);
        if (section == nullptr) continue;
        const Address end = section->header.sh_addr + section->header.sh_size;
        functions.push_back({symbol.low, std::min(symbol.high, end), names.readable(symbol.name)});
    }
    return functions;
}

}  // namespace assay::symbols
