// Which words of a node (trace::ContextNode) stand for what: of each range of code there are
// trace::context_words(), for the blocks that begin in it, which are counted there, and for the
// calls and jumps from it, whose nodes are kept there. Whatever is translated once more, and is
// what it was, has the words that it had.
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
    // Numbers of words, 0 if the range that begins with `range` has none left.

    // Of a block: the first of trace::counters().
    std::uint32_t of_block(const trace::Spec& spec, std::uint64_t range,
                           std::span<const native::Instruction> instructions);
    // Of the call or jump at `pc` to `target`; to 0, if that is not known.
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
