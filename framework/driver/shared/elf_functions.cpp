#include "framework/driver/shared/elf_functions.h"

#include "framework/support/plain_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace assay::driver {
namespace {

constexpr unsigned char kOwnByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

class ElfContent {
  public:
    explicit ElfContent(int descriptor) : descriptor_(descriptor) {
        struct stat state {};
        if (fstat(descriptor, &state) == 0) size_ = static_cast<std::uint64_t>(state.st_size);
    }

    // Returns `count` elements at `offset`, or no elements if the file does not have all of them.
    template <typename T>
    std::vector<T> read(std::uint64_t offset, std::uint64_t count) const {
        if (offset > size_ || count > (size_ - offset) / sizeof(T)) return {};
        std::vector<T> out(count);
        const std::size_t bytes = count * sizeof(T);
        const ssize_t got = pread(descriptor_, out.data(), bytes, static_cast<off_t>(offset));
        if (got != static_cast<ssize_t>(bytes)) out.clear();
        return out;
    }

  private:
    int descriptor_;
    std::uint64_t size_ = 0;
};

struct Elf32 {
    using Header = Elf32_Ehdr;
    using Segment = Elf32_Phdr;
    using Section = Elf32_Shdr;
    using Symbol = Elf32_Sym;
};
struct Elf64 {
    using Header = Elf64_Ehdr;
    using Segment = Elf64_Phdr;
    using Section = Elf64_Shdr;
    using Symbol = Elf64_Sym;
};

// ELF32_ST_TYPE and ELF64_ST_TYPE are the same.
template <typename Symbol>
bool is_function(const Symbol& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
}

// The lowest bit of Arm's addresses tells Thumb code.
template <typename Symbol>
std::uint64_t begin_of(const Symbol& symbol, std::uint16_t machine) {
    return symbol.st_value & ~std::uint64_t{machine == EM_ARM ? 1U : 0U};
}

template <typename Elf>
void visit_functions(const ElfContent& file,
                     const std::function<void(const char*, std::uint64_t)>& visit) {
    const auto headers = file.read<typename Elf::Header>(0, 1);
    if (headers.empty()) return;
    const auto& header = headers[0];
    const auto segments = file.read<typename Elf::Segment>(header.e_phoff, header.e_phnum);
    const auto sections = file.read<typename Elf::Section>(header.e_shoff, header.e_shnum);
    for (const auto& table : sections) {
        const bool symbols = table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM;
        if (!symbols || table.sh_link >= sections.size()) continue;
        auto names =
            file.read<char>(sections[table.sh_link].sh_offset, sections[table.sh_link].sh_size);
        names.push_back('\0');
        for (const auto& symbol : file.read<typename Elf::Symbol>(
                 table.sh_offset, table.sh_size / sizeof(typename Elf::Symbol))) {
            if (!is_function(symbol) || symbol.st_name >= names.size()) continue;
            const std::uint64_t begin = begin_of(symbol, header.e_machine);
            for (const auto& segment : segments)
                if (segment.p_type == PT_LOAD && begin >= segment.p_vaddr &&
                    begin - segment.p_vaddr < segment.p_filesz)
                    visit(&names[symbol.st_name], begin - segment.p_vaddr + segment.p_offset);
        }
    }
}

}  // namespace

void for_each_function(int descriptor,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit) {
    const ElfContent file(descriptor);
    const auto ident = file.read<unsigned char>(0, EI_NIDENT);
    if (ident.empty() || std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0 ||
        ident[EI_DATA] != kOwnByteOrder)
        return;
    if (ident[EI_CLASS] == ELFCLASS64) visit_functions<Elf64>(file, visit);
    if (ident[EI_CLASS] == ELFCLASS32) visit_functions<Elf32>(file, visit);
}

namespace {

std::string without_copy_suffix(std::string_view symbol) {
    for (const std::string_view suffix : {".constprop.", ".isra."})
        symbol = symbol.substr(0, symbol.find(suffix));
    return std::string(symbol);
}

// "" if the symbol is not the name of a C++ function.
std::string demangled(const std::string& symbol) {
    if (!symbol.starts_with("_Z")) return {};
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && text ? text.get() : std::string();
}

bool fits(const std::string& pattern, const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

FunctionPatterns::FunctionPatterns(std::string_view patterns) {
    while (!patterns.empty()) {
        const std::string_view pattern = patterns.substr(0, patterns.find('\n'));
        if (!pattern.empty()) patterns_.push_back({std::string(pattern)});
        patterns.remove_prefix(std::min(pattern.size() + 1, patterns.size()));
    }
}

bool FunctionPatterns::match(std::string_view symbol) {
    const std::string plain = without_copy_suffix(symbol);
    const std::string readable = demangled(plain);
    bool any = false;
    for (Pattern& pattern : patterns_) {
        const bool is_wanted =
            fits(pattern.text, plain) || any_spelling(readable, [&](std::string_view name) {
                return fits(pattern.text, std::string(name));
            });
        if (is_wanted) pattern.matched = any = true;
    }
    return any;
}

std::vector<std::string> FunctionPatterns::unmatched() const {
    std::vector<std::string> out;
    for (const Pattern& pattern : patterns_)
        if (!pattern.matched) out.push_back(pattern.text);
    return out;
}

void NamedFunctions::mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                            int descriptor) {
    if (empty()) return;
    for_each_function(descriptor, [&](const char* symbol, std::uint64_t place) {
        if (place < offset || place - offset >= end - start || !patterns_.match(symbol)) return;
        entries_.insert(start + (place - offset));
    });
}

void NamedFunctions::unmapped(std::uint64_t start, std::uint64_t end) {
    entries_.erase(entries_.lower_bound(start), entries_.lower_bound(end));
}

}  // namespace assay::driver
