#include "framework/driver/native/trace/function_patterns.h"

#include <cxxabi.h>
#include <fnmatch.h>
#include <cstdlib>
#include <memory>

namespace assay::native {
namespace {

std::string without_copy_suffix(std::string_view symbol) {
    for (const std::string_view suffix : {".constprop.", ".isra."})
        symbol = symbol.substr(0, symbol.find(suffix));
    return std::string(symbol);
}

// "" if it is not the name of a C++ function.
std::string demangled(const std::string& symbol) {
    if (!symbol.starts_with("_Z")) return {};
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && text ? text.get() : std::string();
}

bool fits(const std::string& pattern, const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

FunctionPatterns::FunctionPatterns(std::string_view patterns) {
    while (!patterns.empty()) {
        const std::string_view pattern = patterns.substr(0, patterns.find('\n'));
        if (!pattern.empty()) patterns_.push_back({std::string(pattern)});
        patterns.remove_prefix(std::min(pattern.size() + 1, patterns.size()));
    }
}

bool FunctionPatterns::match(std::string_view symbol) {
    const std::string plain = without_copy_suffix(symbol);
    const std::string readable = demangled(plain);
    const std::string without_parameters = readable.substr(0, readable.find('(', 1));
    bool any = false;
    for (Pattern& pattern : patterns_) {
        if (!fits(pattern.text, plain) && !fits(pattern.text, readable) &&
            !fits(pattern.text, without_parameters))
            continue;
        pattern.matched = any = true;
    }
    return any;
}

std::vector<std::string> FunctionPatterns::unmatched() const {
    std::vector<std::string> out;
    for (const Pattern& pattern : patterns_)
        if (!pattern.matched) out.push_back(pattern.text);
    return out;
}

}  // namespace assay::native
