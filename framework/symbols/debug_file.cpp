#include "framework/symbols/debug_file.h"

#include <elfutils/libdwelf.h>
#include <zlib.h>

#include <filesystem>
#include <string_view>

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

}  // namespace assay::symbols
