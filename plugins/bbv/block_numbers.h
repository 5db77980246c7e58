// Numbers of basic blocks, as block vectors have them: from 1, in the order in which blocks are
// first seen to have been executed. A block is known by its address, however often and with however
// many instructions it is translated.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace bbv {

struct NumberedBlock {
    std::uint64_t pc;
    std::uint32_t number;
};

class BlockNumbers {
  public:
    // Of the block with that index in the block table.
    std::uint32_t number(std::uint32_t index, std::span<const trace_block_t> blocks);
    std::uint32_t count() const { return static_cast<std::uint32_t>(known_.size()); }
    // In the order of their addresses. Valid until the next new number.
    std::span<const NumberedBlock> by_address();

  private:
    std::vector<std::uint32_t> by_index_;  // 0: not known yet
    std::unordered_map<std::uint64_t, std::uint32_t> known_;
    std::vector<NumberedBlock> sorted_;
};

}  // namespace bbv
