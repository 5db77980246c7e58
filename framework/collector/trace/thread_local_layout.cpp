#include "framework/collector/trace/thread_local_layout.h"

#include <algorithm>
#include <bit>

namespace assay::collector {

// At fixed distances below the thread pointer (glibc's elf/dl-tls.c, _dl_determine_tlsoffset, for
// TLS_TCB_AT_TP; the psABI's variant II). What the program loads later has blocks of the heap.
std::vector<ThreadLocalBlock> lay_out_thread_locals(std::span<const MappedImage> images) {
    std::vector<ThreadLocalBlock> blocks;
    std::uint64_t offset = 0, free_top = 0, free_bottom = 0;
    const auto round_up = [](std::uint64_t value, std::uint64_t alignment) {
        return (value + alignment - 1) & ~(alignment - 1);
    };
    for (const auto& [file, symbols] : images) {
        if (symbols == nullptr) continue;
        const auto block = symbols->thread_local_block();
        const std::uint64_t alignment = std::max<std::uint64_t>(block.alignment, 1);
        if (block.bytes == 0 || !std::has_single_bit(alignment)) continue;
        const std::uint64_t first = -(block.address & (alignment - 1)) & (alignment - 1);
        std::uint64_t below = round_up(free_top + block.bytes - first, alignment) + first;
        if (free_bottom - free_top >= block.bytes && below <= free_bottom) {
            free_top = below;
        } else {
            below = round_up(offset + block.bytes - first, alignment) + first;
            if (below > offset + block.bytes + (free_bottom - free_top)) {
                free_top = offset;
                free_bottom = below - block.bytes;
            }
            offset = below;
        }
        blocks.push_back({file, below, block.bytes});
    }
    return blocks;
}

}  // namespace assay::collector
