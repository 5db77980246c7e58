#include "framework/recording/trace_file_writer.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace assay::recording {
namespace {

// Of 1 to 19. The streams are mostly what could not be predicted: higher levels gain little.
constexpr int kLevel = 1;

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t written = write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            throw Error(fmt::format("cannot write to {}: {}", path, system_reason(errno)));
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

}  // namespace

TraceFileWriter::TraceFileWriter(const std::string& path)
    : path_(path),
      fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)),
      context_(ZSTD_createCCtx()) {
    if (fd_ < 0) throw Error(fmt::format("cannot write to {}: {}", path, system_reason(errno)));
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    trace_file_header_t header{};
    std::memcpy(header.magic, TRACE_FILE_MAGIC, sizeof header.magic);
    header.version = TRACE_FILE_VERSION;
    write_all(fd_, std::as_bytes(std::span(&header, 1)), path_);
}

TraceFileWriter::~TraceFileWriter() {
    close(fd_);
}

void TraceFileWriter::append(trace_chunk_t header, std::span<const std::byte> content) {
    const std::size_t most = sizeof header + ZSTD_compressBound(content.size());
    if (chunk_.size() < most) chunk_.resize(most);
    const std::size_t stored =
        ZSTD_compress2(context_.get(), chunk_.data() + sizeof header, chunk_.size() - sizeof header,
                       content.data(), content.size());
    if (ZSTD_isError(stored))
        throw Error(fmt::format("cannot compress for {}: {}", path_, ZSTD_getErrorName(stored)));
    header.magic = TRACE_CHUNK_MAGIC;
    header.raw_bytes = static_cast<std::uint32_t>(content.size());
    header.stored_bytes = static_cast<std::uint32_t>(stored);
    header.checksum = trace_chunk_checksum(&header);
    std::memcpy(chunk_.data(), &header, sizeof header);
    write_all(fd_, std::span(chunk_).first(sizeof header + stored), path_);
}

}  // namespace assay::recording
