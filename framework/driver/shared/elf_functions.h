// The functions of an ELF file, from its own symbol tables, and those of them that the user names.
// Separate debug files are not read, because the program waits meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::driver {

// Calls `visit` with the symbol's name, as the linker knows it, and the file offset of the
// function's first instruction. A function may be visited twice, because most dynamic symbols are
// in both symbol tables. Never calls `visit` if the file cannot be read, is damaged, or has another
// byte order than this machine.
void for_each_function(int descriptor,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit);

// Names of functions, with * and ? as in fnmatch(3).
class FunctionPatterns {
  public:
    // Separated by newlines.
    explicit FunctionPatterns(std::string_view patterns);

    bool empty() const { return patterns_.empty(); }
    // A pattern matches a symbol as the linker knows it. It also matches the demangled name of a
    // C++ function, in full or as tools show it, with or without its parameters. The suffix of a
    // compiler's copy with other parameters (.constprop, .isra) is ignored.
    bool match(std::string_view symbol);
    // The patterns that have never matched.
    std::vector<std::string> unmatched() const;

  private:
    struct Pattern {
        std::string text;
        bool matched = false;
    };
    std::vector<Pattern> patterns_;
};

// Where the functions of such names begin in the program's memory.
class NamedFunctions {
  public:
    NamedFunctions() = default;
    explicit NamedFunctions(std::string_view patterns) : patterns_(patterns) {}

    bool empty() const { return patterns_.empty(); }
    bool begins_at(std::uint64_t pc) const { return entries_.contains(pc); }
    // Call these when an executable part of a file is mapped or unmapped. `descriptor`: of the
    // file.
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset, int descriptor);
    void unmapped(std::uint64_t start, std::uint64_t end);
    std::vector<std::string> unmatched() const { return patterns_.unmatched(); }

  private:
    FunctionPatterns patterns_{""};
    std::set<std::uint64_t> entries_;
};

}  // namespace assay::driver
