#include "framework/recording/trace_file_writer.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace assay::recording {

namespace {

// From 1 to 19. The streams hold mostly unpredictable values, so that higher levels gain little.
constexpr int kLevel = 1;

}  // namespace

ChunkCompressor::ChunkCompressor() : context_(ZSTD_createCCtx()) {
    if (!context_) throw Error("not enough memory to compress a trace");
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

std::vector<std::byte> ChunkCompressor::chunk(trace_chunk_t header,
                                              std::span<const std::byte> content) {
    const std::size_t most = sizeof header + ZSTD_compressBound(content.size());
    if (room_.size() < most) room_.resize(most);
    const std::size_t stored = ZSTD_compress2(context_.get(), room_.data() + sizeof header,
                                              most - sizeof header, content.data(), content.size());
    if (ZSTD_isError(stored))
        throw Error(fmt::format("cannot compress a trace: {}", ZSTD_getErrorName(stored)));
    header.magic = TRACE_CHUNK_MAGIC;
    header.raw_bytes = static_cast<std::uint32_t>(content.size());
    header.stored_bytes = static_cast<std::uint32_t>(stored);
    header.checksum = trace_chunk_checksum(&header);
    std::memcpy(room_.data(), &header, sizeof header);
    return {room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(sizeof header + stored)};
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

namespace {

// One thread encodes, which takes longer than compressing.
constexpr std::size_t kUsefulThreads = 2;

}  // namespace

class ChunkWriter::Chunk {
  public:
    bool ready = false;
    std::unique_ptr<RecordEncoder> encoder;  // null: a chunk of another kind; `content` is complete
    trace_chunk_t header{};
    std::vector<std::byte> content;
    std::vector<std::byte> made;  // the bytes to write
};

std::size_t ChunkWriter::useful_threads() {
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return std::clamp<std::size_t>(static_cast<std::size_t>(count), 1, kUsefulThreads);
}

ChunkWriter::ChunkWriter(TraceFileWriter& file, std::size_t threads)
    : file_(file), most_threads_(threads) {}

ChunkWriter::~ChunkWriter() {
    {
        const std::lock_guard held(mutex_);
        ends_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ChunkWriter::throw_if_failed() const {
    if (problem_) std::rethrow_exception(problem_);
}

std::shared_ptr<ChunkWriter::Chunk> ChunkWriter::begin() {
    const std::lock_guard held(mutex_);
    throw_if_failed();
    auto chunk = std::make_shared<Chunk>();
    if (spare_encoders_.empty()) spare_encoders_.push_back(std::make_unique<RecordEncoder>());
    chunk->encoder = std::move(spare_encoders_.back());
    spare_encoders_.pop_back();
    return chunk;
}

void ChunkWriter::add(Chunk& chunk, const RecordPart& part) {
    chunk.encoder->begin_part(part.order, part.records.size(), part.events, part.markers);
    chunk.encoder->add(part.records, part.table);
}

void ChunkWriter::finish(const std::shared_ptr<Chunk>& chunk, const trace_chunk_t& header) {
    chunk->header = header;
    std::unique_lock held(mutex_);
    progress_.wait(held, [&] { return problem_ || waiting_.size() <= most_threads_; });
    throw_if_failed();
    finished_.push_back(chunk);
    waiting_.push_back(chunk);
    if (idle_ < waiting_.size() && threads_.size() < most_threads_) start_thread();
    held.unlock();
    work_.notify_one();
}

void ChunkWriter::append(const trace_chunk_t& header, std::span<const std::byte> content) {
    auto chunk = std::make_shared<Chunk>();
    chunk->content.assign(content.begin(), content.end());
    finish(chunk, header);
}

void ChunkWriter::drain() {
    std::unique_lock held(mutex_);
    progress_.wait(held, [&] { return problem_ || (finished_.empty() && !writing_); });
    throw_if_failed();
}

// If the system allows no more threads, the existing ones do the work.
void ChunkWriter::start_thread() {
    try {
        threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& e) {
        if (threads_.empty())
            throw Error(fmt::format("cannot start a thread to write a trace: {}", e.what()));
    }
}

void ChunkWriter::work() {
    std::unique_lock held(mutex_);
    try {
        ChunkCompressor compressor;
        std::vector<std::byte> room;
        for (;;) {
            ++idle_;
            work_.wait(held, [&] { return ends_ || !waiting_.empty(); });
            --idle_;
            if (ends_) return;
            const std::shared_ptr<Chunk> chunk = std::move(waiting_.front());
            waiting_.pop_front();
            progress_.notify_all();
            held.unlock();
            compress(*chunk, compressor, room);
            held.lock();
            if (chunk->encoder) spare_encoders_.push_back(std::move(chunk->encoder));
            chunk->ready = true;
            write_what_is_ready(held);
        }
    } catch (...) {
        if (!held.owns_lock()) held.lock();
        if (!problem_) problem_ = std::current_exception();
        progress_.notify_all();
    }
}

// `room`: memory for the content. The system clears each new page, which takes long.
void ChunkWriter::compress(Chunk& chunk, ChunkCompressor& compressor,
                           std::vector<std::byte>& room) {
    if (!chunk.encoder) {
        chunk.made = compressor.chunk(chunk.header, std::exchange(chunk.content, {}));
        return;
    }
    room = chunk.encoder->take(std::move(room));
    chunk.made = compressor.chunk(chunk.header, room);
}

void ChunkWriter::write_what_is_ready(std::unique_lock<std::mutex>& held) {
    if (writing_) return;  // the writing thread will see it
    writing_ = true;
    while (!finished_.empty() && finished_.front()->ready) {
        const std::shared_ptr<Chunk> chunk = std::move(finished_.front());
        finished_.pop_front();
        held.unlock();
        file_.write(chunk->made);
        held.lock();
    }
    writing_ = false;
    progress_.notify_all();
}

}  // namespace assay::recording
