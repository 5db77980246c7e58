#include "framework/symbols/d_names.h"

// The C library declares basename() already.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace assay::symbols {
namespace {

constexpr std::size_t kLongestSymbol = 1 << 12, kLongestDName = 1 << 14;
// Characters that libiberty reads, with those that it reads again. Of the 16,571 symbols of D's
// standard library one of 27 has more.
constexpr std::uint64_t kMostWork = 1 << 20;

// How far back the reference after a Q leads: a number of base 26 whose last digit is in lower
// case. 0 if there is none.
std::size_t distance_at(std::string_view text) {
    std::size_t distance = 0;
    for (const char c : text.substr(0, 4)) {
        if (c >= 'a' && c <= 'z') return distance * 26 + static_cast<std::size_t>(c - 'a');
        if (c < 'A' || c > 'Z') return 0;
        distance = distance * 26 + static_cast<std::size_t>(c - 'A');
    }
    return 0;
}

// What a reference to the identifier at `text` repeats: "3Vec".
std::uint64_t identifier_length(std::string_view text) {
    std::uint64_t length = 0;
    std::from_chars(text.data(), text.data() + text.size(), length);
    return std::min<std::uint64_t>(length, kLongestSymbol);
}

// A bound of how many characters of `symbol` libiberty reads. A reference reads again no more than
// what is between its target and itself. Where an identifier is followed by what can be the
// parameters of a function, libiberty tries that, and then perhaps something else.
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

}  // namespace assay::symbols
