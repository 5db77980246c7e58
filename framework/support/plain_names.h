// Writes names of functions and types as people do. Takes any text, and leaves text as it is that
// it does not understand. Different names can get the same text; DisplayNames keeps them apart.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Leaves out what a programmer does not write: default arguments of templates of the C++ library,
// its inline namespaces, and ABI tags. "std::__cxx11::basic_string<char, ...>" is "std::string".
std::string plain_types(std::string_view name);

// Also leaves out parameters, the return type of an instance of a template, and Rust's hashes.
std::string plain_function(std::string_view name);

// The texts under which users ask for a function: in full, and in short with and without
// parameters. `is_asked_for` is called with each until it returns true.
template <typename Function>
bool any_spelling(std::string_view name, const Function& is_asked_for) {
    return is_asked_for(name) || is_asked_for(std::string_view(plain_types(name))) ||
           is_asked_for(std::string_view(plain_function(name)));
}

}  // namespace assay
