#include "framework/symbols/unwind_functions.h"

#include "framework/symbols/interval_map.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

namespace assay::symbols {
namespace {

// How an address is written (DW_EH_PE_*): its low four bits are the size, with a sign or without.
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

// The number at the beginning of `bytes`, without what it is relative to.
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

// How the entries that share `common` write addresses.
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
        std::map<Dwarf_Off, std::optional<unsigned>> encodings;  // by offset of the common entry
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

    // `bytes` lie at the address `at`.
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
