// The records of one process image in their order, each with the thread and the instruction that it
// is of.
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

// What a trace says of each instruction that was executed: its references, and where it led.

struct Reference {
    std::uint64_t address;
    std::uint16_t bytes;
    std::uint8_t kind;  // TRACE_SITE_READ, _WRITE or _MODIFY
};

struct Executed {
    std::uint32_t thread;
    std::uint64_t number;  // among those of the thread, from 1
    std::uint32_t instr;   // index in the instruction table
    std::span<const Reference> references;
    std::optional<std::uint64_t> next;  // pc of the thread's next instruction, if that is known
};

class ExecutedInstructions {
  public:
    using Consumer = std::function<void(const Executed&)>;

    // `consumer` is called for each instruction of the region, of each thread in their order.
    ExecutedInstructions(const replay::ImageTrace& image, const Region& region, Consumer consumer)
        : image_(image), region_(region), consumer_(std::move(consumer)) {}

    // Of an Event of the image's Walk, in their order.
    void take(const Event& event);
    // Behind the last.
    void finish();

  private:
    struct Thread {
        bool in_block = false;
        std::uint32_t block = 0;
        std::uint32_t position = 0;  // of the next instruction to tell of
        std::uint64_t first = 0;     // number of the block's first one
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
