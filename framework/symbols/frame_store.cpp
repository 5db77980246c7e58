#include "framework/symbols/frame_store.h"

#include "framework/symbols/demangle.h"

#include <memory>
#include <utility>

namespace assay::symbols {

std::string_view Names::keep(std::string_view text) {
    return *kept_.emplace(text).first;
}

FunctionName Names::function(std::string_view symbol_name) {
    if (auto known = functions_.find(symbol_name); known != functions_.end()) return known->second;
    std::string_view key = keep(symbol_name);

    std::size_t version = symbol_name.find('@', 1);
    const std::string plain = demangled(std::string(symbol_name.substr(0, version)));
    const std::string_view linkage = key.substr(0, version);
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
