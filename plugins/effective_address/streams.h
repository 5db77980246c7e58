// Where each operand is in one thread.
#pragma once

#include "plugins/effective_address/reference_run.h"

#include <cstdint>

namespace effective_address {

// As the driver has it that leaves out what goes on: trace_capture_runs.
struct alignas(32) Stream {
    std::uint64_t last;   // address; 0 before the first
    std::int64_t stride;  // of the last reference; of the first one its address
    std::uint64_t count;  // of references in the run that are not yet added to the operand
    bool known;           // there was a reference
    std::uint32_t since;  // the thread's latest site when the run began

    ReferenceRun run() const { return {last, stride, count}; }
};

// One for each operand, all zero at first. Room for as many as a driver has sites is reserved, of
// which pages exist that are used.
class Streams {
  public:
    // Throws std::bad_alloc.
    Streams();
    ~Streams();
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    Stream* data() const { return streams_; }

  private:
    Stream* streams_;
};

}  // namespace effective_address
