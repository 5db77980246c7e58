// What execve(2) would run, and the descriptors that the program does not see.
#include "framework/driver/native/load/program_file.h"
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/support/program_file.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

namespace program_file_test {

using namespace assay;
using namespace assay::native;

namespace {

std::string executable(const TemporaryFolder& folder, const std::string& name,
                       const std::string& content, mode_t mode = 0755) {
    const std::string path = folder.write(name, content);
    chmod(path.c_str(), mode);
    return path;
}

ProgramFile find(const std::string& path) {
    return find_program_file(AT_FDCWD, path, 0);
}

bool runs(const std::string& path) {
    return find(path).descriptor >= 0;
}

std::string own_program() {
    std::string content(std::size_t{64} * 1024, '\0');
    const int file = open("/bin/true", O_RDONLY);
    const ssize_t got = read(file, content.data(), content.size());
    close(file);
    REQUIRE(got > ssize_t{sizeof(Elf64_Ehdr)});
    content.resize(static_cast<std::size_t>(got));
    return content;
}

template <typename Change>
std::string changed(const Change& change) {
    std::string content = own_program();
    Elf64_Ehdr header;
    std::memcpy(&header, content.data(), sizeof header);
    change(header);
    std::memcpy(content.data(), &header, sizeof header);
    return content;
}

bool is_open(int descriptor) {
    return fcntl(descriptor, F_GETFD) >= 0;
}

}  // namespace

TEST_CASE("a script's first line is read as the kernel reads it") {
    const auto words = [](std::string_view file) {
        const auto line = interpreter_line(file);
        if (!line) return std::string("no script");
        return line->interpreter + "|" + line->argument.value_or("none");
    };
    CHECK(words("#!/bin/sh\nx") == "/bin/sh|none");
    CHECK(words("#!/bin/sh") == "/bin/sh|none");
    CHECK(words("#! \t/bin/sh  -e x \t\n") == "/bin/sh|-e x");
    CHECK(words("#!/bin/sh\t-e\n") == "/bin/sh|-e");
    CHECK(words("#!/bin/sh \n") == "/bin/sh|none");
    CHECK(words("#!") == "no script");
    CHECK(words("#!   \nx") == "no script");
    CHECK(words("# /bin/sh\n") == "no script");
    CHECK(words("") == "no script");
    const std::string path(kInterpreterLineBytes, 'x');
    CHECK(words(("#!" + path).substr(0, kInterpreterLineBytes)) == "no script");
    CHECK(words(("#!/a " + path).substr(0, kInterpreterLineBytes)) ==
          "/a|" + path.substr(0, kInterpreterLineBytes - 6));
    CHECK(words("#!/a " + path.substr(0, kInterpreterLineBytes - 6) + "\n") ==
          "/a|" + path.substr(0, kInterpreterLineBytes - 6));
    CHECK(words("#!/a" + std::string(kInterpreterLineBytes - 5, ' ') + "x") == "/a|none");
}

TEST_CASE("programs are found, and what is none is left to the kernel") {
    const TemporaryFolder folder;
    CHECK(runs("/bin/true"));
    CHECK_FALSE(runs(""));
    CHECK_FALSE(runs("/nonexistent/program"));
    CHECK_FALSE(runs("/tmp"));
    CHECK_FALSE(runs(executable(folder, "text", "text")));
    CHECK_FALSE(runs(executable(folder, "empty", "")));
    CHECK_FALSE(runs(executable(folder, "data", own_program(), 0644)));
    CHECK_FALSE(runs(executable(folder, "cut", own_program().substr(0, 1000))));
    const std::string pipe = folder.file("pipe");
    REQUIRE(mkfifo(pipe.c_str(), 0755) == 0);
    CHECK_FALSE(runs(pipe));
}

TEST_CASE("why a program runs natively is said") {
    const TemporaryFolder folder;
    const std::string other = executable(
        folder, "other", changed([](Elf64_Ehdr& header) { header.e_machine = EM_AARCH64; }));
    CHECK(find(other).natively == other + ": it is built for another processor");
    const std::string small = executable(
        folder, "small", changed([](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }));
    CHECK(find(small).natively == small + ": it is a 32-bit program");
    const std::string script = executable(folder, "script", "#!" + small + "\n");
    CHECK(find(script).natively == small + ": it is a 32-bit program");
    if (geteuid() != 0) return;
    const std::string privileged = executable(folder, "privileged", own_program());
    REQUIRE(chown(privileged.c_str(), 4242, 0) == 0);
    REQUIRE(chmod(privileged.c_str(), 04755) == 0);
    CHECK(find(privileged).natively == privileged + ": it is set-user-ID");
    REQUIRE(chown(privileged.c_str(), 0, 0) == 0);
    REQUIRE(chmod(privileged.c_str(), 04755) == 0);
    CHECK(runs(privileged));  // nothing to gain
}

TEST_CASE("interpreters of interpreters") {
    const TemporaryFolder folder;
    std::string path = "/bin/true";
    std::vector<std::string> scripts;
    for (int depth = 0; depth < kMostInterpreters; ++depth) {
        path = executable(folder, "s" + std::to_string(depth),
                          "#!" + path + " -" + std::to_string(depth) + "\n");
        scripts.push_back(path);
    }
    const ProgramFile found = find(path);
    CHECK(found.descriptor >= 0);
    CHECK(found.name == path);
    const std::vector<std::string> expected{"/bin/true", "-0", scripts[0], "-1", scripts[1], "-2",
                                            scripts[2],  "-3", scripts[3], "-4", scripts[4]};
    CHECK(found.instead_of_argv0 == expected);
    CHECK_FALSE(runs(executable(folder, "one-more", "#!" + path + "\n")));
}

TEST_CASE("programs that a descriptor names") {
    const int file = open("/bin/true", O_RDONLY | O_CLOEXEC);
    const ProgramFile found = find_program_file(file, "", AT_EMPTY_PATH);
    CHECK(found.descriptor >= 0);
    CHECK(found.name == "/dev/fd/" + std::to_string(file));
    CHECK(find_program_file(file, "", 0).descriptor < 0);
    close(file);
    const int bin = open("/bin/", O_RDONLY | O_DIRECTORY);
    const ProgramFile below = find_program_file(bin, "true", 0);
    CHECK(below.descriptor >= 0);
    CHECK(below.name == "/dev/fd/" + std::to_string(bin) + "/true");
    close(bin);

    const TemporaryFolder folder;
    const std::string path = executable(folder, "script", "#!/bin/sh\n");
    const int script = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    CHECK(find_program_file(script, "", AT_EMPTY_PATH).descriptor < 0);  // gone when it is needed
    fcntl(script, F_SETFD, 0);
    CHECK(find_program_file(script, "", AT_EMPTY_PATH).descriptor >= 0);
    close(script);
}

TEST_CASE("own descriptors are high, and stay when all others are closed") {
    const int own = own_descriptor(open("/dev/null", O_RDONLY));
    CHECK(own > 900);
    CHECK(is_own_descriptor(own));
    CHECK(fcntl(own, F_GETFD) == FD_CLOEXEC);
    const int below = dup2(own, 800), above = dup2(own, 1500);
    CHECK(close_other_descriptors(static_cast<unsigned>(below), UINT_MAX, 0) == 0);
    CHECK(is_open(own));
    CHECK_FALSE(is_open(below));
    CHECK_FALSE(is_open(above));
    CHECK(close_other_descriptors(static_cast<unsigned>(own), static_cast<unsigned>(own), 0) == 0);
    CHECK(is_open(own));
    CHECK(close_other_descriptors(2, 1, 0) == -EINVAL);
    close_own_descriptor(own);
    CHECK_FALSE(is_open(own));
    CHECK_FALSE(is_own_descriptor(own));
    CHECK_FALSE(is_own_descriptor(-1));
}

TEST_CASE("text and arrays of the target are read across pages") {
    constexpr std::size_t kPage = 4096;
    std::vector<char> memory(4 * kPage, 'x');
    memory[3 * kPage] = '\0';
    CHECK(read_target_text(memory.data(), memory.size()) == std::string(3 * kPage, 'x'));
    CHECK_FALSE(read_target_text(memory.data(), 3 * kPage));
    CHECK(read_target_text(memory.data() + 3 * kPage, 1) == "");

    CHECK(read_target_pointers(nullptr)->empty());
    std::vector<char*> array(2 * kPage / sizeof(char*), memory.data());
    array.push_back(nullptr);
    CHECK(read_target_pointers(array.data())->size() == array.size() - 1);
}

}  // namespace program_file_test
