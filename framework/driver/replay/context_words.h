// Which words of a node count the blocks of a trace (trace::ContextNode).
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::replay {

// By block. They are the native driver's: where a range of code has more blocks and ways out of it
// than words, the same ones have none.
std::vector<std::uint16_t> context_words(const ImageTrace& image,
                                         std::span<const trace_block_t> blocks,
                                         const trace::Spec& spec);

// By block: that for which it is counted, which has the same instructions at the same address. The
// second part of a block can be a block by itself, where it is jumped to: the native driver, which
// has the parts only, has it once.
std::vector<std::uint32_t> counted_blocks(const ImageTrace& image,
                                          std::span<const trace_block_t> blocks);

}  // namespace assay::replay
