// The current run of each operand in one thread.
#pragma once

#include "plugins/effective_address/reference_run.h"

#include <cstdint>

namespace effective_address {

// The same state as in the driver, which omits references that continue a run: trace_capture_runs.
struct alignas(32) Stream {
    std::uint64_t last;   // last address; 0 before the first
    std::int64_t stride;  // stride of the last reference; the first reference has its address as
                          // its stride
    std::uint64_t count;  // references of the run that have not been added to the operand yet
    bool known;           // there was a reference
    std::uint32_t since;  // the thread's latest site when the run began

    ReferenceRun run() const { return {last, stride, count}; }
};

// One stream for each operand, all zero at first. Reserves address space for as many as a driver
// can have sites. Only the used pages take memory.
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
