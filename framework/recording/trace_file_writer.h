// Writes a trace file (assay/trace_file.h). Several processes can append to one file.
#pragma once

#include "assay/trace_file.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::recording {

class TraceFileWriter {
  public:
    // Makes the file, or empties it. Throws Error.
    explicit TraceFileWriter(const std::string& path);
    ~TraceFileWriter();
    TraceFileWriter(const TraceFileWriter&) = delete;
    TraceFileWriter& operator=(const TraceFileWriter&) = delete;

    // Appends a chunk with one write(2), so that chunks of several processes do not get into each
    // other. Sizes and checksum of the header are filled in. Throws Error.
    void append(trace_chunk_t header, std::span<const std::byte> content);

    const std::string& path() const { return path_; }

  private:
    struct FreeContext {
        void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    };

    const std::string path_;
    int fd_;
    const std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
    std::vector<std::byte> chunk_;  // header and frame
};

}  // namespace assay::recording
