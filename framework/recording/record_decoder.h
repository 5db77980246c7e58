// Decodes the records of a chunk as assay/trace_file.h does, in less time: the references of a
// block that are as predicted are decoded together.
#pragma once

#include "assay/trace_file.h"
#include "framework/recording/site_chains.h"

#include <cstddef>
#include <span>

namespace assay::recording {

class RecordDecoder {
  public:
    // `table`: all sites of the image, which must stay there. Throws Error if there is no memory.
    explicit RecordDecoder(std::span<const trace_site_t> table);
    ~RecordDecoder() { trace_decoder_release(&decoder_); }
    RecordDecoder(const RecordDecoder&) = delete;
    RecordDecoder& operator=(const RecordDecoder&) = delete;

    // `content`: of the chunk, decompressed. It must stay while it is decoded. False if it is
    // damaged.
    bool begin(const trace_chunk_t& chunk, std::span<const std::byte> content);
    // As trace_next_part().
    int next_part(trace_part_t& part) { return trace_next_part(&decoder_, &part); }
    trace_part_marker_t next_marker() { return trace_next_marker(&decoder_); }
    // No part follows, before the next chunk.
    void end_chunk() { decoder_.parts_left = 0; }
    // Fills `records`. How many there were: less at the end of the chunk, or if it is damaged. The
    // `value` of a block's record is how many of those behind it are references of the sites behind
    // its own, one after the other. It may be less than there are.
    std::size_t next(std::span<trace_record_t> records);

  private:
    bool next_block(trace_record_t& record);
    bool next_record(trace_record_t& record);
    std::size_t next_references(std::uint32_t first, std::span<trace_record_t> records);

    trace_decoder_t decoder_;
    SiteChains chains_;
};

}  // namespace assay::recording
