#include "plugins/bbv/thread_vectors.h"

#include <algorithm>
#include <charconv>

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
        // In order of addresses, so that new numbers do not depend on the order of translation.
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

bool ThreadVectors::open() {
    if (file_ == nullptr) file_ = open_output(path_, created_);
    created_ |= file_ != nullptr;
    return file_ != nullptr;
}

bool ThreadVectors::write(std::string_view line) {
    return open() && file_->write(line);
}

bool ThreadVectors::finish(const std::string& text) {
    return open() && file_->write(text) && suspend();
}

bool ThreadVectors::suspend() {
    const bool closed = file_ == nullptr || file_->close();
    file_.reset();
    return closed;
}

}  // namespace bbv
