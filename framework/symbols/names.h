// Keeps strings for as long as the symbolizer lives, and demangles function names once each.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace assay::symbols {

inline constexpr std::string_view kUnknown = "???";

class Names {
  public:
    // The kept copy of `text`.
    std::string_view keep(std::string_view text);
    // The readable form of a symbol's name: without its version ("@@GLIBC_2.14"), and demangled
    // where it is a C++ name.
    std::string_view readable(std::string_view symbol_name);

  private:
    std::unordered_set<std::string> kept_;
    std::unordered_map<std::string_view, std::string_view> readable_;
};

}  // namespace assay::symbols
