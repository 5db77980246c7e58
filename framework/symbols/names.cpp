#include "framework/symbols/names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace assay::symbols {

std::string_view Names::keep(std::string_view text) {
    return *kept_.emplace(text).first;
}

std::string_view Names::readable(std::string_view symbol_name) {
    if (auto known = readable_.find(symbol_name); known != readable_.end()) return known->second;
    std::string_view key = keep(symbol_name);

    std::size_t version = symbol_name.find('@', 1);
    std::string plain(symbol_name.substr(0, version));
    // Without this check __cxa_demangle would take a C function "f" for the type "float".
    if (plain.starts_with("_Z")) {
        int status = 0;
        std::unique_ptr<char, decltype(&std::free)> text(
            abi::__cxa_demangle(plain.c_str(), nullptr, nullptr, &status), &std::free);
        if (status == 0 && text) plain = text.get();
    }
    return readable_[key] = plain.empty() ? kUnknown : keep(plain);
}

}  // namespace assay::symbols
