// Writes a trace file (assay/trace_file.h): chunk by chunk, and in several threads. Several
// processes can append to one file.
#pragma once

#include "assay/trace_file.h"
#include "framework/recording/record_coding.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
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

// Encodes and compresses the chunks of a trace file in several threads, and writes them in the
// order in which they were finished: the file does not depend on how many threads there are.

// Consecutive records of a thread of the program.
struct RecordPart {
    std::uint64_t order = 0;  // as in trace_part_t, and likewise:
    std::uint64_t events = 0;
    std::vector<trace_part_marker_t> markers;
    std::span<const trace_record_t> records;
    std::span<const trace_site_t> table;  // all sites that there are by now
};

class ChunkWriter {
  public:
    // Of one thread's records, that are still coming.
    class Chunk;

    // `file` must live longer. At most `threads` are started, when there is work for them.
    ChunkWriter(TraceFileWriter& file, std::size_t threads);
    // As many as there are processors for this process, but no more than are of use.
    static std::size_t useful_threads();
    // What has not been drained may be lost.
    ~ChunkWriter();
    ChunkWriter(const ChunkWriter&) = delete;
    ChunkWriter& operator=(const ChunkWriter&) = delete;

    // All of the following throw Error if an earlier chunk could not be written, and are called by
    // one thread.

    // For any number of chunks at a time.
    std::shared_ptr<Chunk> begin();
    // Copies the part, but for the table, which must stay until drain(), and may only grow. Waits
    // where too much is waiting to be encoded.
    void add(const std::shared_ptr<Chunk>& chunk, const RecordPart& part);
    // Nothing more will be added. `header`: as for TraceFileWriter::append().
    void finish(const std::shared_ptr<Chunk>& chunk, const trace_chunk_t& header);
    // A chunk of another kind.
    void append(const trace_chunk_t& header, std::span<const std::byte> content);
    // Waits until all that was finished is in the file.
    void drain();

  private:
    struct Copy {
        RecordPart part;
        std::vector<trace_record_t> records;  // which the part has
    };

    void queue(std::unique_lock<std::mutex>& held, const std::shared_ptr<Chunk>& chunk);
    void start_thread();
    void work();
    void work_on(std::unique_lock<std::mutex>& held, Chunk& chunk, ChunkCompressor& compressor);
    void encode(std::unique_lock<std::mutex>& held, Chunk& chunk);
    void write_what_is_ready(std::unique_lock<std::mutex>& held);
    void throw_if_failed() const;

    TraceFileWriter& file_;
    const std::size_t most_threads_, most_waiting_;

    std::mutex mutex_;  // of all that follows
    std::condition_variable work_, progress_;
    std::deque<std::shared_ptr<Chunk>> waiting_;   // for a thread
    std::deque<std::shared_ptr<Chunk>> finished_;  // and not yet written, in order
    std::vector<std::unique_ptr<RecordEncoder>> spare_encoders_;
    std::vector<std::vector<trace_record_t>> spare_records_;
    std::size_t records_waiting_ = 0;
    std::size_t idle_ = 0;  // threads
    bool writing_ = false;  // one of them
    bool ends_ = false;
    std::exception_ptr problem_;
    std::vector<std::thread> threads_;
};

}  // namespace assay::recording
