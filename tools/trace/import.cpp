#include "tools/trace/import.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "tools/trace/import_formats.h"

#include <fmt/core.h>
#include <unistd.h>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace assay::tracing {
namespace {

void check_input(const Import& import) {
    constexpr std::string_view kXz(
        "\xfd"
        "7zXZ\0",
        6);
    if (!events::can_be_read_again(import.file))
        throw Error(
            fmt::format("{} cannot be read twice, as an import does: write it to a file "
                        "first",
                        import.file));
    const std::string beginning = events::beginning_of_file(import.file, kXz.size());
    if (beginning == kXz)
        throw Error(
            fmt::format("{} is compressed by xz: decompress it first (xz -d)", import.file));
    if (beginning.empty()) throw Error(fmt::format("{} is empty", import.file));
    std::error_code ignored;
    if (std::filesystem::equivalent(import.file, import.output, ignored))
        throw Error(fmt::format("-o {}: that is the file that is imported", import.output));
}

}  // namespace

void import_trace(const Import& import) {
    check_input(import);
    TraceMaker maker(import.output, import.file);
    try {
        if (import.format == Format::kLackey)
            read_lackey(import, maker);
        else if (import.format == Format::kDin)
            read_din(import, maker);
        else
            read_champsim(import, maker);
        maker.finish();
        if (maker.instructions() == 0)
            throw Error(fmt::format("{} has no instructions", import.file));
    } catch (const Error&) {
        if (std::filesystem::is_regular_file(import.output)) unlink(import.output.c_str());
        throw;
    }
}

}  // namespace assay::tracing
