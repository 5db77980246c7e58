// Names of functions as users write them: with * and ? as in fnmatch(3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::native {

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

}  // namespace assay::native
