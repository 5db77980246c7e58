// Decompressed debug information, and what is kept of it.
#include "framework/symbols/debug_image.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/image_cache.h"
#include "framework/symbols/symbolizer.h"
#include "tests/unit/compiled_programs.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace debug_image_test {

namespace {

namespace fs = std::filesystem;
using assay::symbols::DebugImage;
using assay::symbols::ElfFile;
using assay::symbols::Frame;
using assay::symbols::ImageCache;
using assay::symbols::Symbolizer;

// Sections by name; empty ones and those without contents left out.
std::map<std::string, std::string> contents(Elf* elf) {
    std::map<std::string, std::string> result;
    std::size_t names = 0;
    REQUIRE(elf_getshdrstrndx(elf, &names) == 0);
    for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf, scn)) != nullptr;) {
        const Elf64_Shdr* header = elf64_getshdr(scn);
        const Elf_Data* data = elf_rawdata(scn, nullptr);
        if (header->sh_type == SHT_NOBITS || data == nullptr || data->d_size == 0) continue;
        result[elf_strptr(elf, names, header->sh_name)] =
            std::string(static_cast<const char*>(data->d_buf), data->d_size);
    }
    return result;
}

bool has_image(const std::string& path) {
    std::unique_ptr<ElfFile> file = ElfFile::open(path);
    REQUIRE(file != nullptr);
    return DebugImage::make(*file) != nullptr;
}

// A program whose debug sections are large enough to be worth keeping.
std::string large_program(const CompiledPrograms& folder) {
    std::string source = "enum {\n";
    for (int i = 0; i < 2000; ++i)
        source +=
            std::string(100, 'a') + std::to_string(i * 7919) + " = " + std::to_string(i) + ",\n";
    folder.write("large.c", source + "};\nint main(void) { return aaa; }\n");
    folder.run("sed -i 's/aaa;/" + std::string(100, 'a') + "0;/' large.c");
    folder.run("cc -g -gz=zlib -Wl,--build-id -o large large.c");
    return folder / "large";
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

// Sets a variable of the environment, and puts it back.
class Variable {
  public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* const old = std::getenv(name)) old_ = old;
        value != nullptr ? setenv(name, value, 1) : unsetenv(name);
    }
    ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
    std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("compressed debug sections are decompressed to what they were") {
    CompiledPrograms folder;
    const bool has_zstd =
        folder.run("objcopy --help").find("|zstd") != std::string::npos;  // binutils 2.40
    for (std::string flags : {"-gdwarf-5 -gz=zlib", "-gdwarf-4 -gz=zlib", "-gdwarf-5 -gz=none"}) {
        CAPTURE(flags);
        std::string program = folder.build(flags);
        folder.run("objcopy --decompress-debug-sections program plain");
        if (flags.ends_with("none")) {
            if (!has_zstd) continue;
            folder.run("objcopy --compress-debug-sections=zstd program");
        }
        std::unique_ptr<ElfFile> compressed = ElfFile::open(program);
        std::unique_ptr<ElfFile> plain = ElfFile::open(folder / "plain");
        std::unique_ptr<DebugImage> image = DebugImage::make(*compressed);
        REQUIRE(image != nullptr);
        std::map<std::string, std::string> expected = contents(plain->elf());
        std::map<std::string, std::string> found = contents(image->elf());
        CHECK(found.erase(".shstrtab") == 1);
        for (const auto& section : found) {
            CAPTURE(section.first);
            CHECK(section.second == expected[section.first]);
        }
        for (std::string name : {".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"}) {
            CHECK(found.contains(name));
        }
    }
}

TEST_CASE("decompressed debug information is taken from earlier runs") {
    const CompiledPrograms folder;
    const std::string program = large_program(folder);
    const std::string cache = folder / "caches/assay";
    const std::uint64_t start = address_of(folder, program, "main");
    const auto file_and_line = [&](const std::string& cache_folder) {
        Symbolizer symbolizer("", cache_folder);
        const Frame frame = symbolizer.resolve(program, {{start}})[0].frames[0];
        return std::string(frame.file) + ":" + std::to_string(frame.line);
    };
    const std::string expected = file_and_line("");
    CHECK(expected.starts_with((folder / "large.c") + ":"));
    CHECK(names_in(cache).empty());
    CHECK(file_and_line(cache) == expected);
    const std::vector<std::string> names = names_in(cache);
    REQUIRE(names.size() == 1);
    const std::string kept = cache + "/" + names[0];
    CHECK((fs::status(cache).permissions() & fs::perms::others_all) == fs::perms::none);

    // What is read there is really what is used.
    std::string bytes = read_bytes(kept);
    const std::size_t at = bytes.find("large.c");
    REQUIRE(at != bytes.npos);
    for (std::size_t i = at; i != bytes.npos; i = bytes.find("large.c", i + 1)) bytes[i] = 'b';
    std::ofstream(kept, std::ios::binary) << bytes;
    CHECK(file_and_line(cache).starts_with((folder / "barge.c") + ":"));

    SUBCASE("a file that was cut short is not used") {
        fs::resize_file(kept, bytes.size() - 1);
    }
    SUBCASE("nor one with other headers") {
        bytes[offsetof(Elf64_Ehdr, e_machine)] ^= 1;
        std::ofstream(kept, std::ios::binary) << bytes;
    }
    SUBCASE("nor one of another version of the program") {
        fs::last_write_time(program, fs::last_write_time(program) + std::chrono::seconds(1));
    }
    SUBCASE("nor a link to another file") {
        fs::rename(kept, folder / "elsewhere");
        fs::create_symlink(folder / "elsewhere", kept);
    }
    SUBCASE("a folder that cannot be written does no harm") {
        fs::remove_all(folder / "caches");
        folder.write("caches", "a file");
    }
    CHECK(file_and_line(cache) == expected);
}

TEST_CASE("kept images make room for others") {
    const CompiledPrograms folder;
    const std::string place = folder / "cache";
    const ImageCache cache(place, 4000);
    cache.keep("first", std::string(1000, '1'));
    cache.keep("second", std::string(1000, '2'));
    cache.keep("third", std::string(1000, '3'));
    cache.keep("large", std::string(1001, '4'));  // more than its share
    CHECK(names_in(place) == std::vector<std::string>{"first", "second", "third"});
    const auto now = fs::file_time_type::clock::now();
    fs::last_write_time(place + "/first", now - std::chrono::hours(50));
    fs::last_write_time(place + "/second", now - std::chrono::hours(49));
    fs::last_write_time(place + "/third", now - std::chrono::hours(48));
    const ImageCache::Image first = cache.find("first", 1000);
    REQUIRE(first != nullptr);
    CHECK(first.get()[999] == '1');
    first.get()[0] = 'x';  // a copy
    CHECK(cache.find("first", 1000).get()[0] == '1');
    CHECK(cache.find("first", 999) == nullptr);
    CHECK(cache.find("none", 1000) == nullptr);
    cache.keep("fourth", std::string(1000, '5'));
    cache.keep("fifth", std::string(1000, '6'));
    CHECK(names_in(place) == std::vector<std::string>{"fifth", "first", "fourth", "third"});
    ImageCache("").keep("nothing", std::string(10, 'x'));
    CHECK(ImageCache("").find("first", 1000) == nullptr);
}

TEST_CASE("images are kept in a home that is there, and the user's own") {
    const CompiledPrograms folder;
    const std::string home = folder / ".";
    const Variable own("HOME", home.c_str());
    const Variable no_caches("XDG_CACHE_HOME", "");
    CHECK(ImageCache::folder_of_user() == home + "/.cache/assay");
    {
        const Variable caches("XDG_CACHE_HOME", home.c_str());
        CHECK(ImageCache::folder_of_user() == home + "/assay");
    }
    const Variable missing("HOME", (home + "/none").c_str());
    CHECK(ImageCache::folder_of_user().empty());
    constexpr uid_t kSomebodyElse = 65534;
    if (geteuid() == 0) REQUIRE(chown(home.c_str(), kSomebodyElse, kSomebodyElse) == 0);
    const Variable others("HOME", geteuid() == 0 ? home.c_str() : "/");
    CHECK(ImageCache::folder_of_user().empty());
}

TEST_CASE("there is no image of debug sections that libdw has to deal with") {
    CompiledPrograms folder;
    CHECK_FALSE(has_image(folder.build("-g")));
    CHECK_FALSE(has_image(folder.build("")));
    CHECK_FALSE(has_image(folder.build("-g -gz=zlib -gsplit-dwarf")));
    CHECK_FALSE(has_image(folder.build("-g -gz=zlib-gnu")));
}

TEST_CASE("there is no image of damaged debug sections") {
    CompiledPrograms folder;
    std::string program = folder.build("-g -gz=zlib");
    CHECK(has_image(program));
    const Elf64_Shdr section = ElfFile::open(program)->section(".debug_info")->header;
    const std::string bytes = read_bytes(program);
    const auto damage = [&](std::size_t offset, std::uint64_t value) {
        std::string damaged = bytes;
        std::memcpy(damaged.data() + section.sh_offset + offset, &value, sizeof value);
        write_bytes(program, damaged);
        return has_image(program);
    };
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data() + section.sh_offset + offsetof(Elf64_Chdr, ch_size),
                sizeof size);
    CHECK(damage(offsetof(Elf64_Chdr, ch_size), size));
    for (std::uint64_t wrong : {std::uint64_t{0}, size - 1, size + 1, section.sh_size * 1032,
                                std::uint64_t{1} << 40, UINT64_MAX}) {
        CAPTURE(wrong);
        CHECK_FALSE(damage(offsetof(Elf64_Chdr, ch_size), wrong));
    }
    CHECK_FALSE(damage(section.sh_size / 2, 0));
    CHECK_FALSE(damage(section.sh_size - sizeof(std::uint64_t), 0));
    for (std::uint64_t type : {0, 2, 99}) CHECK_FALSE(damage(offsetof(Elf64_Chdr, ch_type), type));
}

}  // namespace debug_image_test
