// Reads basic block vectors: the files that exp-bbv and assay's bbv write for SimPoint.
//
//     file    = { vector | comment }
//     vector  = "T" { BLANK } pair { { BLANK } pair } newline
//     pair    = ":" BLOCK ":" COUNT
//     comment = "" | "#" TEXT
//
// BLOCK is from 1 on, COUNT a whole number; a line of a vector is an interval. SimPoint 3.2 passes
// over lines that do not begin with T; here, what is neither a vector nor a comment is an error,
// and so is a vector that is cut short, because a wrong file would give wrong phases silently.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace assay::events {

class BlockVectorParser {
  public:
    // What is called for each pair of a vector, in the order of the file, and behind each vector.
    struct Handler {
        std::function<void(std::uint32_t block, std::uint64_t count)> pair;
        std::function<void()> end;
    };

    // The path is for messages.
    BlockVectorParser(std::string path, Handler handler)
        : path_(std::move(path)), handler_(std::move(handler)) {}

    // The next bytes of the file, cut anywhere. Throws Error, with file and line.
    void feed(std::string_view block);
    void finish();

  private:
    enum class State : std::uint8_t { kLineStart, kOther, kBetween, kBlock, kCount };

    void take(char c);
    void take_digit(char c);
    void end_of_count(char c);
    void end_vector();
    [[noreturn]] void fail(const std::string& why) const;

    std::string path_;
    Handler handler_;
    State state_ = State::kLineStart;
    std::uint64_t line_ = 1;
    std::uint64_t number_ = 0;
    bool has_digits_ = false, has_pairs_ = false, has_intervals_ = false, has_others_ = false;
    std::uint32_t block_ = 0;
};

}  // namespace assay::events
