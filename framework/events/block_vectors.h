// Reads basic block vectors: the files that exp-bbv and assay's bbv profiler write for SimPoint.
//
//     file    = { vector | comment }
//     vector  = "T" { BLANK } pair { { BLANK } pair } newline
//     pair    = ":" BLOCK ":" COUNT
//     comment = "" | "#" TEXT
//
// BLOCK is 1 or more, COUNT is a whole number. A line with a vector is one interval. SimPoint 3.2
// ignores lines that do not begin with T. This parser reports an error for any line that is neither
// a vector nor a comment, and for a vector that is cut short, because a wrong file would silently
// give wrong phases.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace assay::events {

class BlockVectorParser {
  public:
    // pair() is called for each pair of a vector in the order of the file, end() after each vector.
    struct Handler {
        std::function<void(std::uint32_t block, std::uint64_t count)> pair;
        std::function<void()> end;
    };

    // `path` appears in messages.
    BlockVectorParser(std::string path, Handler handler)
        : path_(std::move(path)), handler_(std::move(handler)) {}

    // Takes the next bytes of the file, cut anywhere. Throws Error with file and line.
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
