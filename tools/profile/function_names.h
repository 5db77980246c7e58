// What names of functions have in common, whatever a compiler has made of the functions: each step
// takes away something else that changes from one version of a program, or of its compiler, to the
// next. Names can be anything, and are gone through once.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Without what compilers append for clones, and for parts that are split off: ".constprop.0",
// ".isra.0", ".part.0", ".cold", ".lto_priv.0", ".llvm.123", several of them too, bare as in symbol
// tables or as demanglers write them, " [clone .isra.0]". It points into the name.
std::string_view without_clones(std::string_view name);

// Without what is numbered, hashed or named anew in each build: the numbers of lambdas, closures
// and unnamed types ("{lambda(int)#2}", "$_2", "'lambda2'", "{closure#2}", "main.func2"), hashes of
// Rust ("::h0123456789abcdef", "core[0123456789abcdef]"), tags of ABIs ("[abi:cxx11]"); unnamed
// namespaces are all "(anonymous namespace)".
std::string without_numbers(std::string_view name);

// Without the parameters of a C++ function, and what stands behind them. It points into the name.
std::string_view without_parameters(std::string_view name);

// As the debug information of an inlined function names it, which has neither parameters nor the
// result that demanglers write in front of an instance of a template; lambdas are all "{lambda}".
std::string without_signature(std::string_view name);

// Without the arguments of templates and of generic functions.
std::string without_template_arguments(std::string_view name);

}  // namespace assay
