// The records of a trace file: how they are encoded, by chains of like sites, and decoded.
#pragma once

#include "assay/trace_file.h"
#include "assay/trace_types.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::recording {

// Encodes the records of one thread, for one chunk of a trace file: trace_records_t.

class RecordEncoder {
  public:
    RecordEncoder();

    // What follows are records of another part. Its order, events and markers count from those of
    // the one before in this chunk.
    void begin_part(std::uint64_t order, std::uint64_t records, std::uint64_t events,
                    std::span<const trace_part_marker_t> markers);
    // `table`: all sites that there are by now.
    void add(std::span<const trace_record_t> records, std::span<const trace_site_t> table);

    std::uint64_t records() const { return records_; }
    std::size_t bytes() const {
        return runs_.size() + flags_.size() + sites_.size() + values_.size() + aux_.size();
    }
    // The chunk's content. Begins the next one.
    std::vector<std::byte> take();

  private:
    using Stream = std::vector<std::uint8_t>;

    enum class Value : std::uint8_t { kAsFavoured, kAsOther, kNeither };  // as predicted
    // What a value is written as the difference to, if neither.
    struct Near {
        std::uint64_t last, base;
    };
    void add_miss(const trace_record_t& record, std::uint32_t predicted_site, Value value,
                  const Near& near);
    void reset();

    trace_predictor_t predictor_{};
    std::vector<trace_site_state_t> states_;
    std::vector<std::uint32_t> successors_;
    std::vector<std::uint64_t> memory_;
    Stream parts_, runs_, flags_, sites_, values_, aux_;
    std::uint64_t records_ = 0, run_ = 0;
    std::uint32_t part_count_ = 0;
    std::uint64_t order_ = 0, events_ = 0, event_ = 0;
};

// The references that have followed each block's record in the order of the site table, without
// exception: a chain. Where the next records are as predicted, a block's chain is among them, and
// nobody has to predict and learn, record by record, which site is the next.

class SiteChains {
  public:
    // `table`: all sites of an image, which must stay there.
    explicit SiteChains(std::span<const trace_site_t> table);
    // As at the beginning of a chunk.
    void reset();

    // Whether there are sites of values.
    bool has_values() const { return has_values_; }
    bool is_block(std::uint32_t site) const { return chains_[site].kind == TRACE_SITE_BLOCK; }
    // How many references the chain of a block has: of the sites behind its own. 0 while one of
    // them was followed by another record, and for sites of other kinds.
    unsigned references(std::uint32_t site) const {
        const Chain chain = chains_[site];
        return chain.departures == 0 ? chain.references : 0;
    }
    // A site's trace_site_state_t::next changes.
    void change_next(std::uint32_t site, std::uint32_t before, std::uint32_t after);

  private:
    // So small that those of a whole program's hot code stay in the processor's cache.
    struct Chain {
        std::uint8_t kind;  // of the site
        std::uint8_t references;
        std::uint8_t departures;  // how many are followed by other records
    };

    const std::span<const trace_site_t> table_;
    std::vector<Chain> chains_;
    bool has_values_ = false;
};

// Decodes the records of a chunk as assay/trace_file.h does, in less time: the references of a
// block that are as predicted are decoded together.

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
