// The parts of an image, decoded by several threads, which is about half of the work of a replay.
//
// The chunks of the trace are dealt out to the threads. Each decodes the parts of its chunks ahead,
// and takes them itself when their turn comes, since records that go from one processor to another
// take longer than it takes to decode them.
#pragma once

#include "framework/driver/replay/part_sequence.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace assay::replay {

class ParallelParts {
  public:
    // `image` must live longer. `threads`: at most so many, not 0; of small traces fewer.
    ParallelParts(const ImageTrace& image, const PartSequence::Wanted& wanted, std::size_t threads);
    // As many as are of use here.
    static std::size_t useful_threads();

    // Calls `take` for each part, in their order, and never two at a time. Throws what it throws.
    void run(const std::function<void(const PartSequence::Part&)>& take);

    // Why parts are missing; "" if none is. Behind run().
    std::string problem() const;

  private:
    // What a thread reads.
    struct Share {
        Share(const ImageTrace& image, const PartSequence::Wanted& wanted) : parts(image, wanted) {}

        PartSequence parts;
        std::deque<PartSequence::Part> ready;   // decoded
        std::size_t records = 0;                // of these
        std::vector<PartSequence::Part> spare;  // to be filled again
        bool all_decoded = false;
        // At least the order of its next part, unless it is not known or there is none.
        std::optional<std::uint64_t> next;
        bool ended = false;  // there is none
    };

    void work(std::size_t number);
    void stop(std::exception_ptr failure);
    void read(std::size_t number);
    static void decode(Share& share);
    void tell_next(Share& share, std::optional<std::uint64_t> order, bool ended = false);
    bool wait_for_turn(std::size_t number);
    bool has_turn(std::size_t number) const;
    void take(const PartSequence::Part& part);

    std::vector<std::unique_ptr<Share>> shares_;
    bool has_all_ = true;  // chunks
    // Of who has the turn:
    const std::function<void(const PartSequence::Part&)>* take_ = nullptr;
    OrderCheck order_;

    std::mutex mutex_;  // of each share's `next` and `ended`, and of:
    std::condition_variable turn_;
    bool stops_ = false;
    std::exception_ptr failure_;
};

}  // namespace assay::replay
