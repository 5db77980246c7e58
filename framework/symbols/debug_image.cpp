#include "framework/symbols/debug_image.h"

#include <elfutils/libdwelf.h>
#include <libdeflate.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbols {
namespace {

namespace fs = std::filesystem;

fs::path build_id_path(const std::string& debug_root, const std::string& build_id) {
    return fs::path(debug_root) / ".build-id" / build_id.substr(0, 2) /
           (build_id.substr(2) + ".debug");
}

bool checksum_is(const ElfFile& file, GElf_Word expected) {
    std::size_t size = 0;
    const char* bytes = elf_rawfile(file.elf(), &size);
    if (bytes == nullptr) return false;
    return crc32_z(0, reinterpret_cast<const Bytef*>(bytes), size) == expected;
}

std::unique_ptr<ElfFile> open_if_matching(const fs::path& path, const std::string& build_id,
                                          GElf_Word checksum) {
    auto file = ElfFile::open(path.string());
    if (file == nullptr) return nullptr;
    bool matches = build_id.empty() ? checksum_is(*file, checksum) : file->build_id() == build_id;
    return matches ? std::move(file) : nullptr;
}

fs::path folder_of(const ElfFile& file) {
    std::error_code ignored;
    fs::path real = fs::canonical(file.path(), ignored);
    return real.empty() ? fs::path(file.path()).parent_path() : real.parent_path();
}

}  // namespace

bool has_dwarf(const ElfFile& file) {
    for (std::string_view name : {".debug_info", ".zdebug_info"}) {
        const Section* section = file.section(name);
        if (section != nullptr && section->header.sh_type != SHT_NOBITS) return true;
    }
    return false;
}

std::unique_ptr<ElfFile> find_debug_file(const ElfFile& object, const std::string& debug_root) {
    const std::string& build_id = object.build_id();
    if (build_id.size() > 2) {
        auto file = open_if_matching(build_id_path(debug_root, build_id), build_id, 0);
        if (file != nullptr) return file;
    }
    GElf_Word checksum = 0;
    const char* name = dwelf_elf_gnu_debuglink(object.elf(), &checksum);
    if (name == nullptr || *name == '\0') return nullptr;
    fs::path folder = folder_of(object);
    for (const fs::path& path : {folder / name, folder / ".debug" / name,
                                 fs::path(debug_root) / folder.relative_path() / name}) {
        std::error_code ignored;
        if (fs::equivalent(path, object.path(), ignored)) continue;
        if (auto file = open_if_matching(path, build_id, checksum)) return file;
    }
    return nullptr;
}

std::unique_ptr<ElfFile> find_alternate_file(const ElfFile& file, const std::string& debug_root) {
    const Section* link = file.section(".gnu_debugaltlink");
    const Elf_Data* data = link != nullptr ? file.data(*link) : nullptr;
    if (data == nullptr) return nullptr;
    // A path, a zero byte, and the build id of the file.
    std::string_view content(static_cast<const char*>(data->d_buf), data->d_size);
    std::size_t end = content.find('\0');
    if (end == content.npos) return nullptr;
    std::string build_id = to_hexadecimal(content.substr(end + 1));
    if (build_id.size() <= 2) return nullptr;
    for (const fs::path& path : {folder_of(file) / content.substr(0, end),  // may be absolute
                                 build_id_path(debug_root, build_id)}) {
        if (auto found = open_if_matching(path, build_id, 0)) return found;
    }
    return nullptr;
}

namespace {

// Sections for variables and call frames are left out: .debug_loclists alone is a sixth of libc's.
constexpr std::string_view kNeeded[] = {
    ".debug_abbrev", ".debug_aranges",  ".debug_info", ".debug_line",        ".debug_line_str",
    ".debug_ranges", ".debug_rnglists", ".debug_str",  ".debug_str_offsets", ".debug_types"};

// ELFCOMPRESS_ZSTD, which older versions of <elf.h> do not define.
constexpr Elf64_Word kZstd = 2;

// One section of the file, and its place in the image.
struct Part {
    std::string_view name;
    std::span<const unsigned char> content;  // in the file
    Elf64_Word compression;                  // as in Elf64_Chdr; 0: none
    std::size_t size;                        // decompressed
    std::size_t offset = 0;
};

std::size_t aligned(std::size_t offset) {
    constexpr std::size_t kAlignment = 16;
    return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

std::optional<Part> read_part(const Section& section) {
    const Elf_Data* raw = elf_rawdata(section.handle, nullptr);
    if (raw == nullptr || raw->d_buf == nullptr) return std::nullopt;
    std::span content(static_cast<const unsigned char*>(raw->d_buf), raw->d_size);
    if ((section.header.sh_flags & SHF_COMPRESSED) == 0) {
        return Part{section.name, content, 0, content.size()};
    }
    const Elf64_Chdr* header = elf64_getchdr(section.handle);
    if (header == nullptr || (header->ch_type != ELFCOMPRESS_ZLIB && header->ch_type != kZstd))
        return std::nullopt;
    content = content.subspan(sizeof *header);
    // A limit for damaged headers. DEFLATE makes at most 258 bytes out of two bits. zstd could make
    // more, but not from debug sections.
    constexpr std::size_t kMostExpansion = 258 * 4;
    if (header->ch_size / kMostExpansion > content.size()) return std::nullopt;
    return Part{section.name, content, header->ch_type, header->ch_size};
}

// Empty if libdw must read the file itself.
std::vector<Part> read_parts(const ElfFile& file) {
    // Units whose functions are in .dwo files keep their addresses in this section. libdw finds
    // .dwo files by the path of its descriptor, and an image has no descriptor.
    if (file.section(".debug_addr") != nullptr) return {};
    std::vector<Part> parts;
    bool any_compressed = false;
    for (std::string_view name : kNeeded) {
        const Section* section = file.section(name);
        if (section == nullptr || section->header.sh_type == SHT_NOBITS) continue;
        std::optional<Part> part = read_part(*section);
        if (!part) return {};
        parts.push_back(*part);
        any_compressed = any_compressed || part->compression != 0;
    }
    if (!any_compressed) parts.clear();
    return parts;
}

bool write_part(const Part& part, char* image) {
    if (part.compression == 0) {
        std::memcpy(image + part.offset, part.content.data(), part.size);
        return true;
    }
    if (part.compression == kZstd)
        return ZSTD_decompress(image + part.offset, part.size, part.content.data(),
                               part.content.size()) == part.size;
    // libdeflate also verifies the checksum.
    const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
        decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
    return decompressor != nullptr &&
           libdeflate_zlib_decompress(decompressor.get(), part.content.data(), part.content.size(),
                                      image + part.offset, part.size,
                                      nullptr) == LIBDEFLATE_SUCCESS;
}

// The largest section, .debug_info, takes longer than all others together, so it gets its own
// thread.
bool write_parts(std::span<const Part> parts, char* image) {
    constexpr std::size_t kWorthAThread = std::size_t{1} << 20;
    const auto largest = std::max_element(
        parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.size < b.size; });
    const auto policy = largest->size < kWorthAThread ? std::launch::deferred : std::launch::async;
    std::future<bool> written =
        std::async(policy | std::launch::deferred, [&] { return write_part(*largest, image); });
    bool others_written = true;
    for (auto part = parts.begin(); part != parts.end(); ++part) {
        if (part != largest) others_written = others_written && write_part(*part, image);
    }
    return written.get() && others_written;
}

// The headers of the image: the ELF header, the section headers, and the names of the sections,
// which are the last section.
class Headers {
  public:
    // Sets the offsets of the parts.
    Headers(const Elf64_Ehdr& original, std::span<Part> parts);

    std::size_t image_size() const { return sections_.back().sh_offset + names_.size(); }
    void write(char* image) const;
    // True if the image begins with these headers.
    bool begin(const char* image) const;

  private:
    void add(std::string_view name, Elf64_Word type, std::size_t offset, std::size_t size);

    Elf64_Ehdr file_;
    std::vector<Elf64_Shdr> sections_{{}};  // index 0 is reserved
    std::string names_{'\0'};
};

Headers::Headers(const Elf64_Ehdr& original, std::span<Part> parts) : file_(original) {
    std::size_t offset = aligned(sizeof file_ + (parts.size() + 2) * sizeof(Elf64_Shdr));
    for (Part& part : parts) {
        part.offset = offset;
        add(part.name, SHT_PROGBITS, offset, part.size);
        offset = aligned(offset + part.size);
    }
    add(".shstrtab", SHT_STRTAB, offset, 0);
    sections_.back().sh_size = names_.size();
    file_.e_phoff = file_.e_phnum = 0;
    file_.e_shoff = sizeof file_;
    file_.e_shnum = static_cast<Elf64_Half>(sections_.size());
    file_.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
}

void Headers::add(std::string_view name, Elf64_Word type, std::size_t offset, std::size_t size) {
    sections_.push_back({.sh_name = static_cast<Elf64_Word>(names_.size()),
                         .sh_type = type,
                         .sh_offset = offset,
                         .sh_size = size,
                         .sh_addralign = 1});
    names_.append(name).push_back('\0');
}

void Headers::write(char* image) const {
    std::memcpy(image, &file_, sizeof file_);
    std::memcpy(image + sizeof file_, sections_.data(), sections_.size() * sizeof(Elf64_Shdr));
    std::memcpy(image + sections_.back().sh_offset, names_.data(), names_.size());
}

bool Headers::begin(const char* image) const {
    return std::memcmp(image, &file_, sizeof file_) == 0 &&
           std::memcmp(image + sizeof file_, sections_.data(),
                       sections_.size() * sizeof(Elf64_Shdr)) == 0 &&
           std::memcmp(image + sections_.back().sh_offset, names_.data(), names_.size()) == 0;
}

// Asks for large pages: faults for each small page of libc's 10 MB would take a tenth of the time.
// Null if memory is short.
ImageCache::Image allocate(std::size_t size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    madvise(memory, size, MADV_HUGEPAGE);
    return ImageCache::Image(static_cast<char*>(memory), ImageCache::Unmap{size});
}

ImageCache::Image decompress(std::span<const Part> parts, const Headers& headers) {
    ImageCache::Image image = allocate(headers.image_size());
    if (image == nullptr) return nullptr;
    headers.write(image.get());
    return write_parts(parts, image.get()) ? std::move(image) : nullptr;
}

// The ".1" stands for the sections of an image and their order. Change it with these.
std::string name_in_cache(const ElfFile& file) {
    const std::string version = file.version();
    return version.empty() ? version : version + ".1";
}

}  // namespace

std::unique_ptr<DebugImage> DebugImage::make(const ElfFile& file, const ImageCache& cache) {
    constexpr std::size_t kWorthKeeping = std::size_t{1} << 17;
    if (!file.is_like_own()) return nullptr;
    std::vector<Part> parts = read_parts(file);
    if (parts.empty()) return nullptr;
    const Headers headers(*elf64_getehdr(file.elf()), parts);
    std::unique_ptr<DebugImage> image(new DebugImage);
    image->size_ = headers.image_size();
    const std::string name = image->size_ < kWorthKeeping ? "" : name_in_cache(file);
    if (!name.empty()) image->bytes_ = cache.find(name, image->size_);
    if (image->bytes_ == nullptr || !headers.begin(image->bytes_.get())) {
        image->bytes_ = decompress(parts, headers);
        if (image->bytes_ == nullptr) return nullptr;
        if (!name.empty()) cache.keep(name, {image->bytes_.get(), image->size_});
    }
    image->elf_ = elf_memory(image->bytes_.get(), image->size_);
    return image->elf_ != nullptr ? std::move(image) : nullptr;
}

DebugImage::~DebugImage() {
    elf_end(elf_);
}

}  // namespace assay::symbols
