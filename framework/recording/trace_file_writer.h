// Writes a trace file (assay/trace_file.h). Several processes can append to one file.
#pragma once

#include "assay/trace_file.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::recording {

// Of one thread at a time.
class ChunkCompressor {
  public:
    ChunkCompressor();
    // Header and frame. Sizes and checksum of the header are filled in. Throws Error.
    std::vector<std::byte> chunk(trace_chunk_t header, std::span<const std::byte> content);

  private:
    struct FreeContext {
        void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    };
    const std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
};

class TraceFileWriter {
  public:
    // Makes the file, or empties it. Throws Error.
    explicit TraceFileWriter(const std::string& path);
    ~TraceFileWriter();
    TraceFileWriter(const TraceFileWriter&) = delete;
    TraceFileWriter& operator=(const TraceFileWriter&) = delete;

    // Appends a chunk that a ChunkCompressor has made with one write(2), so that chunks of several
    // processes do not get into each other. Throws Error.
    void write(std::span<const std::byte> chunk);
    // Both in one.
    void append(const trace_chunk_t& header, std::span<const std::byte> content);

    const std::string& path() const { return path_; }

  private:
    const std::string path_;
    int fd_;
    ChunkCompressor compressor_;
};

}  // namespace assay::recording
