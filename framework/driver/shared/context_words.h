// Gives out the words of a node (trace::ContextNode). Each range of code has
// trace::context_words(): for the counters of the blocks that begin in it, and for the nodes that
// its calls and jumps lead to. Code that is translated again without a change gets the same words
// again.
#pragma once

#include "framework/trace/segment_layout.h"
#include "framework/x86/instruction.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::driver {

class ContextWords {
  public:
    // Return the number of a word, or 0 if all words of the range at `range` are taken.

    // The first of a block's trace::counters(), which lie in one layer.
    std::uint32_t of_block(const trace::Spec& spec, std::uint64_t range,
                           std::span<const native::Instruction> instructions);
    // The same for the code at `pc`.
    std::uint32_t of_block(const trace::Spec& spec, std::uint64_t range, std::uint64_t pc,
                           std::span<const std::uint8_t> code);
    // The word of the call or jump at `pc`. `target`: 0 if it is not known.
    std::uint32_t of_way(const trace::Spec& spec, std::uint64_t range, std::uint64_t pc,
                         std::uint64_t target);

  private:
    struct Used {
        std::uint64_t key;
        std::uint32_t word;
    };
    struct Range {
        std::vector<Used> used;
        std::uint32_t next = trace::kFirstContextWord;
    };

    std::uint32_t of(const trace::Spec& spec, std::uint64_t range, std::uint64_t key,
                     std::uint32_t count, std::uint32_t kept_back);

    std::unordered_map<std::uint64_t, Range> ranges_;
};

}  // namespace assay::driver
