// Traces of drmemtrace. What is imported must be a consistent trace.
//
// The first byte chooses the version and the type of the file. The others are records that follow
// the header, in a shorter form: a byte for the type, one for the size, and as many of the value's
// bytes as the third byte says. Without them, the value is near the last one.
#include "framework/driver/replay/image_trace.h"
#include "framework/recording/trace_file_reader.h"
#include "framework/support/error.h"
#include "tests/fuzz/memory_file.h"
#include "tools/trace/check.h"
#include "tools/trace/drmemtrace_file.h"
#include "tools/trace/import.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace assay;
using namespace assay::tracing;

namespace {

void add(std::string& to, unsigned type, unsigned size, std::uint64_t value) {
    const auto short_type = static_cast<std::uint16_t>(type);
    const auto short_size = static_cast<std::uint16_t>(size);
    to.append(reinterpret_cast<const char*>(&short_type), sizeof short_type);
    to.append(reinterpret_cast<const char*>(&short_size), sizeof short_size);
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string file_of(const std::uint8_t* data, std::size_t size) {
    using namespace assay::tracing::drmemtrace;
    constexpr std::uint64_t kTypes[] = {kX86,
                                        kX86 | kEncodings,
                                        kAarch64 | kEncodings,
                                        kX86 | kEncodings | kKernelCode,
                                        kEncodings | kSynthetic,
                                        kX86 | kInstructionsOnly,
                                        kX86 | kEncodings,
                                        0};
    std::string file;
    add(file, kHeader, 0, 0);
    add(file, kMarker, kVersion, kOldestVersion + (data[0] >> 3U) % 6);
    add(file, kMarker, kFileType, kTypes[data[0] % 8]);
    add(file, kThread, 0, 1);
    add(file, kPid, 0, 1);
    std::uint64_t value = 0x1000;
    for (std::size_t at = 1; size - at >= 3;) {
        const unsigned type = data[at], bytes = data[at + 1], count = data[at + 2] % 9;
        const std::uint8_t* const first = data + at + 3;
        at += 3;
        if (count == 0) value += data[at - 1] / 9U;
        const std::size_t given = std::min<std::size_t>(count, size - at);
        std::memcpy(&value, first, given);
        at += given;
        add(file, type, bytes, value);
    }
    add(file, kFooter, 0, 0);
    return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const MemoryFile input(file_of(data, size)), output;
    try {
        import_trace({Format::kDrmemtrace, input.path(), output.path(), 1});
    } catch (const Error&) {
        return 0;
    }
    const recording::TraceFileReader file(output.path());
    Options options;
    options.file = output.path();
    Checked all;
    for (const recording::RecordedImage& recorded : file.images())
        if (!check_image(options, replay::ImageTrace(file, recorded), recorded, all).empty())
            std::abort();
    if (all.instructions == 0 || !file.damage().empty()) std::abort();
    return 0;
}
