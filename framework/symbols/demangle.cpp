#include "framework/symbols/demangle.h"

#include "framework/symbols/d_names.h"
#include "framework/symbols/rust_names.h"

// The C library declares basename() already.
#define HAVE_DECL_BASENAME 1
#include <cxxabi.h>
#include <libiberty/demangle.h>

#include <cstdlib>
#include <memory>
#include <optional>

namespace assay::symbols {
namespace {

using CText = std::unique_ptr<char, decltype(&std::free)>;

std::optional<std::string> cplusplus_name(const std::string& symbol) {
    // Without this check __cxa_demangle would take a C function "f" for the type "float".
    if (!symbol.starts_with("_Z")) return std::nullopt;
    int status = 0;
    CText name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    // libstdc++ before GCC 13 does not know names of modules, libiberty does.
    if (status != 0 && symbol.find('W') != std::string::npos)
        name.reset(cplus_demangle_v3(symbol.c_str(), DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES));
    return name != nullptr ? std::optional(std::string(name.get())) : std::nullopt;
}

}  // namespace

std::string demangled(const std::string& symbol) {
    // First Rust: its older names are names of C++, too.
    for (const auto demangle : {rust_name, cplusplus_name, d_name})
        if (const auto name = demangle(symbol)) return *name;
    return symbol;
}

}  // namespace assay::symbols
