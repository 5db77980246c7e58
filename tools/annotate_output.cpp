#include "tools/annotate_output.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <cerrno>

namespace assay::annotate {

std::string padded(std::string_view text, std::size_t width) {
    std::string out(text);
    if (out.size() < width) out.append(width - out.size(), ' ');
    return out;
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
