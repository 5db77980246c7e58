// The calling contexts of a replayed thread: how its blocks are counted.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/shared/followed_contexts.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::replay {

// How the words of a node count the blocks of a trace (trace::ContextNode).

// The word of each block, as in the native driver. If a range of code has more blocks and ways than
// words, the same ones get no word.
std::vector<std::uint16_t> context_words(const ImageTrace& image,
                                         std::span<const trace_block_t> blocks,
                                         const trace::Spec& spec);

// By block: the block that counts its executions, with the same instructions at the same address.
// The second part of a recorded block can also be a block by itself, if the program jumps to it.
// The native driver has only one block for both.
std::vector<std::uint32_t> counted_blocks(const ImageTrace& image,
                                          std::span<const trace_block_t> blocks);

using ReplayedContexts = driver::FollowedContexts;

}  // namespace assay::replay
