#include "framework/symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace assay::symbols {

namespace {

// In nanoseconds.
std::int64_t change_time(const struct stat& status) {
    return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

std::string to_hexadecimal(std::string_view bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (char c : bytes) {
        auto byte = static_cast<unsigned char>(c);
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

std::unique_ptr<ElfFile> ElfFile::open(const std::string& path) {
    elf_version(EV_CURRENT);
    std::unique_ptr<ElfFile> file(new ElfFile);
    file->path_ = path;
    bool opened = path == kVdsoPath ? file->open_vdso() : file->open_file(path);
    if (!opened || !file->read_header()) return nullptr;
    file->read_sections();
    file->read_segments();
    file->read_build_id();
    return file;
}

ElfFile::~ElfFile() {
    elf_end(elf_);
    if (descriptor_ >= 0) close(descriptor_);
}

bool ElfFile::open_file(const std::string& path) {
    // O_NONBLOCK: the path may lead to a FIFO or a device by now.
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0 || fstat(descriptor_, &status_) != 0) return false;
    elf_ = elf_begin(descriptor_, ELF_C_READ_MMAP, nullptr);
    return elf_ != nullptr;
}

void ElfFile::close_descriptor() {
    if (descriptor_ >= 0 && elf_cntl(elf_, ELF_C_FDREAD) == 0)
        close(std::exchange(descriptor_, -1));
}

// The section header table gives the size of the image, because the kernel's linker puts it last.
bool ElfFile::open_vdso() {
    auto* image = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
    if (image == nullptr) return false;
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    std::size_t size = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
    vdso_.assign(image, image + size);
    elf_ = elf_memory(vdso_.data(), vdso_.size());
    return elf_ != nullptr;
}

bool ElfFile::read_header() {
    return elf_kind(elf_) == ELF_K_ELF && gelf_getehdr(elf_, &header_) != nullptr;
}

void ElfFile::read_sections() {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf_, &names) != 0) return;
    for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf_, scn)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(scn, &header) == nullptr) return;
        const char* name = elf_strptr(elf_, names, header.sh_name);
        sections_.push_back({scn, header, name != nullptr ? name : ""});
    }
}

const Section* ElfFile::section(std::string_view name) const {
    for (const Section& section : sections_) {
        if (section.name == name) return &section;
    }
    return nullptr;
}

const Section* ElfFile::section_at(Address address) const {
    for (const Section& section : sections_) {
        const Elf64_Shdr& header = section.header;
        bool loaded = (header.sh_flags & SHF_ALLOC) != 0 && (header.sh_flags & SHF_TLS) == 0;
        if (loaded && address - header.sh_addr < header.sh_size) return &section;
    }
    return nullptr;
}

const Elf_Data* ElfFile::data(const Section& section) const {
    if (section.header.sh_type == SHT_NOBITS) return nullptr;
    const Elf_Data* data = elf_getdata(section.handle, nullptr);
    return data != nullptr && data->d_buf != nullptr ? data : nullptr;
}

std::vector<Elf64_Sym> ElfFile::symbols(const Section& table) const {
    Elf_Data* const data = elf_getdata(table.handle, nullptr);
    if (data == nullptr || data->d_buf == nullptr || data->d_type != ELF_T_SYM) return {};
    if (header_.e_ident[EI_CLASS] == ELFCLASS64) {
        const auto* const symbols = static_cast<const Elf64_Sym*>(data->d_buf);
        return {symbols, symbols + data->d_size / sizeof(Elf64_Sym)};
    }
    std::vector<Elf64_Sym> symbols;
    Elf64_Sym symbol;
    while (gelf_getsym(data, static_cast<int>(symbols.size()), &symbol) != nullptr) {
        // The lowest bit says that the function is in Thumb code.
        if (header_.e_machine == EM_ARM && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
            symbol.st_value &= ~Elf64_Addr{1};
        symbols.push_back(symbol);
    }
    return symbols;
}

bool ElfFile::holds_code(std::size_t index) const {
    // sections_ leaves out section 0.
    return index != 0 && index <= sections_.size() &&
           (sections_[index - 1].header.sh_flags & SHF_EXECINSTR) != 0;
}

void ElfFile::read_build_id() {
    const void* bytes = nullptr;
    ssize_t size = dwelf_elf_gnu_build_id(elf_, &bytes);
    if (size > 0)
        build_id_ =
            to_hexadecimal({static_cast<const char*>(bytes), static_cast<std::size_t>(size)});
}

std::string ElfFile::version() const {
    if (build_id_.empty() || status_.st_ino == 0) return {};
    return build_id_ + "-" + std::to_string(status_.st_size) + "-" +
           std::to_string(change_time(status_));
}

bool ElfFile::is_replaced() const {
    struct stat now {};
    return stat(path_.c_str(), &now) == 0 &&
           (!is_same_file(now, status_) || now.st_size != status_.st_size ||
            change_time(now) != change_time(status_));
}

bool ElfFile::is_overwritten() const {
    struct stat now {};
    return stat(path_.c_str(), &now) == 0 && is_same_file(now, status_) &&
           now.st_size != status_.st_size;
}

void ElfFile::read_segments() {
    std::size_t count = 0;
    if (elf_getphdrnum(elf_, &count) != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf_, static_cast<int>(i), &segment) == nullptr) return;
        if (segment.p_type == PT_LOAD) segments_.push_back(segment);
    }
}

Address ElfFile::code_start() const {
    Address lowest = UINT64_MAX;
    for (const Elf64_Phdr& segment : segments_) {
        if ((segment.p_flags & PF_X) != 0) lowest = std::min(lowest, segment.p_vaddr);
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

// Mappings start at page boundaries, so the mapping of a segment begins up to a page before the
// segment. With lld, segments share pages of the file: the page that ends the read-only segment
// also starts the mapping of the code. Executable segments go first, because callers ask for
// mappings of code.
Address ElfFile::address_of_offset(std::uint64_t file_offset) const {
    std::vector<Elf64_Phdr> loadable = segments_;
    // The kernel maps whole pages, and parts of an emulated machine can share a page.
    const auto is_part = [&](const Elf64_Phdr& segment) {
        return file_offset >= segment.p_offset && file_offset - segment.p_offset < segment.p_filesz;
    };
    const auto executable = std::stable_partition(
        loadable.begin(), loadable.end(),
        [](const Elf64_Phdr& segment) { return (segment.p_flags & PF_X) != 0; });
    std::stable_partition(loadable.begin(), executable, is_part);
    // The size of the pages is not known. With smaller ones, the answer is more certain.
    for (const std::uint64_t page : {4096, 16384, 65536}) {
        for (const Elf64_Phdr& segment : loadable) {
            const std::uint64_t start = segment.p_offset & ~(page - 1);
            if (file_offset >= start &&
                file_offset - start < segment.p_offset - start + segment.p_filesz)
                return segment.p_vaddr - segment.p_offset + file_offset;
        }
    }
    return 0;
}

}  // namespace assay::symbols
