#include "framework/events/block_vectors.h"

#include "framework/events/lexical.h"
#include "framework/support/error.h"

#include <limits>

namespace assay::events {
void BlockVectorParser::feed(std::string_view block) {
    for (const char c : block) {
        take(c);
        if (c == '\n') ++line_;
    }
}

void BlockVectorParser::finish() {
    if (state_ != State::kLineStart && state_ != State::kOther)
        fail("the file ends within an interval");
    if (has_others_ && !has_intervals_)
        fail("no line begins with T, as intervals do: not a file of block vectors");
}

void BlockVectorParser::take(char c) {
    switch (state_) {
        case State::kLineStart:
            if (c == '\n' || is_blank(c)) return;
            has_pairs_ = false;
            has_intervals_ |= c == 'T';
            has_others_ |= c != 'T' && c != '#';
            state_ = c == 'T' ? State::kBetween : State::kOther;
            return;
        case State::kOther:
            if (c == '\n') state_ = State::kLineStart;
            return;
        case State::kBetween:
            if (is_blank(c)) return;
            if (c == '\n') return end_vector();
            if (c != ':') fail("expected :BLOCK:COUNT");
            number_ = 0;
            has_digits_ = false;
            state_ = State::kBlock;
            return;
        case State::kBlock:
            if (c != ':') return take_digit(c);
            if (!has_digits_ || number_ == 0 || number_ > std::numeric_limits<std::uint32_t>::max())
                fail("a block's number is from 1 to 2^32-1");
            block_ = static_cast<std::uint32_t>(number_);
            number_ = 0;
            has_digits_ = false;
            state_ = State::kCount;
            return;
        case State::kCount:
            if (is_blank(c) || c == '\n' || c == ':') return end_of_count(c);
            return take_digit(c);
    }
}

void BlockVectorParser::take_digit(char c) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    if (c < '0' || c > '9') fail("expected a number");
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (number_ > (kMost - digit) / 10) fail("a number of 2^64 or more");
    number_ = number_ * 10 + digit;
    has_digits_ = true;
}

void BlockVectorParser::end_of_count(char c) {
    if (!has_digits_) fail("a block without a count");
    handler_.pair(block_, number_);
    has_pairs_ = true;
    state_ = State::kBetween;
    take(c);
}

void BlockVectorParser::end_vector() {
    if (!has_pairs_) fail("an interval without blocks");
    handler_.end();
    state_ = State::kLineStart;
}

void BlockVectorParser::fail(const std::string& why) const {
    throw Error(path_ + ":" + std::to_string(line_) + ": " + why);
}

}  // namespace assay::events
