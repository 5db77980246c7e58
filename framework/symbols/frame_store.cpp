#include "framework/symbols/frame_store.h"

#include <memory>

namespace assay::symbols {

Location FrameStore::without_source(std::string_view function) {
    if (function.empty()) return unknown();
    Frame frame{kUnknown, function, 0};
    return keep({&frame, 1});
}

Location FrameStore::keep(std::span<const Frame> frames) {
    std::pmr::polymorphic_allocator<Frame> allocator(&memory_);
    Frame* copy = allocator.allocate(frames.size());
    std::uninitialized_copy(frames.begin(), frames.end(), copy);
    return {std::span(copy, frames.size())};
}

}  // namespace assay::symbols
