// The line of an interval in a file of block vectors.
#pragma once

#include "plugins/bbv/block_numbers.h"

#include "assay/trace_types.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bbv {

class VectorLine {
  public:
    // With the blocks in the order of their addresses. Valid until the next call.
    std::string_view write(std::span<const trace_interval_block_t> interval, BlockNumbers& numbers,
                           std::span<const trace_block_t> blocks);

  private:
    struct Part {
        std::uint64_t pc, instructions;
        std::uint32_t block;
    };

    // Only what the interval has: it can be short, and the program large.
    std::vector<Part> parts_;
    std::string text_;
};

}  // namespace bbv
