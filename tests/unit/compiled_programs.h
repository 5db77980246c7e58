// Programs that are compiled for tests of what is known of them.
#pragma once

#include <doctest/doctest.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

inline constexpr const char* kProgram = R"(
#include <cstdio>
#include <cstdlib>
namespace shapes {
struct Square {
    long side;
    long area() const { return side * side; }
};
static inline long grow(long n) {
    Square square{n};
    return square.area() + std::labs(n);
}
__attribute__((noinline)) long twice(long n) { return 2 * grow(n) + grow(n + 1); }
}
namespace { inline long hidden(long n) { return n % 7 + std::rand(); } }
extern "C" __attribute__((noinline)) long plain(long n) {
    for (int i = 0; i < 10; ++i) n += hidden(n);
    return n;
}
int main(int argc, char**) {
    std::printf("%ld %ld\n", shapes::twice(argc), plain(argc));
    return 0;
}
)";

// A folder of its own for every test, removed at its end.
class CompiledPrograms {
  public:
    CompiledPrograms() {
        std::string name =
            (std::filesystem::temp_directory_path() / "assay-symbols-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path_ = std::filesystem::canonical(name);
    }
    ~CompiledPrograms() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(path_ / name) << text;
    }
    // Runs a shell command in the folder and returns what it prints.
    std::string run(const std::string& command) const {
        symbols_.clear();
        std::string line = "cd " + path_.string() + " && " + command;
        FILE* pipe = popen(line.c_str(), "r");
        REQUIRE(pipe != nullptr);
        std::string text;
        for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
        INFO(command);
        REQUIRE(pclose(pipe) == 0);
        return text;
    }
    // What nm(1) prints of the file, as long as no command has run since.
    const std::string& symbols(const std::string& file) const {
        const auto known = symbols_.find(file);
        if (known != symbols_.end()) return known->second;
        std::string text = run("nm " + file);
        return symbols_[file] = std::move(text);
    }
    std::string build(const std::string& flags) const {
        write("program.cpp", kProgram);
        run("c++ -O2 " + flags + " -o program program.cpp");
        return *this / "program";
    }

  private:
    std::filesystem::path path_;
    mutable std::map<std::string, std::string> symbols_;  // by file
};

inline std::uint64_t address_of(const CompiledPrograms& folder, const std::string& file,
                                const std::string& symbol) {
    std::istringstream list(folder.symbols(file));
    for (std::string line; std::getline(list, line);) {
        if (line.ends_with(" " + symbol)) return std::stoull(line, nullptr, 16);
    }
    FAIL("no symbol " << symbol);
    return 0;
}

inline std::string read_bytes(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
