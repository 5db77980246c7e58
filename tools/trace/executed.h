// What a trace says of each instruction that was executed: its references, and where it led.
#pragma once

#include "tools/trace/walk.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace assay::tracing {

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
