// Text to a stream in large blocks, with errors reported.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace assay::annotate {

// The text and blanks behind it up to that width.
std::string padded(std::string_view text, std::size_t width);

// Whether colours are wanted and can be shown where stdout goes.
bool terminal_has_color();

class Output {
  public:
    explicit Output(std::FILE* stream) : stream_(stream) {}

    void write(std::string_view text) {
        buffer_ += text;
        if (buffer_.size() >= kBlockBytes) write_buffer();
    }
    // A line across the page, a title, and another such line.
    void section(std::string_view title);
    // Throws Error if any of the text could not be written.
    void finish();

  private:
    static constexpr std::size_t kBlockBytes = 64 * 1024;
    void write_buffer();

    std::FILE* stream_;
    std::string buffer_;
};

}  // namespace assay::annotate
