// Functions that a compiler has cloned: the same one in two profiles, whatever it is called.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace assay::diff {

enum class Side : std::uint8_t { kOld, kNew };

// Without what compilers append for clones, and for parts that are split off: ".constprop.0",
// ".isra.0", ".part.0", ".cold", ".lto_priv.0", ".llvm.123", several of them too, bare as in symbol
// tables or as demanglers write them, " [clone .isra.0]". It points into the name.
std::string_view without_clones(std::string_view name);

// Without the parameters of a C++ function, and what stands behind them. It points into the name.
std::string_view without_parameters(std::string_view name);

// Tells which names are to be compared as one. Clones come and go, and change their names, with
// every change of a program or a compiler: so they count for the function, unless both profiles
// have exactly the same of them. Where all calls of a local function of C++ are inlined, compilers
// name it without its parameters: it is the one that has them, unless there are several.
class CloneNames {
  public:
    // First each name of both profiles.
    void add(Side side, std::string_view name);
    // Then the name to compare it by. It points into `name`.
    std::string_view compared(std::string_view name) const;

  private:
    using Set = std::set<std::string, std::less<>>;
    struct Names {
        Set before, after;
        Set functions;  // without clones
    };
    std::map<std::string, Names, std::less<>> by_name_;  // without parameters
};

}  // namespace assay::diff
