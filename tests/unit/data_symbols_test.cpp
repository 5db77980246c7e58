// DataSymbols: programs compiled here tell where their own variables are; and broken files.
#include "framework/symbols/data_symbols.h"

#include "tests/unit/compiled_programs.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>

namespace data_symbols_test {
namespace {

using assay::symbols::DataSymbol;
using assay::symbols::DataSymbols;

constexpr const char* kVariables = R"(
#include <stdio.h>
#define REPORT(name, variable) printf("%s %p %zu\n", name, (void*)&variable, sizeof variable)
struct node { struct node* next; long key; };
extern char** environ;
struct node global = {&global, 1};
static const char* const words[] = {"one", "two"};
int original[3] = {1};
extern int __alias[3] __attribute__((alias("original")));
static int zeros[100];
static __thread long of_thread = 1;
__thread char text_of_thread[30];
__attribute__((noinline)) static void first(void) {
    static int calls = 1;
    REPORT("first::calls", calls);
}
static inline __attribute__((always_inline)) void second(void) {
    static char calls[10];
    REPORT("second::calls", calls);
}
int main(void) {
    REPORT("environ", environ);
    REPORT("global", global);
    REPORT("words", words);
    REPORT("original", original);
    REPORT("zeros", zeros);
    REPORT(".rodata", *"a string");
    first();
    second();
    char* thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    printf("of_thread -%zu %zu\n", thread_pointer - (char*)&of_thread, sizeof of_thread);
    printf("text_of_thread -%zu %zu\n", thread_pointer - text_of_thread, sizeof text_of_thread);
}
)";

constexpr const char* kScopes = R"(
#include <cstdio>
#define REPORT(name, variable) std::printf("%s %p %zu\n", name, (void*)&variable, sizeof variable)
namespace shapes {
struct Square { static int count; long side; };
int Square::count = 1;
Square unit[2];
namespace { Square hidden; }
static thread_local Square last;
void grow(int) { static Square largest; REPORT("shapes::grow(int)::largest", largest); }
}
int main() {
    REPORT("shapes::Square::count", shapes::Square::count);
    REPORT("shapes::unit", shapes::unit);
    REPORT("shapes::(anonymous namespace)::hidden", shapes::hidden);
    shapes::grow(1);
    char* thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    std::printf("shapes::last -%zu %zu\n", thread_pointer - (char*)&shapes::last, sizeof shapes::last);
}
)";

// Where the linker has put the block, before the thread pointer.
std::uint64_t block_start(const DataSymbols& symbols) {
    const auto block = symbols.thread_local_block();
    return (block.bytes + block.alignment - 1) / block.alignment * block.alignment;
}

// By the name that the program says it should have; returns types.
std::map<std::string, std::string> check_reported(const CompiledPrograms& folder,
                                                  const DataSymbols& symbols) {
    std::map<std::string, std::string> types;
    std::istringstream lines(folder.run("./program"));
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        const std::size_t end = line.rfind(' '), middle = line.rfind(' ', end - 1);
        const std::string name = line.substr(0, middle), at = line.substr(middle + 1);
        const std::uint64_t size = std::stoull(line.substr(end));
        const DataSymbol* symbol = nullptr;
        if (at.starts_with("-")) {
            const std::uint64_t offset = block_start(symbols) - std::stoull(at.substr(1));
            symbol = symbols.find_thread_local(offset);
            REQUIRE(symbol != nullptr);
            CHECK(symbol->start == offset);
            CHECK(symbols.find_thread_local(offset + size - 1) == symbol);
        } else {
            const std::uint64_t address = std::stoull(at, nullptr, 16);
            const auto found = symbols.find(address);
            REQUIRE(found);
            symbol = found->symbol;
            const auto last = symbols.find(address + size - 1);
            REQUIRE(last);
            CHECK(last->symbol == symbol);
            if (!symbol->is_section) CHECK(found->start == address);
            if (!symbol->is_section) CHECK(found->end == address + size);
        }
        CHECK(symbol->name == name);
        if (!symbol->is_section) CHECK(symbol->size == size);
        types[name] = symbol->type;
    }
    return types;
}

void without_symbol_table(const std::string& path) {
    std::string bytes = read_bytes(path);
    for (const std::string table : {".symtab", ".dynsym"}) {
        const std::size_t name = bytes.rfind(table + '\0');
        REQUIRE(name != std::string::npos);
        bytes[name + 1] = 'X';
    }
    write_bytes(path, bytes);
}

const std::map<std::string, std::string> kTypes = {{"environ", ""},
                                                   {"global", "node"},
                                                   {"words", "const char *const[2]"},
                                                   {"original", "int[3]"},
                                                   {"zeros", "int[100]"},
                                                   {".rodata", ""},
                                                   {"first::calls", "int"},
                                                   {"second::calls", "char[10]"},
                                                   {"of_thread", "long int"},
                                                   {"text_of_thread", "char[30]"}};

}  // namespace

TEST_CASE("addresses belong to the variables that the program has there") {
    CompiledPrograms folder;
    folder.write("program.c", kVariables);
    for (const std::string flags : {"-O0", "-O2", "-O2 -gdwarf-4", "-O1 -gsplit-dwarf"}) {
        CAPTURE(flags);
        folder.run("cc -g -no-pie " + flags + " -o program program.c");
        const auto symbols = DataSymbols::open(folder / "program");
        REQUIRE(symbols != nullptr);
        symbols->read_debug_information();
        CHECK(check_reported(folder, *symbols) == kTypes);
    }
}

TEST_CASE("variables of C++ are named with what they are in") {
    CompiledPrograms folder;
    folder.write("program.cpp", kScopes);
    folder.run("c++ -g -no-pie -o program program.cpp");
    const auto symbols = DataSymbols::open(folder / "program");
    REQUIRE(symbols != nullptr);
    check_reported(folder, *symbols);
    symbols->read_debug_information();
    const auto types = check_reported(folder, *symbols);
    CHECK(types ==
          std::map<std::string, std::string>{{"shapes::Square::count", "int"},
                                             {"shapes::unit", "Square[2]"},
                                             {"shapes::(anonymous namespace)::hidden", "Square"},
                                             {"shapes::grow(int)::largest", "Square"},
                                             {"shapes::last", "Square"}});
}

TEST_CASE("symbols and types come from a separate debug file") {
    CompiledPrograms folder;
    folder.write("program.c", kVariables);
    folder.run("cc -g -O2 -no-pie -o program program.c");
    folder.run(
        "objcopy --only-keep-debug program program.debug && strip program && "
        "objcopy --add-gnu-debuglink=program.debug program");
    const auto symbols = DataSymbols::open(folder / "program");
    REQUIRE(symbols != nullptr);
    symbols->read_debug_information();
    CHECK(check_reported(folder, *symbols) == kTypes);
}

TEST_CASE("debug information names variables where no symbol table does") {
    CompiledPrograms folder;
    folder.write("program.c", kVariables);
    folder.run("cc -g -O2 -no-pie -o program program.c");
    folder.run("cp program whole");
    without_symbol_table(folder / "program");
    const auto symbols = DataSymbols::open(folder / "program", "/nonexistent");
    REQUIRE(symbols != nullptr);
    folder.run("cp whole program");
    for (const std::string name : {"global", "zeros", "calls.0", "calls.1"}) {
        CAPTURE(name);
        const auto found = symbols->find(address_of(folder, folder / "program", name));
        REQUIRE(found);
        const std::string& known = found->symbol->name;
        if (name.starts_with("calls"))
            CHECK(known.ends_with("::calls"));
        else
            CHECK(known == name);
        CHECK(found->symbol->type != "");
    }
}

TEST_CASE("what no variable covers is its section") {
    CompiledPrograms folder;
    folder.write("program.c", kVariables);
    folder.run("cc -no-pie -o program program.c && strip program");
    const auto symbols = DataSymbols::open(folder / "program", "/nonexistent");
    REQUIRE(symbols != nullptr);
    std::istringstream sections(folder.run("readelf -SW program"));
    std::map<std::string, std::uint64_t> addresses;
    for (std::string line; std::getline(sections, line);) {
        const std::size_t name = line.find("] .");
        if (name == std::string::npos) continue;
        std::istringstream words(line.substr(name + 2));
        std::string section, type;
        std::uint64_t address = 0;
        if (words >> section >> type >> std::hex >> address && address != 0)
            addresses[section] = address;
    }
    for (const std::string name : {".got", ".eh_frame", ".dynamic", ".rodata"}) {
        const auto found = symbols->find(addresses.at(name) + 8);
        REQUIRE(found);
        CHECK(found->symbol->name == name);
        CHECK(found->symbol->is_section);
    }
    CHECK(!symbols->find(0));
    CHECK(!symbols->find(UINT64_MAX));
    CHECK(symbols->find_thread_local(UINT64_MAX) == nullptr);
}

TEST_CASE("a symbol that reaches beyond the last address ends there") {
    CompiledPrograms folder;
    folder.write("program.c", "char wide[0x1234];int main(void) { return 0; }");
    folder.run("cc -no-pie -o program program.c");
    std::string bytes = read_bytes(folder / "program");
    const std::string size("\x34\x12\0\0\0\0\0\0", 8);
    const std::size_t at = bytes.rfind(size);  // in .symtab
    REQUIRE(at != std::string::npos);
    const std::string elsewhere(7, '\x7f'), most(8, '\xff');
    bytes.replace(at - 7, 7, elsewhere).replace(at, 8, most);
    write_bytes(folder / "program", bytes);
    const auto symbols = DataSymbols::open(folder / "program");
    REQUIRE(symbols != nullptr);
    const std::uint64_t start = address_of(folder, folder / "program", "wide");
    const auto found = symbols->find(start);
    REQUIRE(found);
    CHECK(found->symbol->name == "wide");
    CHECK(found->start == start);
    CHECK(found->end == UINT64_MAX);
}

TEST_CASE("the variables of libc are listed in milliseconds") {
    const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
    if (!std::filesystem::exists(libc)) return;
    const std::clock_t start = std::clock();
    CHECK(DataSymbols::open(libc) != nullptr);
    CHECK(std::clock() - start < CLOCKS_PER_SEC);  // measured: 10 ms; 80 with sanitizers
}

TEST_CASE("cut and corrupted files do the search for variables no harm") {
    CompiledPrograms folder;
    folder.write("program.c", kVariables);
    folder.run("cc -g -O2 -no-pie -o program program.c");
    SUBCASE("as they are") {}
    SUBCASE("without symbol tables") {
        without_symbol_table(folder / "program");
    }
    const std::string content = read_bytes(folder / "program");
    const auto search = [&](const std::string& bytes) {
        write_bytes(folder / "broken", bytes);
        const auto symbols = DataSymbols::open(folder / "broken", "/nonexistent");
        if (symbols == nullptr) return;
        symbols->read_debug_information();
        for (std::uint64_t address = 0x400000; address < 0x406000; address += 64) {
            const auto found = symbols->find(address);
            if (!found) continue;
            REQUIRE(found->start <= address);
            REQUIRE(address < found->end);
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

}  // namespace data_symbols_test
