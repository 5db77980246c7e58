#include "framework/symbols/data_symbols.h"

#include "framework/symbols/debug_image.h"
#include "framework/symbols/debug_info.h"
#include "framework/symbols/image_cache.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace assay::symbols {
namespace {

// Orders symbols by address. Several names of one variable are ordered by descending size, then by
// the number of leading underscores, by length, and by the alphabet.
auto rank(const DataSymbol& symbol) {
    const std::size_t underscores =
        std::min(symbol.name.find_first_not_of('_'), symbol.name.size());
    return std::tuple(symbol.start, UINT64_MAX - symbol.size, underscores, symbol.name.size(),
                      std::string_view(symbol.name));
}

// `symbols` are sorted by address.
const DataSymbol* containing(const std::vector<DataSymbol>& symbols, Address address) {
    const auto behind = std::upper_bound(
        symbols.begin(), symbols.end(), address,
        [](Address wanted, const DataSymbol& symbol) { return wanted < symbol.start; });
    if (behind == symbols.begin()) return nullptr;
    const DataSymbol& last = *std::prev(behind);
    return address - last.start < last.size ? &last : nullptr;
}

// Removes symbols that begin within another one. A symbol without a size extends to the next
// symbol, or to the end of its section.
void separate(std::vector<DataSymbol>& symbols, const std::vector<DataSymbol>& sections) {
    std::sort(symbols.begin(), symbols.end(),
              [](const DataSymbol& a, const DataSymbol& b) { return rank(a) < rank(b); });
    std::vector<DataSymbol> kept;
    for (DataSymbol& symbol : symbols) {
        if (!kept.empty() && kept.back().size == 0 && kept.back().start != symbol.start)
            kept.back().size = symbol.start - kept.back().start;
        if (!kept.empty() && (symbol.start - kept.back().start < kept.back().size ||
                              symbol.start == kept.back().start))
            continue;
        kept.push_back(std::move(symbol));
    }
    for (DataSymbol& symbol : kept) {
        symbol.size = std::min(symbol.size, UINT64_MAX - symbol.start);  // in damaged files
        const DataSymbol* section = containing(sections, symbol.start);
        if (section == nullptr) continue;
        const Address room = section->start + section->size - symbol.start;
        symbol.size = symbol.size == 0 ? room : std::min(symbol.size, room);
    }
    symbols = std::move(kept);
}

std::string readable_name(const StaticVariable& variable) {
    return variable.function.empty() ? variable.name : variable.function + "::" + variable.name;
}

std::pair<bool, Address> place(const StaticVariable& variable) {
    return {variable.is_thread_local, variable.address};
}

// Compilers number variables of the same name: `name.0`, `name.lto_priv.1`. Names of C++ and Rust
// already contain their scopes.
bool is_named(const DataSymbol& symbol, const StaticVariable& variable) {
    const std::string_view name = symbol.name;
    return name.starts_with(variable.name) &&
           (name.size() == variable.name.size() || name[variable.name.size()] == '.');
}

// `variables` are those at the place of the symbol.
void describe(DataSymbol& symbol, std::span<const StaticVariable> variables) {
    const auto named =
        std::find_if(variables.begin(), variables.end(),
                     [&](const StaticVariable& variable) { return is_named(symbol, variable); });
    if (named != variables.end()) symbol.name = readable_name(*named);
    symbol.type = named != variables.end() ? named->type : variables.front().type;
}

}  // namespace

std::unique_ptr<DataSymbols> DataSymbols::open(const std::string& path,
                                               const std::string& debug_root) {
    std::unique_ptr<ElfFile> file = ElfFile::open(path);
    if (file == nullptr) return nullptr;
    const std::unique_ptr<ElfFile> debug_file =
        file->section(".symtab") ? nullptr : find_debug_file(*file, debug_root);
    file->close_descriptor();
    std::unique_ptr<DataSymbols> symbols(new DataSymbols(std::move(file), debug_root));
    symbols->read(debug_file.get());
    return symbols;
}

void DataSymbols::read(const ElfFile* debug_file) {
    add_sections();
    Names names;
    for (const char* table : {".symtab", ".dynsym"}) {
        if (const Section* own = file_->section(table)) add_symbols(*file_, *own, names);
        const Section* separate = debug_file ? debug_file->section(table) : nullptr;
        if (separate != nullptr) add_symbols(*debug_file, *separate, names);
    }
    // Debug information is slow to read, and .symtab already has all variables.
    if (!file_->section(".symtab") && !(debug_file && debug_file->section(".symtab")))
        add_debug_information(static_variables({}));
    separate(variables_, sections_);
    separate(thread_locals_, {});
}

const DataSymbol* DataSymbols::find_thread_local(std::uint64_t offset) const {
    return containing(thread_locals_, offset);
}

DataSymbols::ThreadLocalBlock DataSymbols::thread_local_block() const {
    std::size_t count = 0;
    if (elf_getphdrnum(file_->elf(), &count) != 0) return {};
    GElf_Phdr header;
    for (std::size_t i = 0; i < count; ++i)
        if (gelf_getphdr(file_->elf(), static_cast<int>(i), &header) != nullptr &&
            header.p_type == PT_TLS)
            return {header.p_vaddr, header.p_memsz, header.p_align};
    return {};
}

void DataSymbols::add_symbols(const ElfFile& file, const Section& table, Names& names) {
    for (const Elf64_Sym& symbol : file.symbols(table)) {
        const bool is_thread_local = ELF64_ST_TYPE(symbol.st_info) == STT_TLS;
        if ((ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT && !is_thread_local) ||
            symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS)
            continue;
        const char* name = elf_strptr(file.elf(), table.header.sh_link, symbol.st_name);
        if (name == nullptr || *name == '\0') continue;
        (is_thread_local ? thread_locals_ : variables_)
            .push_back(
                {symbol.st_value, symbol.st_size, std::string(names.readable(name)), false, {}});
    }
}

void DataSymbols::add_sections() {
    for (const Section& section : file_->sections()) {
        const bool loaded = section.header.sh_flags & SHF_ALLOC && section.header.sh_size != 0;
        // The addresses of .tbss overlap those of other sections.
        if (!loaded || (section.header.sh_flags & SHF_TLS && section.header.sh_type == SHT_NOBITS))
            continue;
        sections_.push_back(
            {section.header.sh_addr, section.header.sh_size, std::string(section.name), true, {}});
    }
    separate(sections_, {});
}

std::vector<StaticVariable> DataSymbols::static_variables(const std::string& cache_folder) const {
    if (file_->is_replaced()) return {};
    const DebugInfo debug(file_->path(), debug_root_, ImageCache(cache_folder));
    if (debug.dwarf() == nullptr) return {};
    const ThreadLocalBlock block = thread_local_block();
    return read_static_variables(debug.dwarf(), {block.address, block.address + block.bytes});
}

void DataSymbols::add_debug_information(const std::vector<StaticVariable>& variables) {
    for (const StaticVariable& variable : variables) {
        if (variable.size == 0) continue;
        // Variables that the linker has dropped are at 0.
        if (!variable.is_thread_local && containing(sections_, variable.address) == nullptr)
            continue;
        (variable.is_thread_local ? thread_locals_ : variables_)
            .push_back(
                {variable.address, variable.size, readable_name(variable), false, variable.type});
    }
}

void DataSymbols::read_debug_information(const std::string& cache_folder) {
    const std::vector<StaticVariable> known = static_variables(cache_folder);
    const auto describe_all = [&](std::vector<DataSymbol>& symbols, bool are_thread_local) {
        auto first = known.begin();
        for (DataSymbol& symbol : symbols) {
            const std::pair wanted(are_thread_local, symbol.start);
            while (first != known.end() && place(*first) < wanted) ++first;
            auto end = first;
            while (end != known.end() && place(*end) == wanted) ++end;
            if (first != end) describe(symbol, {first, end});
        }
    };
    describe_all(variables_, false);
    describe_all(thread_locals_, true);
}

std::optional<DataSymbols::Found> DataSymbols::find(Address address) const {
    if (const DataSymbol* variable = containing(variables_, address))
        return Found{variable, variable->start, variable->start + variable->size};
    const DataSymbol* section = containing(sections_, address);
    if (section == nullptr) return std::nullopt;
    Found found{section, section->start, section->start + section->size};
    const auto next = std::upper_bound(
        variables_.begin(), variables_.end(), address,
        [](Address wanted, const DataSymbol& symbol) { return wanted < symbol.start; });
    if (next != variables_.end()) found.end = std::min(found.end, next->start);
    if (next != variables_.begin()) {
        const DataSymbol& before = *std::prev(next);
        found.start = std::max(found.start, before.start + before.size);
    }
    return found;
}

Address DataSymbols::address_of_offset(std::uint64_t file_offset) const {
    return file_->address_of_offset(file_offset);
}

}  // namespace assay::symbols
