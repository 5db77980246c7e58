#include "framework/recording/trace_file_reader.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace assay::recording {
namespace {

// False if the file has fewer bytes.
bool read_at(int fd, std::uint64_t offset, void* into, std::size_t bytes) {
    auto* at = static_cast<std::byte*>(into);
    while (bytes != 0) {
        const ssize_t got = pread(fd, at, bytes, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

}  // namespace

// O_NONBLOCK: opening a FIFO must not block.
TraceFileReader::TraceFileReader(std::string path)
    : path_(std::move(path)), fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw Error(fmt::format("cannot read {}: {}", path_, system_reason(errno)));
    struct stat status {};
    trace_file_header_t header{};
    const bool regular = fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
    const bool there = regular && read_at(fd_, 0, &header, sizeof header);
    std::string problem;
    if (!regular)
        problem = fmt::format("{} is no regular file, which a trace must be", path_);
    else if (!there || std::memcmp(header.magic, TRACE_FILE_MAGIC, sizeof header.magic) != 0 ||
             header.version == 0)
        problem = fmt::format("{} is no trace: those are made by assay record", path_);
    else if (header.version > TRACE_FILE_VERSION)
        problem = fmt::format("{} is a trace of version {}, and this assay reads up to {}", path_,
                              header.version, int{TRACE_FILE_VERSION});
    if (!problem.empty()) {
        close(fd_);
        throw Error(problem);
    }
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    look_at_chunks();
    sort_images();
}

TraceFileReader::~TraceFileReader() {
    close(fd_);
}

// After a chunk that one process wrote only in part, there may be chunks of other processes.
void TraceFileReader::look_at_chunks() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
    for (std::uint64_t offset = sizeof(trace_file_header_t); offset < bytes_;) {
        ChunkPlace place{};
        const bool whole = read_at(fd_, offset, &place.header, sizeof place.header) &&
                           trace_chunk_is_whole(&place.header) &&
                           place.header.stored_bytes <= bytes_ - offset - sizeof place.header;
        if (!whole) {
            if (damage_.empty())
                damage_ =
                    fmt::format("{} is damaged at byte {}, or was cut off there", path_, offset);
            if (!find_next_chunk(offset)) return;
            continue;
        }
        place.offset = offset + sizeof place.header;
        offset = place.offset + place.header.stored_bytes;
        const auto [found, is_new] =
            known.try_emplace({place.header.pid, place.header.image}, images_.size());
        if (is_new) images_.push_back({place.header.pid, place.header.image, {}});
        images_[found->second].chunks.push_back(place);
    }
}

// Images write when they have data, and not in the order in which they began.
void TraceFileReader::sort_images() {
    const auto place = [&](const RecordedImage& image) -> std::uint32_t {
        trace_image_t begin{};
        if (image.chunks.front().header.kind != TRACE_CHUNK_IMAGE) return 0;
        try {
            const std::vector<std::byte> content = read(image.chunks.front());
            std::memcpy(&begin, content.data(), std::min(content.size(), sizeof begin));
        } catch (const Error&) {
            // the use of the image reports the damage
        }
        return begin.place;
    };
    std::vector<std::pair<std::uint32_t, RecordedImage>> placed;
    placed.reserve(images_.size());
    for (RecordedImage& image : images_) {
        const std::uint32_t at = place(image);
        placed.emplace_back(at, std::move(image));
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    images_.clear();
    for (auto& [at, image] : placed) images_.push_back(std::move(image));
}

// Searches after `offset`, and stores the chunk's offset there.
bool TraceFileReader::find_next_chunk(std::uint64_t& offset) const {
    constexpr std::size_t kPortion = 1 << 20;
    std::vector<char> portion(kPortion);
    const std::string_view magic("chnk");
    for (std::uint64_t from = offset + 1; from + sizeof(trace_chunk_t) <= bytes_;) {
        const std::size_t some = std::min<std::uint64_t>(kPortion, bytes_ - from);
        if (!read_at(fd_, from, portion.data(), some)) return false;
        const std::string_view text(portion.data(), some);
        for (std::size_t at = text.find(magic); at != std::string_view::npos;
             at = text.find(magic, at + 1)) {
            trace_chunk_t header;
            if (!read_at(fd_, from + at, &header, sizeof header)) return false;
            if (!trace_chunk_is_whole(&header)) continue;
            offset = from + at;
            return true;
        }
        if (some < kPortion) return false;
        from += some - (magic.size() - 1);
    }
    return false;
}

std::vector<std::byte> TraceFileReader::read(const ChunkPlace& chunk,
                                             std::vector<std::byte> room) const {
    // The stored bytes lie behind the content.
    std::vector<std::byte> content = std::move(room);
    const std::size_t bytes = chunk.header.raw_bytes, stored_bytes = chunk.header.stored_bytes;
    content.resize(bytes + stored_bytes);
    std::byte* const stored = content.data() + bytes;
    if (!read_at(fd_, chunk.offset, stored, stored_bytes))
        throw Error(fmt::format("cannot read {} at byte {}", path_, chunk.offset));
    if (trace_chunk_decompress(&chunk.header, stored, content.data()) != 0)
        throw Error(fmt::format("{} is damaged: the chunk at byte {} does not decompress", path_,
                                chunk.offset - sizeof chunk.header));
    content.resize(bytes);
    return content;
}

}  // namespace assay::recording
