#include "plugins/bbv/thread_vectors.h"

#include <charconv>

namespace bbv {
namespace {

void append_number(std::string& to, std::uint64_t number) {
    char digits[20];
    to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

bool ThreadVectors::open() {
    if (file_ == nullptr) file_ = open_output(path_, created_);
    created_ |= file_ != nullptr;
    return file_ != nullptr;
}

bool ThreadVectors::write(const trace_interval_t& interval, BlockNumbers& numbers,
                          std::span<const trace_block_t> blocks) {
    for (std::uint32_t i = 0; i < interval.block_count; ++i) {
        const std::uint32_t number = numbers.number(interval.blocks[i].block, blocks);
        if (number >= vector_.size()) vector_.resize(number + std::size_t{1});
        vector_[number] += interval.blocks[i].instructions;
    }
    line_ = "T";
    for (const NumberedBlock& block : numbers.by_address()) {
        if (block.number >= vector_.size() || vector_[block.number] == 0) continue;
        line_ += ':';
        append_number(line_, block.number);
        line_ += ':';
        append_number(line_, vector_[block.number]);
        line_ += "   ";
        vector_[block.number] = 0;
    }
    line_ += '\n';
    return open() && file_->write(line_);
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
