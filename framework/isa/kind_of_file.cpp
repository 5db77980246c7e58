// Addenda to, and Errata in, the ABI for the Arm Architecture, "Build attributes", tell the layout
// of the section .ARM.attributes.
#include "framework/isa/architecture.h"

#include <elf.h>
#include <unistd.h>
#include <algorithm>
#include <string>
#include <string_view>

namespace assay::isa {
namespace {

template <typename Type>
bool read_at(int descriptor, std::uint64_t offset, Type& into) {
    return pread(descriptor, &into, sizeof into, static_cast<off_t>(offset)) == sizeof into;
}

// Reads numbers and texts from front to back. The end gives zeros and empty texts.
class Attributes {
  public:
    explicit Attributes(std::string_view left) : left_(left) {}

    bool at_end() const { return left_.empty(); }
    std::uint32_t word() {
        std::uint32_t value = 0;
        for (unsigned i = 0; i < sizeof value; ++i) value |= std::uint32_t{byte()} << 8 * i;
        return value;
    }
    std::uint64_t number() {  // LEB128
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint8_t next = byte();
            value |= std::uint64_t{next & 0x7fU} << shift;
            if (!(next & 0x80)) break;
        }
        return value;
    }
    std::string_view text() {
        const std::string_view found = left_.substr(0, left_.find('\0'));
        left_.remove_prefix(std::min(left_.size(), found.size() + 1));
        return found;
    }
    std::uint8_t byte() {
        if (left_.empty()) return 0;
        const auto value = static_cast<std::uint8_t>(left_.front());
        left_.remove_prefix(1);
        return value;
    }

  private:
    std::string_view left_;
};

// The attributes of the whole file come first.
bool has_profile_m(std::string_view section) {
    constexpr std::uint64_t kOfFile = 1, kRawName = 4, kName = 5, kProfile = 7, kCompatibility = 32,
                            kConformance = 67;
    Attributes attributes(section);
    if (attributes.byte() != 'A') return false;
    attributes.word();
    if (attributes.text() != "aeabi" || attributes.number() != kOfFile) return false;
    attributes.word();
    while (!attributes.at_end()) {
        const std::uint64_t tag = attributes.number();
        if (tag == kProfile) return attributes.number() == 'M';
        if (tag != kRawName && tag != kName && tag != kConformance) attributes.number();
        if (tag == kRawName || tag == kName || tag == kConformance || tag == kCompatibility)
            attributes.text();
    }
    return false;
}

bool is_of_microcontroller(int descriptor, const Elf32_Ehdr& header) {
    constexpr std::uint32_t kMostBytes = 4096;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf32_Shdr section;
        if (!read_at(descriptor, header.e_shoff + std::uint64_t{i} * sizeof section, section))
            return false;
        if (section.sh_type != SHT_ARM_ATTRIBUTES) continue;
        std::string content(std::min(section.sh_size, kMostBytes), '\0');
        const ssize_t got = pread(descriptor, content.data(), content.size(),
                                  static_cast<off_t>(section.sh_offset));
        content.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return has_profile_m(content);
    }
    return false;
}

}  // namespace

ElfKind kind_of_file(int descriptor) {
    Elf32_Ehdr header{};  // begins like that of a 64-bit file
    if (!read_at(descriptor, 0, header) ||
        std::string_view(reinterpret_cast<const char*>(header.e_ident), SELFMAG) != ELFMAG)
        return {};
    ElfKind kind{header.e_machine, header.e_ident[EI_CLASS], header.e_ident[EI_DATA]};
    if (kind.byte_order == ELFDATA2MSB) kind.machine = __builtin_bswap16(kind.machine);
    kind.microcontroller = kind == ElfKind{EM_ARM, ELFCLASS32, ELFDATA2LSB} &&
                           is_of_microcontroller(descriptor, header);
    return kind;
}

}  // namespace assay::isa
