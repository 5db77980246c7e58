// Encodes the records of one thread, for one chunk of a trace file: trace_records_t.
#pragma once

#include "assay/trace_file.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::recording {

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

}  // namespace assay::recording
