#include "framework/symbols/symbol_table.h"

#include "framework/symbols/interval_map.h"
#include "framework/symbols/object_symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

namespace assay::symbols {
namespace {

struct Symbol {
    Address low, high;  // equal if the size is not recorded
    std::string_view name;
};

// True if Valgrind 3.19 prefers `a` to `b` among symbols of the same range (prefersym in its reader
// of debug information). The shortest name without its version wins, then one that has a version,
// then the first in the alphabet. glibc gives most of its functions several names.
bool preferred(std::string_view a, std::string_view b) {
    std::size_t length_a = std::min(a.find('@'), a.size());
    std::size_t length_b = std::min(b.find('@'), b.size());
    if (length_a != length_b) return length_a < length_b;
    bool versioned_a = length_a < a.size(), versioned_b = length_b < b.size();
    if (versioned_a != versioned_b) return versioned_a;
    return a < b;
}

// The symbols for `addresses`. A symbol without a size extends to the next function, or to the end
// of its section.
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
    static bool is_mapping_symbol(std::string_view name);
    bool is_wanted(const Elf64_Sym& symbol) const;
    void add_borders(const Elf64_Sym& symbol);
    void extend_unsized();

    std::span<const Address> addresses_;
    std::vector<Symbol> symbols_;
    std::vector<Address> borders_;  // starts and ends of all functions, and ends of sections
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

// On Arm and RISC-V, symbols such as $x and $d mark the begins of code and data (ELF for the Arm
// 64-bit Architecture, "Mapping symbols"). They are no names, and neither are the assembler's own
// labels, which linkers keep on RISC-V.
bool SymbolTable::is_mapping_symbol(std::string_view name) {
    if (name.starts_with(".L")) return true;
    if (name.size() < 2 || name[0] != '$' || std::string_view("adtx").find(name[1]) == name.npos)
        return false;
    name.remove_prefix(2);
    return name.empty() || name[0] == '.' || name.starts_with("rv");
}

bool SymbolTable::is_wanted(const Elf64_Sym& symbol) const {
    if (symbol.st_size == 0) return true;
    return any_within(addresses_, symbol.st_value, symbol.st_value + symbol.st_size);
}

void SymbolTable::add(const ElfFile& file, const Section& table) {
    for (const Elf64_Sym& symbol : file.symbols(table)) {
        if (!may_be_function(file, symbol)) continue;
        const char* name = elf_strptr(file.elf(), table.header.sh_link, symbol.st_name);
        if (name != nullptr && is_mapping_symbol(name)) continue;
        add_borders(symbol);
        if (!is_wanted(symbol) || name == nullptr || *name == '\0') continue;
        symbols_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, name});
    }
    for (const Section& section : file.sections()) {
        // Sections that are not loaded have the address 0.
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
    // A label within a function is part of the function, as in Valgrind.
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
    // Among equal ranges, the last one wins in IntervalMap.
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

namespace {

// Encodings of addresses (DW_EH_PE_*). The low four bits give the size and the sign.
constexpr unsigned kFormat = 0x0f, kRelation = 0xf0;

std::optional<std::size_t> bytes_of(unsigned encoding) {
    switch (encoding & kFormat) {
        case DW_EH_PE_udata2:
        case DW_EH_PE_sdata2:
            return 2;
        case DW_EH_PE_udata4:
        case DW_EH_PE_sdata4:
            return 4;
        case DW_EH_PE_absptr:
        case DW_EH_PE_udata8:
        case DW_EH_PE_sdata8:
            return 8;
        default:
            return std::nullopt;
    }
}

// The number at the start of `bytes`. The base of a relative number is not added.
std::optional<std::uint64_t> encoded_number(std::span<const unsigned char> bytes,
                                            unsigned encoding) {
    const std::optional<std::size_t> size = bytes_of(encoding);
    if (!size || bytes.size() < *size) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), *size);
    const bool is_signed = (encoding & DW_EH_PE_signed) != 0;
    if (is_signed && (value >> (8 * *size - 1)) != 0 && *size < sizeof value)
        value |= UINT64_MAX << (8 * *size);
    return value;
}

// The encoding of addresses in entries that refer to `common`.
std::optional<unsigned> encoding_of(const Dwarf_CIE& common) {
    const std::string_view augmentation = common.augmentation;
    if (augmentation.empty()) return DW_EH_PE_absptr;
    if (augmentation.front() != 'z') return std::nullopt;
    std::span data(common.augmentation_data, common.augmentation_data_size);
    for (const char kind : augmentation.substr(1)) {
        if (kind == 'S' || kind == 'B') continue;
        if (data.empty() || (kind != 'R' && kind != 'P' && kind != 'L')) return std::nullopt;
        if (kind == 'R') return data.front();
        const std::size_t pointer = kind == 'P' ? bytes_of(data.front()).value_or(data.size()) : 0;
        if (pointer >= data.size()) return std::nullopt;
        data = data.subspan(1 + pointer);
    }
    return DW_EH_PE_absptr;
}

bool is_linkage_table(const Section* section) {
    return section != nullptr && (section->name.starts_with(".plt") || section->name == ".iplt");
}

class UnwindTable {
  public:
    explicit UnwindTable(const ElfFile& object) : object_(object) {
        const Section* const section = object.section(".eh_frame");
        const Elf_Data* const data = section != nullptr ? object.data(*section) : nullptr;
        if (data != nullptr) read(section->header.sh_addr, *data);
        map_.seal();
    }

    std::vector<std::optional<Address>> find(std::span<const Address> addresses) const {
        std::vector<std::optional<Address>> found;
        found.reserve(addresses.size());
        for (const std::uint32_t index : map_.find_all(addresses))
            found.push_back(index != IntervalMap::kNone ? std::optional(starts_[index])
                                                        : std::nullopt);
        return found;
    }

  private:
    void read(Address section, const Elf_Data& data) {
        const auto* const ident =
            reinterpret_cast<const unsigned char*>(elf_getident(object_.elf(), nullptr));
        std::map<Dwarf_Off, std::optional<unsigned>> encodings;  // by offset of the CIE
        Dwarf_CFI_Entry entry;
        Dwarf_Off next = 0;
        for (Dwarf_Off at = 0;
             dwarf_next_cfi(ident, const_cast<Elf_Data*>(&data), true, at, &next, &entry) == 0 &&
             next > at;
             at = next) {
            if (dwarf_cfi_cie_p(&entry)) {
                encodings[at] = encoding_of(entry.cie);
                continue;
            }
            const auto common = encodings.find(entry.fde.CIE_pointer);
            if (common == encodings.end() || !common->second) continue;
            const std::span bytes(entry.fde.start, entry.fde.end);
            const auto offset = entry.fde.start - static_cast<const unsigned char*>(data.d_buf);
            add(bytes, section + static_cast<Address>(offset), *common->second);
        }
    }

    // `at` is the address of `bytes`.
    void add(std::span<const unsigned char> bytes, Address at, unsigned encoding) {
        const unsigned relation = encoding & kRelation;
        if (relation != DW_EH_PE_absptr && relation != DW_EH_PE_pcrel) return;
        const auto low = encoded_number(bytes, encoding);
        if (!low) return;
        const auto size =
            encoded_number(bytes.subspan(*bytes_of(encoding)), encoding & ~DW_EH_PE_signed);
        const Address start = relation == DW_EH_PE_pcrel ? at + *low : *low;
        if (!size || *size == 0 || *size > UINT64_MAX - start) return;
        if (is_linkage_table(object_.section_at(start))) return;
        map_.add(start, start + *size, static_cast<std::uint32_t>(starts_.size()));
        starts_.push_back(start);
    }

    const ElfFile& object_;
    IntervalMap map_;
    std::vector<Address> starts_;
};

}  // namespace

std::vector<std::optional<Address>> unwind_functions(const ElfFile& object,
                                                     std::span<const Address> addresses) {
    return UnwindTable(object).find(addresses);
}

}  // namespace assay::symbols
