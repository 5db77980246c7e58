#include "plugins/bbv/vector_line.h"

#include <algorithm>
#include <charconv>

namespace bbv {
namespace {

void append_number(std::string& to, std::uint64_t number) {
    char digits[20];
    to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

std::string_view VectorLine::write(std::span<const trace_interval_block_t> interval,
                                   BlockNumbers& numbers, std::span<const trace_block_t> blocks) {
    parts_.clear();
    for (const trace_interval_block_t& part : interval)
        parts_.push_back({blocks[part.block].pc, part.instructions, part.block});
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.pc < b.pc; });
    text_ = "T";
    for (auto part = parts_.cbegin(); part != parts_.cend();) {
        // In this order, so that new numbers do not depend on when which block was translated.
        const std::uint32_t number = numbers.number(part->block, blocks);
        const std::uint64_t pc = part->pc;
        std::uint64_t instructions = 0;
        for (; part != parts_.cend() && part->pc == pc; ++part) instructions += part->instructions;
        text_ += ':';
        append_number(text_, number);
        text_ += ':';
        append_number(text_, instructions);
        text_ += "   ";
    }
    text_ += '\n';
    return text_;
}

}  // namespace bbv
