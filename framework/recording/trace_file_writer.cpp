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

}  // namespace

ChunkCompressor::ChunkCompressor() : context_(ZSTD_createCCtx()) {
    if (!context_) throw Error("not enough memory to compress a trace");
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

std::vector<std::byte> ChunkCompressor::chunk(trace_chunk_t header,
                                              std::span<const std::byte> content) {
    std::vector<std::byte> made(sizeof header + ZSTD_compressBound(content.size()));
    const std::size_t stored =
        ZSTD_compress2(context_.get(), made.data() + sizeof header, made.size() - sizeof header,
                       content.data(), content.size());
    if (ZSTD_isError(stored))
        throw Error(fmt::format("cannot compress a trace: {}", ZSTD_getErrorName(stored)));
    header.magic = TRACE_CHUNK_MAGIC;
    header.raw_bytes = static_cast<std::uint32_t>(content.size());
    header.stored_bytes = static_cast<std::uint32_t>(stored);
    header.checksum = trace_chunk_checksum(&header);
    std::memcpy(made.data(), &header, sizeof header);
    made.resize(sizeof header + stored);
    return made;
}

TraceFileWriter::TraceFileWriter(const std::string& path)
    : path_(path),
      fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)) {
    if (fd_ < 0) throw Error(fmt::format("cannot write to {}: {}", path, system_reason(errno)));
    trace_file_header_t header{};
    std::memcpy(header.magic, TRACE_FILE_MAGIC, sizeof header.magic);
    header.version = TRACE_FILE_VERSION;
    write(std::as_bytes(std::span(&header, 1)));
}

TraceFileWriter::~TraceFileWriter() {
    close(fd_);
}

void TraceFileWriter::write(std::span<const std::byte> chunk) {
    while (!chunk.empty()) {
        const ssize_t written = ::write(fd_, chunk.data(), chunk.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            throw Error(fmt::format("cannot write to {}: {}", path_, system_reason(errno)));
        chunk = chunk.subspan(static_cast<std::size_t>(written));
    }
}

void TraceFileWriter::append(const trace_chunk_t& header, std::span<const std::byte> content) {
    write(compressor_.chunk(header, content));
}

}  // namespace assay::recording
