// Where the output of a command goes. Text for people goes to standard output, and through a pager
// if there is more of it than the terminal has lines; results go to files.
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

// The text and blanks behind it up to that width.
std::string padded(std::string_view text, std::size_t width);
// A line for each row of texts, in columns as wide as their widest text. The first `left` columns
// begin at one place, the others end at one.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t left);

// Whether colours are wanted and can be shown where stdout goes.
bool terminal_has_color();

// What writing to standard output has failed with, as the error to throw.
Error cannot_print(int error_number);

// For a few lines. Throws Error if they could not be written.
void print_text(std::string_view text);
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
    print_text(fmt::format(format, std::forward<Args>(args)...));
}

class Output {
  public:
    enum class Paging : std::uint8_t {
        kNever,
        kIfLong,  // and stdout is a terminal
    };
    explicit Output(std::FILE* stream, Paging paging = Paging::kNever);
    ~Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void write(std::string_view text) {
        buffer_ += text;
        if (buffer_.size() >= kBlockBytes) write_buffer();
    }
    // A line across the page, a title, and another such line.
    void section(std::string_view title);
    // Waits for the pager. Throws Error if any of the text could not be written, unless nobody
    // wants to see more of it.
    void finish();

  private:
    static constexpr std::size_t kBlockBytes = 64 * 1024;
    void write_buffer();
    void write_through(std::string_view text);
    void start_pager();
    int close_pager();
    void end_pager();

    std::FILE* stream_;               // null: nobody wants more
    std::size_t terminal_lines_ = 0;  // 0: no pager is wanted, or it has been started
    pid_t pager_ = 0;
    std::string buffer_;
    std::string for_pager_;  // all that it was given, while it may have read none of that
    bool pager_has_read_ = false;
};

// Where a command's result goes: a file, complete or not at all, or standard output.

enum class Compress : std::uint8_t {
    kByName,  // if the name ends in .gz or .zst
    kGzip,    // once, whatever the name
};

class Sink {
  public:
    // An empty path: standard output.
    explicit Sink(const std::string& path, Compress compress = Compress::kByName);
    // Passed on.
    Sink(events::Consumer consumer, Compress compress);

    void write(std::string_view text) {
        buffer_ += text;
        if (buffer_.size() >= kBlockBytes) flush();
    }
    // Throws Error if any of the text could not be written.
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
