// Keeps the strings and the frames that locations point to for as long as the symbolizer lives.
#pragma once

#include "framework/symbols/symbolizer.h"

#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace assay::symbols {

inline constexpr std::string_view kUnknown = "???";

// As in a Frame. Of one Names, equal ones are the same texts.
struct FunctionName {
    std::string_view readable, linkage;
    bool is(const FunctionName& other) const {
        return readable.data() == other.readable.data() && linkage.data() == other.linkage.data();
    }
};

// Strings, and the readable forms of function names, each of which is demangled once.
class Names {
  public:
    // The kept copy of `text`.
    std::string_view keep(std::string_view text);
    // Of a symbol's name.
    FunctionName function(std::string_view symbol_name);
    // The readable form of a symbol's name: without its version ("@@GLIBC_2.14"), and demangled
    // where it is a name of C++, Rust or D.
    std::string_view readable(std::string_view symbol_name) {
        return function(symbol_name).readable;
    }

  private:
    std::unordered_set<std::string> kept_;
    std::unordered_map<std::string_view, FunctionName> functions_;  // by symbol
};

class FrameStore {
  public:
    Location unknown() const { return {std::span(&unknown_, 1)}; }
    // A function of which no more is known; unknown() if its name is empty.
    Location without_source(const FunctionName& function);
    // Copies the frames; their strings must be kept by names() already.
    Location keep(std::span<const Frame> frames);
    Names& names() { return names_; }

  private:
    Names names_;
    Frame unknown_{kUnknown, kUnknown, 0};
    std::pmr::monotonic_buffer_resource memory_;
};

}  // namespace assay::symbols
