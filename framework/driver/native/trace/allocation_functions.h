// The functions that give a program memory and take it back, by their names: malloc(3) and its
// relatives in libc, in libraries that replace it, C++'s operators, and what --alloc-functions
// names.
//
// Translated code leaves where one is entered from outside of all (Context::allocates_above), and
// where it has returned (Context::leaves_above), whichever way: Allocations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::native {

// Names of functions as users write them: with * and ? as in fnmatch(3).

class FunctionPatterns {
  public:
    // Separated by newlines.
    explicit FunctionPatterns(std::string_view patterns);

    bool empty() const { return patterns_.empty(); }
    // A pattern matches a symbol as the linker knows it, or, of a C++ function, its demangled name,
    // which ends with the parameters; these can be left out. What a compiler adds to the name of a
    // copy with other parameters (.constprop, .isra) does not count.
    bool match(std::string_view symbol);
    // Those that have never matched.
    std::vector<std::string> unmatched() const;

  private:
    struct Pattern {
        std::string text;
        bool matched = false;
    };
    std::vector<Pattern> patterns_;
};

// Which argument is what, from 1; 0: none is.
struct AllocationFunction {
    std::uint8_t size = 0, count = 0;  // the block has their product
    std::uint8_t before = 0;           // the block that the new one takes the place of
    std::uint8_t freed = 0;
    std::uint8_t result = 0;  // where the address is stored; else it is returned

    friend bool operator==(const AllocationFunction&, const AllocationFunction&) = default;
};

class AllocationFunctions {
  public:
    // With further functions, separated by newlines: NAME(size=1,count=2), NAME(old=1,size=2),
    // NAME(size=2,result=1), NAME(free=1). Arguments that are not understood are left out.
    void initialise(std::string_view more);
    bool empty() const { return functions_.empty(); }

    // An executable part of a file was mapped, or is not any more.
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                const std::string& path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    // Of the function that begins at `pc`; nullptr if there is none.
    const AllocationFunction* find(std::uint64_t pc) const {
        const auto found = entries_.find(pc);
        return found == entries_.end() ? nullptr : &found->second;
    }

  private:
    std::map<std::string, AllocationFunction, std::less<>> functions_;
    std::map<std::uint64_t, AllocationFunction> entries_;
};

}  // namespace assay::native
