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

namespace assay::native {

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
