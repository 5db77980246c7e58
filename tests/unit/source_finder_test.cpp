// Which of the files that a profile names are taken for sources.
#include "tools/sources/source_finder.h"
#include "framework/support/error.h"
#include "tests/unit/compiled_programs.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace source_finder_test {

using namespace assay;
using Status = SourceFinder::Status;

namespace {

Status status_of(const std::string& name, const SourceOptions& options = {},
                 std::vector<events::Object> objects = {}) {
    return SourceFinder(options, std::move(objects)).find(name).status;
}

}  // namespace

TEST_CASE("source finder: a file is what its path behind links says") {
    const TemporaryFolder folder;
    const std::string source = folder.write("a.c", "int a;\n");
    const std::string secret = folder.write("secret", "root:x\n");
    CHECK(status_of(source) == Status::kFound);
    CHECK(status_of(folder.write("b.F90", "")) == Status::kFound);
    CHECK(status_of(folder.file("none.c")) == Status::kNotFound);
    CHECK(status_of(folder.file("none")) == Status::kNotFound);
    CHECK(status_of(secret) == Status::kLeftOut);
    CHECK(status_of("../../../../../../../../../../.." + secret) == Status::kLeftOut);
    CHECK(status_of("/etc/passwd") == Status::kLeftOut);
    for (const char* const name : {"settings.py", "key.pem", ".netrc", ".c", "c"})
        CHECK(status_of(folder.write(name, "")) == Status::kLeftOut);

    std::filesystem::create_symlink(secret, folder.file("evil.c"));
    CHECK(status_of(folder.file("evil.c")) == Status::kLeftOut);
    std::filesystem::create_symlink("evil.c", folder.file("more.c"));
    CHECK(status_of(folder.file("more.c")) == Status::kLeftOut);
    std::filesystem::create_symlink(source, folder.file("good"));
    CHECK(status_of(folder.file("good")) == Status::kFound);
    std::filesystem::create_symlink("loop.c", folder.file("loop.c"));
    CHECK(status_of(folder.file("loop.c")) == Status::kNotFound);
    // What the user names, the user wants to see.
    CHECK(SourceFinder({}, {}).find(secret, SourceFinder::By::kUser).status == Status::kFound);
}

TEST_CASE("source finder: folders that have moved, with .. and backslashes in names") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.file("here/net"));
    const std::string source = folder.write("here/net/io.c", "int a;\n"),
                      here = folder.file("here");
    const auto found = [&](const std::string& name, const SourceOptions& options) {
        const SourceFinder::Source source = SourceFinder(options, {}).find(name);
        return source.status == Status::kFound ? source.path.string() : "";
    };
    const auto moved = [&](const char* from) { return SourceOptions{{}, {{from, here}}, {}}; };
    CHECK(found("/ci/build/../net/io.c", moved("/ci")) == source);
    CHECK(found("/ci/build/../net/io.c", moved("/ci/build/..")) == source);
    CHECK(found("/ci/net/io.c", moved("/ci/none/../")) == source);
    CHECK(found("/ci/net/io.c", moved("/ci/")) == source);
    CHECK(found("/cities/net/io.c", moved("/ci")).empty());
    // The folder in front of .. is gone.
    CHECK(found(here + "/build/../net/io.c", {}) == source);
    CHECK(found("C:\\work\\net\\io.c", moved("C:\\work")) == source);
    CHECK(found("C:\\work\\net\\io.c", moved("C:\\work\\")) == source);
    CHECK(found("C:\\work\\b\\..\\net/io.c", moved("C:/work")) == source);
    CHECK(found("C:\\work\\net\\io.c", SourceOptions{{here}, {}, {}}) == source);
}

TEST_CASE("source finder: what is no file is not opened, the kernel's files are no sources") {
    const TemporaryFolder folder;
    REQUIRE(mkfifo(folder.file("fifo.c").c_str(), 0600) == 0);
    std::filesystem::create_symlink("/dev/zero", folder.file("zero.c"));
    std::filesystem::create_directory(folder.file("folder.c"));
    for (const char* const name : {"fifo.c", "zero.c", "folder.c"})
        CHECK(status_of(folder.file(name)) == Status::kNotFound);
    CHECK(status_of("/dev/zero") == Status::kNotFound);

    std::filesystem::create_symlink("/proc/self/environ", folder.file("environ.c"));
    SourceOptions with_extension;
    with_extension.extensions = {"environ"};
    for (const std::string& name : {folder.file("environ.c"), std::string("/proc/self/environ"),
                                    std::string("/proc/version"), std::string("/sys/kernel/notes")})
        CHECK(status_of(name, with_extension) != Status::kFound);
    // A link below /proc leads to a file that has a path of its own.
    CHECK(status_of("/proc/self/root" + folder.write("a.c", "")) == Status::kFound);
    CHECK(status_of("/proc/self/root/etc/passwd") == Status::kLeftOut);
    CHECK_THROWS_WITH_AS(read_source(folder.file("fifo.c")),
                         doctest::Contains("not a regular file"), Error);
    CHECK_THROWS_WITH_AS(read_source("/proc/self/mem"),
                         doctest::Contains("/proc/self/mem: Input/output error"), Error);
    std::filesystem::resize_file(folder.write("huge.c", ""), (std::uintmax_t{1} << 30) + 1);
    CHECK_THROWS_WITH_AS(read_source(folder.file("huge.c")),
                         doctest::Contains("more than 1073741824 bytes"), Error);
}

TEST_CASE("source finder: folders and extensions of the user's") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.file("tree/sub"));
    const std::string list = folder.write("tree/sub/list.x2", "X(1)\n");
    folder.write("secret", "");
    SourceOptions options;
    options.extensions = {"X2"};
    CHECK(status_of(list, options) == Status::kFound);
    options.extensions = {".x2"};
    CHECK(status_of(list, options) == Status::kFound);
    options.extensions = {"2"};
    CHECK(status_of(list, options) == Status::kLeftOut);

    SourceOptions include;
    include.include_dirs = {folder.file("tree")};
    CHECK(status_of(list, include) == Status::kFound);
    CHECK(status_of("/gone/sub/list.x2", include) == Status::kFound);
    CHECK(status_of("../secret", include) == Status::kLeftOut);
    CHECK(status_of(folder.file("tree/../secret"), include) == Status::kLeftOut);
    CHECK(status_of(folder.file("secret"), include) == Status::kLeftOut);
    std::filesystem::create_directory(folder.file("tree2"));
    CHECK(status_of(folder.write("tree2/list.x2", ""), include) == Status::kLeftOut);
    include.include_dirs = {"/"};
    CHECK(status_of(folder.file("secret"), include) == Status::kFound);
    include.include_dirs = {"/proc"};
    CHECK(status_of("/proc/self/environ", include) == Status::kFound);

    SourceOptions moved;
    moved.moved = {{"/gone", folder.file("tree")}};
    CHECK(status_of("/gone/sub/list.x2", moved) == Status::kFound);
    CHECK(status_of("/gone/../secret", moved) == Status::kLeftOut);
}

TEST_CASE("source finder: what debug information of the profile's objects names") {
    const CompiledPrograms folder;
    folder.write("table", "int table(void) { return 7; }\n");
    folder.write("main.c", "#include \"table\"\nint main(void) { return table(); }\n");
    folder.run("cc -g -Wl,--build-id=0x0123456789abcdef -o program main.c");
    const std::string program = folder / "program", table = folder / "table";
    const auto status_with = [&](const std::string& name, const events::Object& object) {
        return status_of(name, {}, {{"/none", ""}, object});
    };
    CHECK(status_with(table, {program, "0123456789abcdef"}) == Status::kFound);
    CHECK(status_with(table, {program, ""}) == Status::kFound);
    CHECK(status_with(table, {program, "fedcba9876543210"}) == Status::kLeftOut);
    CHECK(status_with(program, {program, "0123456789abcdef"}) == Status::kLeftOut);
    CHECK(status_of(table) == Status::kLeftOut);
    // As a private key is, which a program that was sent along could name.
    std::filesystem::permissions(table, std::filesystem::perms::owner_read);
    CHECK(status_with(table, {program, "0123456789abcdef"}) == Status::kLeftOut);
}

}  // namespace source_finder_test
