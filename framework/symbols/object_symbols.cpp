#include "framework/symbols/object_symbols.h"

#include "framework/symbols/dwarf_resolver.h"
#include "framework/symbols/symbol_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::symbols {
namespace {

// The slot of the global offset table that the entry at `code` jumps through, or 0.

// In all kinds of tables, an entry has one `jmp *disp(%rip)`, after an optional endbr64 and with an
// optional bnd prefix.
Address jump_slot(std::span<const unsigned char> code, Address address) {
    constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    std::size_t at = 0;
    if (code.size() >= 4 && std::memcmp(code.data(), kEndbr64, 4) == 0) at += 4;
    if (at < code.size() && code[at] == 0xf2) ++at;
    if (at + 6 > code.size() || code[at] != 0xff || code[at + 1] != 0x25) return 0;
    std::int32_t displacement;
    std::memcpy(&displacement, &code[at + 2], sizeof displacement);
    return address + at + 6 + static_cast<Address>(std::int64_t{displacement});
}

// An entry has `adrp x16, page` and `ldr x17, [x16, #offset]`, after an optional bti.
Address aarch64_slot(std::span<const std::uint32_t> code, Address address) {
    for (std::size_t at = 0; at + 1 < code.size(); ++at) {
        const std::uint32_t page = code[at], load = code[at + 1];
        if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211) continue;
        const std::uint32_t pages = (page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3);
        const std::int64_t distance = static_cast<std::int32_t>(pages << 11) >> 11;
        return ((address + at * 4) & ~Address{0xfff}) + static_cast<Address>(distance * 4096) +
               (load >> 10 & 0xfff) * 8;
    }
    return 0;
}

// An entry begins with `auipc t3, upper` and `ld t3, lower(t3)`.
Address riscv_slot(std::span<const std::uint32_t> code, Address address) {
    if (code.size() < 2 || (code[0] & 0xfff) != 0xe17 || (code[1] & 0xfffff) != 0xe3e03) return 0;
    const auto upper = static_cast<std::int32_t>(code[0] & 0xfffff000);
    const std::int32_t lower = static_cast<std::int32_t>(code[1]) >> 20;
    return address + static_cast<Address>(std::int64_t{upper} + lower);
}

Address slot_of_entry(Elf64_Half machine, std::span<const unsigned char> code, Address address) {
    if (machine == EM_X86_64) return jump_slot(code, address);
    std::array<std::uint32_t, 4> words{};
    const std::size_t count = std::min(code.size() / sizeof words[0], words.size());
    std::memcpy(words.data(), code.data(), count * sizeof words[0]);
    const std::span first = std::span(words).first(count);
    if (machine == EM_AARCH64) return aarch64_slot(first, address);
    return machine == EM_RISCV ? riscv_slot(first, address) : 0;
}

// Names of functions by their slot of the global offset table.
using Slots = std::unordered_map<Address, std::string_view>;

// Names of functions with variants for several processors. The key is the address of the function
// that selects a variant at the start of the program (STT_GNU_IFUNC).
using Choosers = std::unordered_map<Address, std::string_view>;

// The relocations of slots, by instruction set.
struct SlotRelocations {
    Elf64_Half machine;
    std::size_t indirect;    // the slot gets the result of a function
    std::size_t by_name[2];  // the slot gets the address of a symbol
};
constexpr SlotRelocations kSlotRelocations[] = {
    {EM_X86_64, R_X86_64_IRELATIVE, {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT}},
    {EM_AARCH64, R_AARCH64_IRELATIVE, {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT}},
    {EM_RISCV, R_RISCV_IRELATIVE, {R_RISCV_JUMP_SLOT, R_RISCV_64}},
};
const SlotRelocations* slot_relocations(const ElfFile& object) {
    for (const SlotRelocations& known : kSlotRelocations)
        if (known.machine == object.header().e_machine) return &known;
    return nullptr;
}

void add_choosers(const ElfFile& object, const Section& table, Choosers& choosers) {
    const auto length = [](std::string_view name) { return std::min(name.find('@'), name.size()); };
    for (const Elf64_Sym& symbol : object.symbols(table)) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC || symbol.st_shndx == SHN_UNDEF)
            continue;
        const char* name = elf_strptr(object.elf(), table.header.sh_link, symbol.st_name);
        if (name == nullptr || *name == '\0') continue;
        std::string_view& known = choosers.try_emplace(symbol.st_value, name).first->second;
        if (std::pair(length(name), std::string_view(name)) < std::pair(length(known), known))
            known = name;
    }
}

void add_relocations(const ElfFile& object, const Section& relocations, const Choosers& choosers,
                     Slots& slots) {
    const Elf_Data* data = object.data(relocations);
    if (data == nullptr || data->d_type != ELF_T_RELA) return;
    const std::size_t table = relocations.header.sh_link;  // the number of a section
    std::vector<Elf64_Sym> symbol;
    Elf64_Word names = 0;
    if (table != 0 && table <= object.sections().size()) {
        symbol = object.symbols(object.sections()[table - 1]);
        names = object.sections()[table - 1].header.sh_link;
    }
    const SlotRelocations* const known = slot_relocations(object);
    if (known == nullptr || !object.is_like_own()) return;
    for (const Elf64_Rela& rela : std::span(static_cast<const Elf64_Rela*>(data->d_buf),
                                            data->d_size / sizeof(Elf64_Rela))) {
        std::size_t type = ELF64_R_TYPE(rela.r_info), index = ELF64_R_SYM(rela.r_info);
        if (type == known->indirect) {
            const auto chooser = choosers.find(static_cast<Address>(rela.r_addend));
            if (chooser != choosers.end()) slots[rela.r_offset] = chooser->second;
        }
        if (type != known->by_name[0] && type != known->by_name[1]) continue;
        if (index >= symbol.size()) continue;
        const char* name = elf_strptr(object.elf(), names, symbol[index].st_name);
        if (name != nullptr && *name != '\0') slots[rela.r_offset] = name;
    }
}

Slots read_slots(const ElfFile& object) {
    Choosers choosers;
    for (const Section& section : object.sections()) {
        const Elf64_Word type = section.header.sh_type;
        if (type == SHT_SYMTAB || type == SHT_DYNSYM) add_choosers(object, section, choosers);
    }
    Slots slots;
    for (const Section& section : object.sections()) {
        if (section.header.sh_type == SHT_RELA) add_relocations(object, section, choosers, slots);
    }
    return slots;
}

// 16, or 8 in a .plt.got without endbr64 and in the .plt of a static program. Some linkers do not
// record it.
std::uint64_t entry_bytes(const Section& section) {
    std::uint64_t recorded = section.header.sh_entsize;
    if (recorded == 8 || recorded == 16) return recorded;
    return section.header.sh_addralign == 8 ? 8 : 16;
}

}  // namespace

void name_plt_entries(const ElfFile& object, std::span<const Address> addresses, Names& names,
                      std::vector<FunctionName>& result) {
    Slots slots;
    const Elf64_Half machine = object.header().e_machine;
    for (const Section& section : object.sections()) {
        const Elf64_Shdr& header = section.header;
        Address end = header.sh_addr + header.sh_size;
        // lld puts the table of a static program into .iplt.
        const bool is_table = section.name.starts_with(".plt") || section.name == ".iplt";
        if (!is_table || !any_within(addresses, header.sh_addr, end)) {
            continue;
        }
        const Elf_Data* data = object.data(section);
        if (data == nullptr) continue;
        if (slots.empty()) slots = read_slots(object);
        std::span code(static_cast<const unsigned char*>(data->d_buf), data->d_size);
        std::uint64_t step = entry_bytes(section);
        auto first = std::lower_bound(addresses.begin(), addresses.end(), header.sh_addr);
        for (auto address = first; address != addresses.end() && *address < end; ++address) {
            std::uint64_t start = (*address - header.sh_addr) / step * step;
            if (start >= code.size()) break;
            std::span entry = code.subspan(start, std::min<std::size_t>(step, code.size() - start));
            auto slot = slots.find(slot_of_entry(machine, entry, header.sh_addr + start));
            std::string_view& name =
                result[static_cast<std::size_t>(address - addresses.begin())].readable;
            if (name.empty() && slot != slots.end()) {
                name = names.keep(std::string(names.readable(slot->second)) + "@plt");
            }
        }
    }
}

void KnownLocations::add(std::span<const Address> addresses, std::span<const Location> locations) {
    std::vector<Address> all_addresses;
    std::vector<Location> all_locations;
    all_addresses.reserve(addresses_.size() + addresses.size());
    all_locations.reserve(addresses_.size() + addresses.size());
    std::size_t old = 0, added = 0;
    while (old < addresses_.size() || added < addresses.size()) {
        const bool take_old = added == addresses.size() ||
                              (old < addresses_.size() && addresses_[old] < addresses[added]);
        all_addresses.push_back(take_old ? addresses_[old] : addresses[added]);
        all_locations.push_back(take_old ? locations_[old++] : locations[added++]);
    }
    addresses_ = std::move(all_addresses);
    locations_ = std::move(all_locations);
}

std::vector<std::uint32_t> KnownLocations::find(std::span<const Address> addresses,
                                                std::span<Location> locations) const {
    std::vector<std::uint32_t> others;
    auto at = addresses_.begin();
    for (std::uint32_t i = 0; i < addresses.size(); ++i) {
        if (at != addresses_.end() && *at < addresses[i]) ++at;  // usually enough
        if (at != addresses_.end() && *at < addresses[i])
            at = std::lower_bound(at, addresses_.end(), addresses[i]);
        if (at != addresses_.end() && *at == addresses[i])
            locations[i] = locations_[static_cast<std::size_t>(at - addresses_.begin())];
        else
            others.push_back(i);
    }
    return others;
}

std::vector<Address> KnownLocations::without(std::span<const Address> addresses) const {
    std::vector<Address> others;
    std::set_difference(addresses.begin(), addresses.end(), addresses_.begin(), addresses_.end(),
                        std::back_inserter(others));
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
}

namespace {

std::vector<Address> selected(std::span<const Address> addresses,
                              std::span<const std::uint32_t> indices) {
    std::vector<Address> result;
    result.reserve(indices.size());
    for (const std::uint32_t index : indices) result.push_back(addresses[index]);
    return result;
}

// Takes known locations, and calls `resolve` for the other addresses.
template <typename Resolve>
std::vector<Location> complete(const KnownLocations& known, std::span<const Address> addresses,
                               Resolve resolve) {
    std::vector<Location> locations(addresses.size());
    const std::vector<std::uint32_t> others = known.find(addresses, locations);
    if (others.empty()) return locations;
    const std::vector<Location> found = resolve(selected(addresses, others));
    for (std::size_t i = 0; i < others.size(); ++i) locations[others[i]] = found[i];
    return locations;
}

std::string address_name(const std::string& binary, Address address) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), address, 16).ptr;
    return binary + "+0x" + std::string(digits.begin(), end);
}

}  // namespace

void ObjectSymbols::open() {
    const std::lock_guard lock(mutex_);
    pool_.open(path_);
}

void ObjectSymbols::learn(std::span<const Address> addresses) {
    const std::lock_guard lock(mutex_);
    const std::vector<Address> added = learned_.without(addresses);
    if (added.empty() || !is_readable()) return;
    std::unique_ptr<DebugInfo> debug = pool_.take(path_);
    learned_.add(added, locate(*debug, added));
    pool_.give_back(path_, std::move(debug));
}

std::vector<Location> ObjectSymbols::resolve(std::span<const Address> addresses,
                                             std::vector<Address>& asked) {
    const std::lock_guard lock(mutex_);
    if (learned_.empty()) {
        asked.assign(addresses.begin(), addresses.end());
        return look_up(addresses);
    }
    return complete(learned_, addresses, [&](std::vector<Address> others) {
        asked = std::move(others);
        return look_up(asked);
    });
}

std::set<std::string> ObjectSymbols::take_missing_files() {
    const std::lock_guard lock(mutex_);
    return std::exchange(missing_files_, {});
}

std::vector<Location> ObjectSymbols::look_up(std::span<const Address> addresses) {
    if (!is_readable()) return std::vector<Location>(addresses.size(), frames_.unknown());
    return locate(*pool_.take(path_), addresses);
}

std::vector<Location> ObjectSymbols::locate(const DebugInfo& debug,
                                            std::span<const Address> addresses) {
    std::vector<Location> locations(addresses.size(), frames_.unknown());
    const std::vector<FunctionName> functions =
        symbol_names(*file_, debug.separate_file(), addresses, frames_.names());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const bool repeated = i > 0 && functions[i].is(functions[i - 1]);
        locations[i] = repeated ? locations[i - 1] : frames_.without_source(functions[i]);
    }
    if (debug.dwarf() != nullptr) {
        missing_files_.merge(resolve_with_dwarf(debug.dwarf(), file_->code_start(), addresses,
                                                functions, frames_, locations));
    }
    name_by_address(addresses, locations);
    return locations;
}

void ObjectSymbols::name_by_address(std::span<const Address> addresses,
                                    std::vector<Location>& locations) {
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < locations.size(); ++i)
        if (locations[i].frames.back().function == kUnknown) indices.push_back(i);
    if (indices.empty()) return;
    const auto starts = unwind_functions(*file_, selected(addresses, indices));
    const std::string binary = std::filesystem::path(path_).filename().string();
    Location before, named;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (!starts[i]) continue;
        Location& location = locations[indices[i]];
        const bool repeated =
            i > 0 && starts[i] == starts[i - 1] && location.frames.data() == before.frames.data();
        if (!repeated) {
            before = location;
            std::vector<Frame> frames(location.frames.begin(), location.frames.end());
            frames.back().function = frames_.names().keep(address_name(binary, *starts[i]));
            named = frames_.keep(frames);
        }
        location = named;
    }
}

}  // namespace assay::symbols
