// Names that people read: those of C++, Rust and D, from symbols.
#pragma once

#include <optional>
#include <string>

namespace assay::symbols {

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
