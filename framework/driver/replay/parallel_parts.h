// The parts of an image, decoded by several threads, which is about half of the work of a replay.
//
// The chunks of the trace are dealt out to the threads. Each decodes the parts of its chunks ahead,
// and takes them itself when their turn comes, since records that go from one processor to another
// take longer than it takes to decode them.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/recording/record_coding.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::replay {

// The records of all threads of an image, in the order in which they were made.

// Whether the parts of an image are there, one behind the other.
class OrderCheck {
  public:
    explicit OrderCheck(const ImageTrace& image) : image_(image) {}
    void pass(std::uint64_t order);
    // Behind the last.
    void end();
    // "" if none is missing.
    const std::string& problem() const { return problem_; }

  private:
    void expect(std::uint64_t order);

    const ImageTrace& image_;
    std::uint64_t next_ = 0;
    std::string problem_;
};

class PartSequence {
  public:
    // Which chunks are read; empty: all. Those that are not are no problem().
    using Wanted = std::function<bool(const recording::ChunkPlace&)>;

    explicit PartSequence(const ImageTrace& image, const Wanted& wanted = {});

    // Its memory is used again where it is filled again.
    struct Part {
        Part() = default;
        Part(Part&&) = default;
        Part& operator=(Part&&) = default;

        std::uint64_t order = 0;  // among those of all threads
        std::uint32_t slot = 0, thread = 0;
        std::uint64_t events = 0;                 // bytes of the image's events that come before
        std::span<const trace_record_t> records;  // as RecordDecoder::next() has them
        std::span<const trace_part_marker_t> markers;
        // Of a chunk's first part: how many the thread had executed before.
        std::optional<std::uint64_t> first_instruction;

        std::vector<trace_record_t> record_room;
        std::vector<trace_part_marker_t> marker_room;
    };
    // False behind the last.
    bool next(Part& part);
    // At least the order of the next part; none behind the last.
    std::optional<std::uint64_t> next_order();

    // Why parts are missing; "" if none is. Known once all have been given.
    const std::string& problem() const { return problem_.empty() ? order_.problem() : problem_; }

  private:
    // One slot's chunks, one after the other.
    struct Stream {
        explicit Stream(std::uint32_t number) : slot(number) {}

        const std::uint32_t slot;
        std::vector<recording::ChunkPlace> wanted;
        std::span<const recording::ChunkPlace> chunks;  // of those, that have not been begun
        std::uint32_t thread = 0;
        std::optional<std::uint64_t> first_instruction;  // of the chunk, until a part is given
        std::vector<std::byte> content;
        std::optional<recording::RecordDecoder> decoder;  // since the first chunk
        trace_part_t part{};
        bool has_part = false;
    };

    Stream* look_ahead();
    bool look_ahead(Stream& stream);
    bool begin_chunk(Stream& stream);
    void damaged(const Stream& stream);

    const ImageTrace& image_;
    std::vector<std::unique_ptr<Stream>> streams_;
    bool has_all_ = true;  // chunks
    OrderCheck order_;
    std::string problem_;
};

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
