// Keeps the strings and the frames of locations as long as the symbolizer lives. Also demangles
// names of C++, Rust and D.
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

// `linkage` is as in a Frame. Equal names that come from the same Names share their memory.
struct FunctionName {
    std::string_view readable, linkage;
    bool is(const FunctionName& other) const {
        return readable.data() == other.readable.data() && linkage.data() == other.linkage.data();
    }
};

// Keeps strings and readable names of functions. Demangles each symbol once.
class Names {
  public:
    // The kept copy of `text`.
    std::string_view keep(std::string_view text);
    FunctionName function(std::string_view symbol_name);
    // The readable form of a symbol's name, demangled and without its version ("@@GLIBC_2.14").
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
    // A function with a name only; unknown() if the name is empty.
    Location without_source(const FunctionName& function);
    // Copies the frames. names() must already keep their strings.
    Location keep(std::span<const Frame> frames);
    Names& names() { return names_; }

  private:
    Names names_;
    Frame unknown_{kUnknown, kUnknown, 0};
    std::pmr::monotonic_buffer_resource memory_;
};

// The path of a Rust symbol without hashes, `core::fmt::write`, or empty if `symbol` is not from
// Rust. Knows both manglings: v0 (Rust RFC 2603), and the older one, which looks like C++ and ends
// in a hash. A suffix for copies stays as [clone .cold]. LLVM's suffix ".llvm.NUMBER" is removed,
// because the number differs between builds.
std::optional<std::string> rust_name(const std::string& symbol);

// "names.Vec.dot(const(names.Vec)) const" for a symbol of D. Empty if `symbol` is not from D, or
// could take too long: a short symbol can stand for a very long name. A suffix for copies stays as
// [clone .cold].
std::optional<std::string> d_name(const std::string& symbol);

// The readable name of a symbol of C++, Rust or D; other symbols are returned unchanged.
std::string demangled(const std::string& symbol);

}  // namespace assay::symbols
