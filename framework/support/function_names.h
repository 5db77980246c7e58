// Removes from names of functions the parts that change between versions of a program or a
// compiler. Accepts any text, and takes linear time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// Removes suffixes of clones and of parts that compilers split off: ".constprop.0", ".isra.0",
// ".part.0", ".cold", ".lto_priv.0", ".llvm.123". Also removes several suffixes, and the form of
// demanglers, " [clone .isra.0]". The result points into `name`.
std::string_view without_clones(std::string_view name);

// Removes numbers and hashes that change with each build: numbers of lambdas, closures and unnamed
// types ("{lambda(int)#2}", "$_2", "'lambda2'", "{closure#2}", "main.func2"), hashes of Rust
// ("::h0123456789abcdef", "core[0123456789abcdef]") and ABI tags ("[abi:cxx11]"). Unnamed
// namespaces become "(anonymous namespace)".
std::string without_numbers(std::string_view name);

// Removes the parameters of a C++ function and all text after them. The result points into `name`.
std::string_view without_parameters(std::string_view name);

// Returns the name as debug information gives it for inlined functions: without parameters and
// without the return type that demanglers put before instances of templates. Lambdas become
// "{lambda}", or keep their number: "{lambda#1}".
enum class Lambdas : std::uint8_t { kAlike, kNumbered };
std::string without_signature(std::string_view name, Lambdas lambdas = Lambdas::kAlike);

// Length of "operator" with its operator at the beginning of `text`, or 0. `before` is the
// preceding character.
std::size_t operator_length(char before, std::string_view text);

// True for characters of identifiers. These include all characters beyond ASCII.
bool is_in_word(char c);

// Removes Rust's hashes: "::h0123456789abcdef" and "core[0123456789abcdef]".
std::string without_hashes(std::string_view name);

// Removes arguments of templates and of generic functions.
std::string without_template_arguments(std::string_view name);

}  // namespace assay
