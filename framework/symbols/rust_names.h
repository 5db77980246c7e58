// Readable names of Rust functions: both manglings that rustc uses.
#pragma once

#include <optional>
#include <string>

namespace assay::symbols {

// The path of a Rust symbol without the hashes that rustc puts into it, `core::fmt::write`; none if
// `symbol` is not one. Both manglings are known: v0 (Rust RFC 2603), and the older one, which looks
// like C++ and ends in a hash. What compilers append to a copy stays, as [clone .cold], but for
// LLVM's .llvm. and number, which is of one build.
std::optional<std::string> rust_name(const std::string& symbol);

}  // namespace assay::symbols
