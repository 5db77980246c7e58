// Where the thread-local variables of what a program begins with are.
#pragma once

#include "framework/symbols/data_symbols.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::collector {

// The block of an image in each thread.
struct ThreadLocalBlock {
    std::uint32_t file;   // the number of its path
    std::uint64_t below;  // from the thread pointer down to its start, in bytes
    std::uint64_t bytes;
};

// Of the images in the order in which they were mapped; those without symbols are null.
struct MappedImage {
    std::uint32_t file;
    const symbols::DataSymbols* symbols;
};
std::vector<ThreadLocalBlock> lay_out_thread_locals(std::span<const MappedImage> images);

}  // namespace assay::collector
