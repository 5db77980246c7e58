// Finds the images of a trace file (assay/trace_file.h), and the chunks of each.
#pragma once

#include "assay/trace_file.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::recording {

struct ChunkPlace {
    trace_chunk_t header;
    std::uint64_t offset;  // in the file, of the byte after the header
};

struct RecordedImage {
    std::uint32_t pid, number;
    std::vector<ChunkPlace> chunks;  // in the order of the file
};

class TraceFileReader {
  public:
    // Reads all chunk headers. Throws Error if the file is no trace file.
    explicit TraceFileReader(std::string path);
    ~TraceFileReader();
    TraceFileReader(const TraceFileReader&) = delete;
    TraceFileReader& operator=(const TraceFileReader&) = delete;

    const std::string& path() const { return path_; }
    // In the order in which the images began.
    const std::vector<RecordedImage>& images() const { return images_; }
    // A message about damage, which begins with the file's name; "" if there is no damage.
    const std::string& damage() const { return damage_; }

    // The chunk's content. Throws Error if it is damaged. Several threads may call it at a time.
    // `room`: memory to use again, because the system clears new memory.
    std::vector<std::byte> read(const ChunkPlace& chunk, std::vector<std::byte> room = {}) const;

  private:
    void look_at_chunks();
    bool find_next_chunk(std::uint64_t& offset) const;
    void sort_images();

    const std::string path_;
    int fd_ = -1;
    std::uint64_t bytes_ = 0;
    std::vector<RecordedImage> images_;
    std::string damage_;
};

}  // namespace assay::recording
