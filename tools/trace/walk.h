// Reads the records of one process image in their order, each with its thread and instruction.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/parallel_parts.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::tracing {

// The selected part of an image. Instructions are counted from 1 in each thread.
struct Region {
    std::optional<std::uint32_t> thread;
    std::uint64_t from = 1, to = UINT64_MAX;

    bool is_all() const { return !thread && from <= 1 && to == UINT64_MAX; }
    bool has(std::uint64_t instruction) const { return instruction >= from && instruction <= to; }
};

// A record and its place.
struct Event {
    std::uint32_t thread;
    std::uint64_t instruction;  // number of the instruction; for a block, of its first one
    std::uint32_t instr;        // index in the instruction table
    const trace_site_t* site;
    std::uint64_t value;
    std::uint32_t aux;
};

class Walk {
  public:
    // Chunks outside the region are not decompressed. `image` must outlive this object.
    Walk(const replay::ImageTrace& image, const Region& region);

    // Returns the next record of the chunks that overlap the region, which includes records outside
    // it. False after the last one.
    bool next(Event& event);
    // The reason why records are missing, or "". Complete after the last record.
    const std::string& problem() const { return parts_.problem(); }

  private:
    bool next_part();

    const replay::ImageTrace& image_;
    replay::PartSequence parts_;
    replay::PartSequence::Part part_{};
    std::size_t at_ = 0;
    std::map<std::uint32_t, trace_position_t> threads_;
    trace_position_t* thread_ = nullptr;
};

// An executed instruction: its references and its successor.

struct Reference {
    std::uint64_t address;
    std::uint16_t bytes;
    std::uint8_t kind;  // TRACE_SITE_READ, _WRITE or _MODIFY
};

struct Executed {
    std::uint32_t thread;
    std::uint64_t number;  // among the instructions of the thread, from 1
    std::uint32_t instr;   // index in the instruction table
    std::span<const Reference> references;
    std::optional<std::uint64_t> next;  // pc of the thread's next instruction, if known
};

class ExecutedInstructions {
  public:
    using Consumer = std::function<void(const Executed&)>;

    // `consumer` is called for each instruction of the region, in the order of its thread.
    ExecutedInstructions(const replay::ImageTrace& image, const Region& region, Consumer consumer)
        : image_(image), region_(region), consumer_(std::move(consumer)) {}

    // Takes the Events of the image's Walk in their order.
    void take(const Event& event);
    // Call it after the last event.
    void finish();

  private:
    struct Thread {
        bool in_block = false;
        std::uint32_t block = 0;
        std::uint32_t position = 0;  // the next instruction to pass to the consumer
        std::uint64_t first = 0;     // number of the block's first instruction
        std::vector<Reference> references;
    };
    void tell_until(std::uint32_t number, Thread& thread, std::uint32_t position,
                    std::optional<std::uint64_t> next);
    std::uint32_t length(const Thread& thread) const;

    const replay::ImageTrace& image_;
    const Region region_;
    const Consumer consumer_;
    std::map<std::uint32_t, Thread> threads_;
};

}  // namespace assay::tracing
