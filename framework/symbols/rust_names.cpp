#include "framework/symbols/rust_names.h"

// The C library declares basename() already.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace assay::symbols {
namespace {

// A short symbol can stand for a name of any length, by referring to parts of itself.
constexpr std::size_t kLongestRustName = 1 << 14;
struct TooLong {};

void append(const char* text, std::size_t size, void* to) {
    std::string& name = *static_cast<std::string*>(to);
    if (size > kLongestRustName - name.size()) throw TooLong();
    name.append(text, size);
}

// Where the mangled name ends, and what has been appended to it begins. The older mangling can have
// dots inside.
std::size_t end_of(std::string_view symbol) {
    if (symbol.starts_with("_R")) return std::min(symbol.find('.'), symbol.size());
    constexpr std::string_view kHash = "17h";
    constexpr std::size_t kHashBytes = kHash.size() + 16 + 1;  // its digits, and the E
    const std::size_t hash = symbol.rfind(kHash);
    if (hash == std::string_view::npos || symbol.size() - hash < kHashBytes) return symbol.size();
    return hash + kHashBytes;
}

std::optional<std::string> readable_rust(const std::string& symbol) {
    std::string name;
    try {
        if (rust_demangle_callback(symbol.c_str(), 0, &append, &name) == 0) return std::nullopt;
    } catch (const TooLong&) {
        return std::nullopt;
    }
    return name;
}

// Whether libiberty counts a binder's lifetimes, one by one, up to more than a few thousand: "G"
// and a number of base 62, which no compiler makes so large. Within an identifier a "g" will do as
// well; where there is a binder, it is an error.
bool has_long_binder(const std::string& symbol) {
    constexpr std::size_t kDigits = 3;
    std::string other = symbol;
    for (std::size_t i = 0; i + kDigits < symbol.size(); ++i)
        if (symbol[i] == 'G' &&
            std::all_of(symbol.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                        symbol.begin() + static_cast<std::ptrdiff_t>(i) + 1 + kDigits,
                        [](unsigned char c) { return std::isalnum(c) != 0; }))
            other[i] = 'g';
    return other != symbol && !readable_rust(other);
}

}  // namespace

std::optional<std::string> rust_name(const std::string& symbol) {
    if (!symbol.starts_with("_R") && !symbol.starts_with("_ZN")) return std::nullopt;
    const std::size_t end = end_of(symbol);
    const std::string mangled = symbol.substr(0, end);
    if (symbol.starts_with("_R") && has_long_binder(mangled)) return std::nullopt;
    const std::optional<std::string> name = readable_rust(mangled);
    if (!name) return std::nullopt;
    const std::string suffix = symbol.substr(end, symbol.find(".llvm.", end) - end);
    return suffix.empty() ? *name : *name + " [clone " + suffix + "]";
}

}  // namespace assay::symbols
