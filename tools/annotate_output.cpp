#include "tools/annotate_output.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <unistd.h>
#include <cerrno>
#include <cstdlib>

namespace assay::annotate {

std::string padded(std::string_view text, std::size_t width) {
    std::string out(text);
    if (out.size() < width) out.append(width - out.size(), ' ');
    return out;
}

// https://no-color.org: any value that is not empty switches colour off.
bool terminal_has_color() {
    const char* const no_color = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
           terminal != nullptr && std::string_view(terminal) != "dumb";
}

void Output::section(std::string_view title) {
    const std::string rule(80, '-');
    write(rule + "\n-- " + std::string(title) + "\n" + rule + "\n");
}

void Output::write_buffer() {
    if (std::fwrite(buffer_.data(), 1, buffer_.size(), stream_) != buffer_.size())
        throw Error("cannot write the annotation: " + system_reason(errno));
    buffer_.clear();
}

void Output::finish() {
    write_buffer();
    if (std::fflush(stream_) != 0)
        throw Error("cannot write the annotation: " + system_reason(errno));
}

}  // namespace assay::annotate
