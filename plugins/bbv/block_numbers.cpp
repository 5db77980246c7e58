#include "plugins/bbv/block_numbers.h"

#include <algorithm>

namespace bbv {

std::uint32_t BlockNumbers::number(std::uint32_t index, std::span<const trace_block_t> blocks) {
    if (index >= by_index_.size()) by_index_.resize(blocks.size());
    std::uint32_t& known = by_index_[index];
    if (known == 0) {
        const std::uint32_t next = count() + 1;
        known = known_.try_emplace(blocks[index].pc, next).first->second;
        if (known == next) sorted_.push_back({blocks[index].pc, known});
    }
    return known;
}

std::span<const NumberedBlock> BlockNumbers::by_address() {
    const auto before = [](const NumberedBlock& a, const NumberedBlock& b) { return a.pc < b.pc; };
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), before))
        std::sort(sorted_.begin(), sorted_.end(), before);
    return sorted_;
}

}  // namespace bbv
