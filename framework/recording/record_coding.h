// Encodes and decodes the records of a trace file. Chains of reference sites make the decoder
// faster.
#pragma once

#include "assay/trace_file.h"
#include "assay/trace_types.h"
#include "framework/recording/address_prediction.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::recording {

// Encodes the records of one thread, for one chunk of a trace file: trace_records_t.

class RecordEncoder {
  public:
    RecordEncoder();

    // The following records belong to a new part. Its order, events and markers are stored relative
    // to the part before it in this chunk.
    void begin_part(std::uint64_t order, std::uint64_t records, std::uint64_t events,
                    std::span<const trace_part_marker_t> markers);
    // `table`: all sites that exist by now, which include those of the records.
    void add(std::span<const trace_record_t> records, std::span<const trace_site_t> table);

    std::uint64_t records() const { return records_; }
    std::size_t bytes() const;
    // Returns the chunk's content, and begins the next chunk. `room`: memory for the content.
    std::vector<std::byte> take(std::vector<std::byte> room = {});

  private:
    // Grows only in reserve(), so that the encoder's loop needs no checks.
    struct Stream {
        std::vector<std::uint8_t> room;
        std::uint8_t* at = nullptr;

        std::size_t size() const { return static_cast<std::size_t>(at - room.data()); }
        void clear() { at = room.data(); }
        void reserve(std::size_t bytes);
    };
    class Writer;

    template <bool values>
    void add_with(std::span<const trace_record_t> records);
    static void find_last_addresses(trace_predictor_t& predictor,
                                    std::span<const trace_record_t> records);
    void add_value(Writer& writer, const trace_record_t& record, std::uint32_t predicted_site);
    void reset();

    trace_predictor_t predictor_{};
    std::vector<trace_site_state_t> states_;
    std::vector<std::uint32_t> successors_;
    std::vector<std::uint64_t> memory_;
    Stream parts_, runs_, flags_, sites_, values_, aux_;
    std::uint64_t records_ = 0, run_ = 0;
    std::uint32_t part_count_ = 0;
    std::uint64_t order_ = 0, events_ = 0, event_ = 0;
    std::size_t sites_seen_ = 0;
    bool has_memory_values_ = false;  // among these sites
};

// Finds references that can be decoded together. The chain of a block is the references that have
// always followed the block's record in the order of the site table. If the next records are as
// predicted, they contain the block's chain, and the decoder need not predict and learn each site.

class SiteChains {
  public:
    // `table`: all sites of an image. It must outlive this.
    explicit SiteChains(std::span<const trace_site_t> table);
    // Restores the state at the beginning of a chunk.
    void reset();

    // True if there are sites of values of memory, whose predictions need the addresses of
    // references.
    bool has_memory_values() const { return has_memory_values_; }
    unsigned kind(std::uint32_t site) const { return chains_[site].kind; }
    // The length of a block's chain, whose sites follow the block's own. 0 for sites of other
    // kinds, and while another record follows one of the chain's sites.
    unsigned references(std::uint32_t site) const {
        const Chain chain = chains_[site];
        return chain.departures == 0 ? chain.references : 0;
    }
    // Call this when a site's trace_site_state_t::next changes.
    void change_next(std::uint32_t site, std::uint32_t before, std::uint32_t after);

  private:
    // Small, so that the chains of a large program's hot code stay in the processor's cache.
    struct Chain {
        std::uint8_t kind;  // of the site
        std::uint8_t references;
        std::uint8_t departures;  // how many sites of the chain other records follow
    };

    const std::span<const trace_site_t> table_;
    std::vector<Chain> chains_;
    bool has_memory_values_ = false;
};

// Decodes the records of a chunk as assay/trace_file.h does, but faster: it decodes the predicted
// references of a block together.

class RecordDecoder {
  public:
    // `table`: all sites of the image. It must outlive this. Throws Error without enough memory.
    explicit RecordDecoder(std::span<const trace_site_t> table);
    ~RecordDecoder() { trace_decoder_release(&decoder_); }
    RecordDecoder(const RecordDecoder&) = delete;
    RecordDecoder& operator=(const RecordDecoder&) = delete;

    // `content`: the decompressed chunk. It must live until the chunk is decoded. False if it is
    // damaged.
    bool begin(const trace_chunk_t& chunk, std::span<const std::byte> content);
    // Returns what trace_next_part() returns.
    int next_part(trace_part_t& part) { return trace_next_part(&decoder_, &part); }
    trace_part_marker_t next_marker() { return trace_next_marker(&decoder_); }
    // Skips the rest of the chunk.
    void end_chunk() { decoder_.parts_left = 0; }
    // Fills `records`, and returns their number. It is smaller at the end of the chunk, or if the
    // chunk is damaged. A block's record has as its `value` how many of the next records are
    // references of the sites after its own, in order. There may be more such references.
    std::size_t next(std::span<trace_record_t> records);

  private:
    bool next_predicted(trace_record_t& record);
    bool next_record(trace_record_t& record);
    std::size_t next_references(std::uint32_t first, std::span<trace_record_t> records);

    trace_decoder_t decoder_;
    SiteChains chains_;
};

}  // namespace assay::recording
