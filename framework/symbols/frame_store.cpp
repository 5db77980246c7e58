#include "framework/symbols/frame_store.h"

#include "framework/symbols/demangle.h"

#include <memory>
#include <utility>

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

}  // namespace assay::symbols
