// Keeps the strings and the frames that locations point to for as long as the symbolizer lives.
//
// Also what symbols are called that are of C++, Rust or D.
#pragma once

#include "framework/symbols/symbolizer.h"

#include <memory_resource>
#include <optional>
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

// Names that people read: those of C++, Rust and D, from symbols.

// Readable names of Rust functions: both manglings that rustc uses.

// The path of a Rust symbol without the hashes that rustc puts into it, `core::fmt::write`; none if
// `symbol` is not one. Both manglings are known: v0 (Rust RFC 2603), and the older one, which looks
// like C++ and ends in a hash. What compilers append to a copy stays, as [clone .cold], but for
// LLVM's .llvm. and number, which is of one build.
std::optional<std::string> rust_name(const std::string& symbol);

// Readable names of functions of D.

// "names.Vec.dot(const(names.Vec)) const" for a symbol of D; none if `symbol` is not one, or could
// take long: what a short symbol stands for can be as long as one likes. What compilers append to
// a copy stays, as [clone .cold].
std::optional<std::string> d_name(const std::string& symbol);

// Names of functions as people write them.

// The name that a symbol of C++, Rust or D stands for; the symbol itself if it is of none of them.
std::string demangled(const std::string& symbol);

}  // namespace assay::symbols
