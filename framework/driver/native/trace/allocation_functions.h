// Finds the functions that give a program memory and take it back by their names. These are
// malloc(3) and related functions of libc and of libraries that replace it, C++'s operators, and
// those of --alloc-functions.
//
// Translated code leaves to the driver when the program enters such a function, but not for nested
// ones (Context::allocates_above). It leaves again after the function has returned or was left in
// another way (Context::leaves_above). Allocations handles both.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::native {

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

// The numbers of the arguments, from 1; 0: no such argument.
struct AllocationFunction {
    std::uint8_t size = 0, count = 0;  // the block has the product of both
    std::uint8_t before = 0;           // the block that the new one replaces
    std::uint8_t freed = 0;
    std::uint8_t result = 0;  // the address is stored here; 0: it is returned

    friend bool operator==(const AllocationFunction&, const AllocationFunction&) = default;
};

class AllocationFunctions {
  public:
    // `more`: further functions, separated by newlines: NAME(size=1,count=2), NAME(old=1,size=2),
    // NAME(size=2,result=1), NAME(free=1). Unknown arguments are ignored.
    void initialise(std::string_view more);
    bool empty() const { return functions_.empty(); }

    // Call these when an executable part of a file is mapped or unmapped.
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                const std::string& path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    // The function that begins at `pc`; nullptr if there is no such function.
    const AllocationFunction* find(std::uint64_t pc) const {
        const auto found = entries_.find(pc);
        return found == entries_.end() ? nullptr : &found->second;
    }

  private:
    std::map<std::string, AllocationFunction, std::less<>> functions_;
    std::map<std::uint64_t, AllocationFunction> entries_;
};

}  // namespace assay::native
