// FrameVariables: programs compiled here tell where their own variables are; and broken files.
#include "framework/symbols/frame_variables.h"

#include "tests/unit/compiled_programs.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace frame_variables_test {
namespace {

using assay::symbols::FrameVariable;
using assay::symbols::FrameVariables;

// Each asm statement is a label: there, "what it names" is at the address that is printed, from the
// CFA (which is the builtin).
constexpr const char* kFrames = R"(
#include <stdio.h>
#include <string.h>
#define REPORT(variable)                                                              \
    do {                                                                              \
        void* here;                                                                   \
        __asm__ volatile("lea 0(%%rip), %0" : "=r"(here)::"memory");                  \
        printf("%p %ld %zu " #variable "\n", here,                                    \
               (long)((char*)&variable - (char*)__builtin_dwarf_cfa()), sizeof variable); \
    } while (0)
struct pair { long first, second[3]; };
typedef struct pair pairs_t[2];
volatile int sink;
static void fill(char* to, int n) { memset(to, n, 32); sink = to[n & 31]; }
__attribute__((noinline)) static void plain(int parameter) {
    const pairs_t pairs = {{parameter}};
    char text[32];
    fill(text, parameter);
    REPORT(pairs);
    REPORT(text);
    if (parameter > 0) {
        char inner[100];
        fill(inner, parameter);
        REPORT(inner);
    } else {
        char other[200];
        fill(other, parameter);
        REPORT(other);
    }
}
static inline __attribute__((always_inline)) void inlined(int n) {
    char local[32];
    fill(local, n);
    REPORT(local);
}
__attribute__((noinline)) static void outer(int n) {
    inlined(n);
    __builtin_printf("%d\n", n);
}
int main(int argc, char** argv) {
    char* at_the_end[4] = {argv[0]};
    plain(argc);
    plain(-argc);
    outer(argc);
    REPORT(at_the_end);
    return 0;
}
)";

struct Reported {
    std::uint64_t pc;
    std::int64_t offset, size;
    std::string name;
};

std::vector<Reported> reported(const CompiledPrograms& folder) {
    std::istringstream lines(folder.run("./program"));
    std::vector<Reported> all;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        Reported one;
        if (words >> std::hex >> one.pc >> std::dec >> one.offset >> one.size >> one.name)
            all.push_back(one);
    }
    return all;
}

void check_reported(const CompiledPrograms& folder, FrameVariables& variables) {
    std::set<std::string> names;
    for (const Reported& expected : reported(folder)) {
        CAPTURE(expected.name);
        CAPTURE(expected.pc);
        for (const std::int64_t part : {std::int64_t{0}, expected.size / 2, expected.size - 1}) {
            const auto found = variables.find(expected.pc, expected.offset + part);
            REQUIRE(found);
            CHECK(found->name == expected.name);
            CHECK((found->function == "inlined") == (expected.name == "local"));
            CHECK(found->start == expected.offset);
            CHECK(found->end - found->start == expected.size);
        }
        names.emplace(expected.name);
    }
    CHECK(names == std::set<std::string>{"at_the_end", "inner", "local", "other", "pairs", "text"});
}

bool has_clang(const CompiledPrograms& folder) {
    return !folder.run("command -v clang || true").empty();
}

}  // namespace

TEST_CASE("variables are where the program finds them") {
    CompiledPrograms folder;
    folder.write("program.c", kFrames);
    std::vector<std::string> compilers = {"cc"};
    if (has_clang(folder)) compilers.emplace_back("clang");
    for (const std::string& compiler : compilers) {
        for (const std::string flags :
             {"-O0", "-O2", "-O2 -fno-omit-frame-pointer", "-O2 -gdwarf-4", "-O1 -gsplit-dwarf",
              "-Os -fno-asynchronous-unwind-tables", "-O2 -gz"}) {
            CAPTURE(compiler);
            CAPTURE(flags);
            std::string command = compiler;
            command.append(" -g -no-pie -o program program.c ").append(flags);
            folder.run(command);
            const auto variables = FrameVariables::open(folder / "program");
            REQUIRE(variables != nullptr);
            check_reported(folder, *variables);
        }
    }
}

TEST_CASE("variables are found with a separate debug file") {
    CompiledPrograms folder;
    folder.write("program.c", kFrames);
    const std::string compiler = has_clang(folder) ? "clang" : "cc";  // needs .eh_frame, too
    folder.run(compiler + " -g -O2 -no-pie -o program program.c");
    folder.run(
        "objcopy --only-keep-debug program program.debug && strip program && "
        "objcopy --add-gnu-debuglink=program.debug program");
    const auto variables = FrameVariables::open(folder / "program");
    REQUIRE(variables != nullptr);
    check_reported(folder, *variables);
}

TEST_CASE("what is no function, no frame and no debug information has no variables") {
    CompiledPrograms folder;
    folder.write("program.c", kFrames);
    folder.run("cc -g -no-pie -o program program.c && strip -o stripped program");
    CHECK(FrameVariables::open(folder / "stripped", "/nonexistent") == nullptr);
    CHECK(FrameVariables::open("/nonexistent") == nullptr);
    const auto variables = FrameVariables::open(folder / "program");
    REQUIRE(variables != nullptr);
    CHECK(variables->at(0).empty());
    CHECK(variables->at(UINT64_MAX).empty());
    const std::uint64_t main = address_of(folder, folder / "program", "main");
    CHECK(!variables->find(main, INT64_MAX));
    CHECK(!variables->find(main, INT64_MIN));
    CHECK(!variables->find(main, 0));  // the return address is at -8
}

TEST_CASE("a million questions about frames take little time") {
    CompiledPrograms folder;
    folder.write("program.c", kFrames);
    folder.run("cc -g -O2 -no-pie -o program program.c");
    const auto variables = FrameVariables::open(folder / "program");
    REQUIRE(variables != nullptr);
    const std::vector<Reported> asked = reported(folder);
    REQUIRE(!asked.empty());
    const std::clock_t start = std::clock();
    std::size_t found = 0;
    for (std::size_t i = 0; i < 1'000'000; ++i) {
        const Reported& one = asked[i % asked.size()];
        found += variables->find(one.pc, one.offset).has_value();
    }
    CHECK(std::clock() - start < 5 * CLOCKS_PER_SEC);  // measured: 50 ms; 1 s with sanitizers
    CHECK(found == 1'000'000);
}

TEST_CASE("cut and corrupted debug information does the search for frame variables no harm") {
    CompiledPrograms folder;
    folder.write("program.c", kFrames);
    folder.run("cc -g -O2 -no-pie -o program program.c");
    const std::vector<Reported> asked = reported(folder);
    const std::string content = read_bytes(folder / "program");
    const auto search = [&](const std::string& bytes) {
        write_bytes(folder / "broken", bytes);
        const auto variables = FrameVariables::open(folder / "broken", "/nonexistent");
        if (variables == nullptr) return;
        for (const Reported& one : asked) {
            for (const FrameVariable& variable : variables->at(one.pc))
                REQUIRE(variable.start < variable.end);
        }
    };
    for (std::size_t size = 0; size < content.size(); size += content.size() / 100)
        search(content.substr(0, size));
    std::mt19937 random(1);  // a fixed seed: failures can be repeated
    for (int round = 0; round < 300; ++round) {
        std::string bytes = content;
        for (int i = 0; i < 20; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
        search(bytes);
    }
}

}  // namespace frame_variables_test
