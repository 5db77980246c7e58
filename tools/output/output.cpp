#include "tools/output/output.h"

#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace assay {

namespace {

bool is_first_byte(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

}  // namespace

std::size_t lines_of_page() {
    winsize size{};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

std::size_t width_of_page() {
    winsize size{};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 120;
}

std::string_view first_characters(std::string_view text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t characters = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (is_first_byte(text[i]) && ++characters > most) return text.substr(0, i);
    return text;
}

std::string shortened(std::string_view text, std::size_t width) {
    const auto characters =
        static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_first_byte));
    if (characters <= width || width < 8) return std::string(text);
    const std::size_t head = (width - 3) * 2 / 3;
    const std::size_t tail = first_characters(text, characters - (width - 3 - head)).size();
    return std::string(first_characters(text, head)) + "..." + std::string(text.substr(tail));
}

std::string padded(std::string_view text, std::size_t width) {
    std::string out(text);
    if (out.size() < width) out.append(width - out.size(), ' ');
    return out;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t column,
                    std::size_t indentation, std::string_view separator) {
    std::string lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t next = text.find(separator, begin + 1);
        std::string_view part = text.substr(begin, next - begin);
        if (begin != 0 && column + part.size() > width) {
            lines.append("\n").append(indentation, ' ');
            column = indentation;
            part.remove_prefix(1);
        }
        lines += part;
        column += part.size();
        begin = std::min(next, text.size());
    }
    return lines;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
    std::vector<std::size_t> widths;
    for (const std::vector<std::string>& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const std::vector<std::string>& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string blanks(widths[i] - row[i].size(), ' ');
            line += (i == 0 ? "" : "  ") + (i < left ? row[i] + blanks : blanks + row[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

// https://no-color.org: a value that is not empty switches colours off.
bool terminal_has_color() {
    const char* const no_color = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
           terminal != nullptr && std::string_view(terminal) != "dumb";
}

Error cannot_print(int error_number) {
    return Error("cannot write to standard output: " + system_reason(error_number));
}

void print_text(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw cannot_print(errno);
}

Output::Output(std::FILE* stream, Paging paging) : stream_(stream) {
    if (paging == Paging::kIfLong && isatty(fileno(stream)) != 0) terminal_lines_ = lines_of_page();
}

Output::~Output() {
    if (pager_ != 0) close_pager();
}

void Output::section(std::string_view title) {
    const std::string rule(80, '-');
    write(rule + "\n-- " + std::string(title) + "\n" + rule + "\n");
}

// Works as in git: the shell runs $PAGER. By default, less keeps colours, leaves the screen, and
// does not wrap lines, which would break columns.
void Output::start_pager() {
    const char* const chosen = std::getenv("PAGER");
    const char* const pager =
        chosen != nullptr ? chosen : "if command -v less >/dev/null; then less; else cat; fi";
    int ends[2];
    if (*pager == '\0' || pipe2(ends, O_CLOEXEC) != 0) return;
    std::fflush(nullptr);
    pager_ = fork();
    if (pager_ == 0) {
        // Keeps the user's options. -R comes first, because colours need it.
        const char* const options = std::getenv("LESS");
        setenv("LESS", options == nullptr ? "FRSX" : ("-R " + std::string(options)).c_str(), 1);
        dup2(ends[0], STDIN_FILENO);
        execl("/bin/sh", "sh", "-c", pager, nullptr);
        _exit(127);
    }
    close(ends[0]);
    std::FILE* const pipe = pager_ > 0 ? fdopen(ends[1], "w") : nullptr;
    if (pipe == nullptr) {
        close(ends[1]);
        pager_ = 0;
        return;
    }
    // Unbuffered, so that each write tells whether the pager still runs.
    std::setvbuf(pipe, nullptr, _IONBF, 0);
    std::signal(SIGPIPE, SIG_IGN);
    stream_ = pipe;
}

// Returns the exit status of the pager.
int Output::close_pager() {
    std::fclose(stream_);
    stream_ = nullptr;
    int status = 0;
    while (waitpid(pager_, &status, 0) < 0 && errno == EINTR) {
    }
    pager_ = 0;
    return status;
}

// A user who leaves the pager wants no more text. But if the shell could not run the pager (POSIX,
// Shell Command Language, 2.8.2), writes the text to standard output.
void Output::end_pager() {
    const int status = close_pager();
    const int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (exit_status != kExitNotExecutable && exit_status != kExitNotFound) return;
    stream_ = stdout;
    write_through(for_pager_);
}

void Output::write_through(std::string_view text) {
    if (stream_ == nullptr) return;
    const bool failed = std::fwrite(text.data(), 1, text.size(), stream_) != text.size();
    if (failed && pager_ != 0 && errno == EPIPE) return end_pager();
    if (failed) throw cannot_print(errno);
}

void Output::write_buffer() {
    const auto lines = static_cast<std::size_t>(std::count(buffer_.begin(), buffer_.end(), '\n'));
    if (terminal_lines_ != 0 && (lines >= terminal_lines_ || buffer_.size() >= kBlockBytes))
        start_pager();
    terminal_lines_ = 0;
    if (pager_ != 0 && !pager_has_read_) for_pager_ += buffer_;
    write_through(buffer_);
    buffer_.clear();
    // Pipes of ordinary users hold less (pipe(7)), so the pager has read some text.
    constexpr std::size_t kMostUnread = std::size_t{1} << 20;
    if (for_pager_.size() <= kMostUnread) return;
    pager_has_read_ = true;
    for_pager_.clear();
}

void Output::finish() {
    write_buffer();
    if (pager_ != 0) end_pager();
    if (stream_ != nullptr && std::fflush(stream_) != 0) throw cannot_print(errno);
}

Sink::Sink(const std::string& path, Compress compress) {
    if (!path.empty()) file_.emplace(path);
    if (compress == Compress::kGzip && !path.ends_with(".gz"))
        gzip_ = events::make_compressor("profile.gz");
}

Sink::Sink(events::Consumer consumer, Compress compress) : consumer_(std::move(consumer)) {
    if (compress == Compress::kGzip) gzip_ = events::make_compressor("profile.gz");
}

void Sink::put(std::string_view bytes) {
    if (consumer_)
        consumer_(bytes);
    else if (file_)
        file_->write(bytes);
    else if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
        throw cannot_print(errno);
}

void Sink::flush() {
    if (gzip_)
        gzip_->transform(buffer_, [this](std::string_view bytes) { put(bytes); });
    else
        put(buffer_);
    buffer_.clear();
}

void Sink::finish() {
    flush();
    if (gzip_) gzip_->finish([this](std::string_view bytes) { put(bytes); });
    if (file_)
        file_->finish();
    else if (!consumer_ && std::fflush(stdout) != 0)
        throw cannot_print(errno);
}

}  // namespace assay
