#include "framework/symbols/frame_store.h"

// The C library declares basename() already.
#define HAVE_DECL_BASENAME 1
#include <cxxabi.h>
#include <libiberty/demangle.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::symbols {
namespace {

// LLVM's sections of basic blocks give each block of a function a symbol: "f.__part.1".
std::string_view without_part(std::string_view symbol) {
    constexpr std::string_view kPart = ".__part.";
    const std::size_t digits = symbol.find_last_not_of("0123456789") + 1;
    const std::string_view rest = symbol.substr(0, digits);
    const bool is_part =
        digits != symbol.size() && rest.size() > kPart.size() && rest.ends_with(kPart);
    return is_part ? rest.substr(0, rest.size() - kPart.size()) : symbol;
}

}  // namespace

std::string_view Names::keep(std::string_view text) {
    return *kept_.emplace(text).first;
}

FunctionName Names::function(std::string_view symbol_name) {
    if (auto known = functions_.find(symbol_name); known != functions_.end()) return known->second;
    std::string_view key = keep(symbol_name);

    const std::string_view linkage = keep(without_part(key.substr(0, key.find('@', 1))));
    const std::string plain = demangled(std::string(linkage));
    FunctionName& name = functions_[key];
    name.readable = plain.empty() ? kUnknown : keep(plain);
    if (name.readable != linkage) name.linkage = linkage;
    return name;
}

Location FrameStore::without_source(const FunctionName& function) {
    if (function.readable.empty()) return unknown();
    Frame frame{kUnknown, function.readable, 0, function.linkage};
    return keep({&frame, 1});
}

Location FrameStore::keep(std::span<const Frame> frames) {
    std::pmr::polymorphic_allocator<Frame> allocator(&memory_);
    Frame* copy = allocator.allocate(frames.size());
    std::uninitialized_copy(frames.begin(), frames.end(), copy);
    return {std::span(copy, frames.size())};
}

namespace {

// A short symbol can stand for a name of any length, by referring to parts of itself.
constexpr std::size_t kLongestRustName = 1 << 14;
struct TooLong {};

void append(const char* text, std::size_t size, void* to) {
    std::string& name = *static_cast<std::string*>(to);
    if (size > kLongestRustName - name.size()) throw TooLong();
    name.append(text, size);
}

// The length of the mangled name without suffixes. The older mangling can contain dots.
std::size_t end_of(std::string_view symbol) {
    if (symbol.starts_with("_R")) return std::min(symbol.find('.'), symbol.size());
    constexpr std::string_view kHash = "17h";
    constexpr std::size_t kHashBytes = kHash.size() + 16 + 1;  // with 16 digits and an E
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

// True if libiberty would count more than a few thousand lifetimes of a binder, one by one. A
// binder is "G" and a number in base 62, and no compiler writes such large numbers. The test
// replaces "G" by "g": this is harmless in an identifier, but an error at a binder.
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

namespace {

constexpr std::size_t kLongestSymbol = 1 << 12, kLongestDName = 1 << 14;
// The number of characters that libiberty may read, with repetitions. One in 27 symbols of D's
// standard library exceeds it.
constexpr std::uint64_t kMostWork = 1 << 20;

// The distance of a back reference, after its Q: a number in base 26 whose last digit is in lower
// case. 0 if `text` has no such number.
std::size_t distance_at(std::string_view text) {
    std::size_t distance = 0;
    for (const char c : text.substr(0, 4)) {
        if (c >= 'a' && c <= 'z') return distance * 26 + static_cast<std::size_t>(c - 'a');
        if (c < 'A' || c > 'Z') return 0;
        distance = distance * 26 + static_cast<std::size_t>(c - 'A');
    }
    return 0;
}

// The length of the identifier at `text`, such as "3Vec".
std::uint64_t identifier_length(std::string_view text) {
    std::uint64_t length = 0;
    std::from_chars(text.data(), text.data() + text.size(), length);
    return std::min<std::uint64_t>(length, kLongestSymbol);
}

// An upper bound of the characters of `symbol` that libiberty reads. A back reference repeats at
// most the text from its target to itself. If parameters of a function may follow an identifier,
// libiberty tries to read them, and can then start again.
std::uint64_t work_bound(std::string_view symbol) {
    std::vector<std::uint64_t> until{0};  // each character
    std::uint64_t tries = 1;
    for (std::size_t i = 0; i < symbol.size(); ++i) {
        constexpr std::string_view kCallingConventions = "FUVWRY";
        std::uint64_t work = 1;
        const std::size_t distance = symbol[i] == 'Q' ? distance_at(symbol.substr(i + 1)) : 0;
        if (distance != 0 && distance <= i) {
            const std::string_view target = symbol.substr(i - distance);
            work += std::isdigit(static_cast<unsigned char>(target.front())) != 0
                        ? identifier_length(target)
                        : until[i] - until[i - distance];
        }
        if (kCallingConventions.find(symbol[i]) != std::string_view::npos) tries *= 2;
        until.push_back(until.back() + work);
        if (until.back() > kMostWork || tries > kMostWork) return UINT64_MAX;
    }
    return until.back() * tries;
}

}  // namespace

std::optional<std::string> d_name(const std::string& symbol) {
    if (!symbol.starts_with("_D") || symbol.size() > kLongestSymbol) return std::nullopt;
    const std::size_t end = std::min(symbol.find('.'), symbol.size());
    const std::string mangled = symbol.substr(0, end);
    if (work_bound(mangled) > kMostWork) return std::nullopt;
    const std::unique_ptr<char, decltype(&std::free)> name(dlang_demangle(mangled.c_str(), 0),
                                                           &std::free);
    if (name == nullptr || std::string_view(name.get()).size() > kLongestDName) return std::nullopt;
    return end == symbol.size() ? name.get() : name.get() + (" [clone " + symbol.substr(end) + "]");
}

namespace {

using CText = std::unique_ptr<char, decltype(&std::free)>;

std::optional<std::string> cplusplus_name(const std::string& symbol) {
    // __cxa_demangle would read the name of a C function "f" as the type "float".
    if (!symbol.starts_with("_Z")) return std::nullopt;
    int status = 0;
    CText name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    // libstdc++ before GCC 13 cannot read names of modules, but libiberty can.
    if (status != 0 && symbol.find('W') != std::string::npos)
        name.reset(cplus_demangle_v3(symbol.c_str(), DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES));
    return name != nullptr ? std::optional(std::string(name.get())) : std::nullopt;
}

}  // namespace

std::string demangled(const std::string& symbol) {
    // Rust goes first, because its older names are also valid names of C++.
    for (const auto demangle : {rust_name, cplusplus_name, d_name})
        if (const auto name = demangle(symbol)) return *name;
    return symbol;
}

}  // namespace assay::symbols
