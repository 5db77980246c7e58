// Tells when a process image has ended (framework/trace/launch.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::collector {

class Lifeline {
  public:
    // A new pipe, whose writing end a driver shall inherit. Throws Error.
    Lifeline();
    // The reading end of one that a driver has made.
    explicit Lifeline(int reading_end) : reading_end_(reading_end) {}
    ~Lifeline();
    Lifeline(const Lifeline&) = delete;
    Lifeline& operator=(const Lifeline&) = delete;

    int reading_end() const { return reading_end_; }
    int writing_end() const { return writing_end_; }
    // Once the driver has it.
    void close_writing_end();
    // From now on the end increments `doorbell` and wakes who waits for it, by SIGIO: it interrupts
    // no sleep that begins after the last look at ended(), since the doorbell has changed by then.
    // What else sends SIGIO does the same. One lifeline at a time.
    void ring_at_end(std::atomic<std::uint32_t>& doorbell) const;
    // Also if a profiler has closed it: nothing more is heard from it.
    bool ended() const;

  private:
    int reading_end_ = -1, writing_end_ = -1;
};

}  // namespace assay::collector
