// Writes a trace file (assay/trace_file.h) chunk by chunk, in several threads. Several processes
// can append to one file.
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

// For use by one thread at a time.
class ChunkCompressor {
  public:
    ChunkCompressor();
    // Returns header and frame. Fills in the sizes and the checksum of the header. Throws Error.
    std::vector<std::byte> chunk(trace_chunk_t header, std::span<const std::byte> content);

  private:
    struct FreeContext {
        void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    };
    const std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
    std::vector<std::byte> room_;
};

class TraceFileWriter {
  public:
    // Creates the file, or empties it. Throws Error.
    explicit TraceFileWriter(const std::string& path);
    ~TraceFileWriter();
    TraceFileWriter(const TraceFileWriter&) = delete;
    TraceFileWriter& operator=(const TraceFileWriter&) = delete;

    // Appends a chunk of a ChunkCompressor with one write(2), so that chunks of several processes
    // do not mix. Throws Error.
    void write(std::span<const std::byte> chunk);
    // Compresses a chunk and writes it.
    void append(const trace_chunk_t& header, std::span<const std::byte> content);

    const std::string& path() const { return path_; }

  private:
    const std::string path_;
    int fd_;
    ChunkCompressor compressor_;
};

// Compresses the chunks of a trace file in several threads. Writes them in the order in which they
// were finished, so that the file does not depend on the number of threads.

// Consecutive records of a thread of the program.
struct RecordPart {
    std::uint64_t order = 0;  // this, `events` and `markers`: as in trace_part_t
    std::uint64_t events = 0;
    std::vector<trace_part_marker_t> markers;
    std::span<const trace_record_t> records;
    std::span<const trace_site_t> table;  // all sites that exist by now
};

class ChunkWriter {
  public:
    // A chunk that is still growing, with the records of one thread.
    class Chunk;

    // `file` must outlive this. Starts at most `threads` threads, when there is work for them.
    ChunkWriter(TraceFileWriter& file, std::size_t threads);
    // The number of processors for this process, limited to a useful number of threads.
    static std::size_t useful_threads();
    // May lose chunks that have not been drained.
    ~ChunkWriter();
    ChunkWriter(const ChunkWriter&) = delete;
    ChunkWriter& operator=(const ChunkWriter&) = delete;

    // One thread calls all of the following. They throw Error if an earlier chunk could not be
    // written.

    // Any number of chunks can be open at a time.
    std::shared_ptr<Chunk> begin();
    // Encodes the part at once: copying records for another thread takes as long as encoding them.
    static void add(Chunk& chunk, const RecordPart& part);
    // Closes the chunk. `header`: as for TraceFileWriter::append(). Waits if too many chunks wait.
    void finish(const std::shared_ptr<Chunk>& chunk, const trace_chunk_t& header);
    // Appends a chunk of another kind.
    void append(const trace_chunk_t& header, std::span<const std::byte> content);
    // Waits until all finished chunks are in the file.
    void drain();

  private:
    void start_thread();
    void work();
    static void compress(Chunk& chunk, ChunkCompressor& compressor, std::vector<std::byte>& room);
    void write_what_is_ready(std::unique_lock<std::mutex>& held);
    void throw_if_failed() const;

    TraceFileWriter& file_;
    const std::size_t most_threads_;

    std::mutex mutex_;  // protects all following members
    std::condition_variable work_, progress_;
    std::deque<std::shared_ptr<Chunk>> waiting_;   // for a thread
    std::deque<std::shared_ptr<Chunk>> finished_;  // but not yet written, in order
    std::vector<std::unique_ptr<RecordEncoder>> spare_encoders_;
    std::size_t idle_ = 0;  // threads without work
    bool writing_ = false;  // one thread is writing
    bool ends_ = false;
    std::exception_ptr problem_;
    std::vector<std::thread> threads_;
};

}  // namespace assay::recording
