// The records of one process image in their order, each with the thread and the instruction that it
// is of.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/part_sequence.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace assay::tracing {

// What of an image is looked at. Instructions are counted from 1, those of each thread.
struct Region {
    std::optional<std::uint32_t> thread;
    std::uint64_t from = 1, to = UINT64_MAX;

    bool is_all() const { return !thread && from <= 1 && to == UINT64_MAX; }
    bool has(std::uint64_t instruction) const { return instruction >= from && instruction <= to; }
};

// A record and its place.
struct Event {
    std::uint32_t thread;
    std::uint64_t instruction;  // its number; that of the first one of a block
    std::uint32_t instr;        // index in the instruction table
    const trace_site_t* site;
    std::uint64_t value;
    std::uint32_t aux;
};

class Walk {
  public:
    // Chunks that have nothing of the region are not decompressed. `image` must live longer.
    Walk(const replay::ImageTrace& image, const Region& region);

    // Of the region, and of what its chunks have around it. False behind the last.
    bool next(Event& event);
    // Why something is missing; "" if nothing is. Known behind the last.
    const std::string& problem() const { return parts_.problem(); }

  private:
    struct Thread {
        std::uint64_t executed = 0;  // the instructions of the block included
        std::optional<std::uint32_t> block;
    };
    bool next_part();
    std::uint64_t number_of(Thread& thread, const trace_record_t& record);

    const replay::ImageTrace& image_;
    replay::PartSequence parts_;
    replay::PartSequence::Part part_{};
    std::size_t at_ = 0;
    std::map<std::uint32_t, Thread> threads_;
    Thread* thread_ = nullptr;
};

}  // namespace assay::tracing
