// Writes the output of commands. Text for people goes to standard output, through a pager if it is
// longer than the terminal. Results go to files.
#pragma once

#include "framework/events/file.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <sys/types.h>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// Adds blanks after the text up to the width.
std::string padded(std::string_view text, std::size_t width);
// The first characters of a UTF-8 text.
std::string_view first_characters(std::string_view text, std::size_t most);
// Shortens text to `width` characters by removing its middle.
std::string shortened(std::string_view text, std::size_t width);
// Breaks a text before `separator`, such as the + of a formula, if a line would exceed `width`
// characters. The text begins at `column`, and further lines begin at `indentation`.
std::string wrapped(std::string_view text, std::size_t width, std::size_t column,
                    std::size_t indentation, std::string_view separator = " + ");
// Formats rows of texts in columns as wide as their widest text. Aligns the first `left` columns to
// the left and the others to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t left);

// True if standard output is a terminal that shows colours, and the user wants them.
bool terminal_has_color();

// The size of the terminal that shows standard output, or of a page of usual size.
std::size_t lines_of_page();
std::size_t width_of_page();

// The error to throw if writing to standard output failed.
Error cannot_print(int error_number);

// Writes a few lines to standard output. Throws Error on failure.
void print_text(std::string_view text);
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
    print_text(fmt::format(format, std::forward<Args>(args)...));
}

class Output {
  public:
    enum class Paging : std::uint8_t {
        kNever,
        kIfLong,  // if stdout is a terminal
    };
    explicit Output(std::FILE* stream, Paging paging = Paging::kNever);
    ~Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void write(std::string_view text) {
        buffer_ += text;
        if (buffer_.size() >= kBlockBytes) write_buffer();
    }
    // Writes a title between two lines across the page.
    void section(std::string_view title);
    // Waits for the pager. Throws Error if text could not be written, except if the user left the
    // pager.
    void finish();

  private:
    static constexpr std::size_t kBlockBytes = 64 * 1024;
    void write_buffer();
    void write_through(std::string_view text);
    void start_pager();
    int close_pager();
    void end_pager();

    std::FILE* stream_;               // null after the user left the pager
    std::size_t terminal_lines_ = 0;  // 0 without a pager, or after the decision about it
    pid_t pager_ = 0;
    std::string buffer_;
    std::string for_pager_;  // text given to the pager, until it has certainly read some
    bool pager_has_read_ = false;
};

// Writes a result to a file or to standard output. A file is written completely or not at all.

enum class Compress : std::uint8_t {
    kByName,  // compress if the name ends in .gz or .zst
    kGzip,    // compress once, for any name
};

class Sink {
  public:
    // An empty path means standard output.
    explicit Sink(const std::string& path, Compress compress = Compress::kByName);
    // Passes the output on to `consumer`.
    Sink(events::Consumer consumer, Compress compress);

    void write(std::string_view text) {
        buffer_ += text;
        if (buffer_.size() >= kBlockBytes) flush();
    }
    // Throws Error if output could not be written.
    void finish();

  private:
    static constexpr std::size_t kBlockBytes = 64 * 1024;
    void flush();
    void put(std::string_view bytes);

    std::optional<events::OutputFile> file_;
    events::Consumer consumer_;
    std::unique_ptr<events::Codec> gzip_;
    std::string buffer_;
};

}  // namespace assay
