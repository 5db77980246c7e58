// Where each operand is in one thread.
#pragma once

#include <cstdint>

namespace effective_address {

struct alignas(32) Stream {
    std::uint64_t last;   // address; 0 before the first
    std::int64_t stride;  // of the run
    std::uint64_t count;  // of references in the run; 0: there is none
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
