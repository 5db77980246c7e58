// Decodes the parts of an image in several threads: decoding is about half of a replay's work.
//
// Each thread gets some of the trace's chunks. It decodes their parts ahead, and also takes them
// when their turn comes: passing records to another processor takes longer than decoding them.
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

// Checks that no part of an image is missing.
class OrderCheck {
  public:
    explicit OrderCheck(const ImageTrace& image) : image_(image) {}
    void pass(std::uint64_t order);
    // Call this after the last part.
    void end();
    // "" if no part is missing.
    const std::string& problem() const { return problem_; }

  private:
    void expect(std::uint64_t order);

    const ImageTrace& image_;
    std::uint64_t next_ = 0;
    std::string problem_;
};

class PartSequence {
  public:
    // Selects chunks to read; empty: all. A chunk that is not selected is no problem().
    using Wanted = std::function<bool(const recording::ChunkPlace&)>;

    explicit PartSequence(const ImageTrace& image, const Wanted& wanted = {});

    // next() uses the memory of a part again.
    struct Part {
        Part() = default;
        Part(Part&&) = default;
        Part& operator=(Part&&) = default;

        std::uint64_t order = 0;  // among the parts of all threads
        std::uint32_t slot = 0, thread = 0;
        std::uint64_t events = 0;  // bytes of the image's events that come before the part
        std::span<const trace_record_t> records;  // as RecordDecoder::next() returns them
        std::span<const trace_part_marker_t> markers;
        // In a chunk's first part: how many instructions the thread had executed before.
        std::optional<std::uint64_t> first_instruction;

        std::vector<trace_record_t> record_room;
        std::vector<trace_part_marker_t> marker_room;
    };
    // False after the last part.
    bool next(Part& part);
    // A lower bound of the next part's order; nothing after the last part.
    std::optional<std::uint64_t> next_order();

    // The reason why parts are missing; "" if all are there. Valid after the last part.
    const std::string& problem() const { return problem_.empty() ? order_.problem() : problem_; }

  private:
    // The chunks of one slot, one after the other.
    struct Stream {
        explicit Stream(std::uint32_t number) : slot(number) {}

        const std::uint32_t slot;
        std::vector<recording::ChunkPlace> wanted;
        std::span<const recording::ChunkPlace> chunks;  // the rest of `wanted`
        std::uint32_t thread = 0;
        std::optional<std::uint64_t> first_instruction;  // of the chunk's first part
        std::vector<std::byte> content;
        std::optional<recording::RecordDecoder> decoder;  // exists from the first chunk on
        trace_part_t part{};
        bool has_part = false;
    };

    Stream* look_ahead();
    bool look_ahead(Stream& stream);
    bool begin_chunk(Stream& stream);
    void damaged(const Stream& stream);

    const ImageTrace& image_;
    std::vector<std::unique_ptr<Stream>> streams_;
    bool has_all_ = true;  // whether all chunks are wanted
    OrderCheck order_;
    std::string problem_;
};

class ParallelParts {
  public:
    // `image` must outlive this. `threads`: at least 1. Small traces need fewer threads.
    ParallelParts(const ImageTrace& image, const PartSequence::Wanted& wanted, std::size_t threads);
    // The number of threads that is useful on this machine.
    static std::size_t useful_threads();

    // Calls `take` for each part, in order, and one at a time. Throws what `take` throws.
    void run(const std::function<void(const PartSequence::Part&)>& take);

    // The reason why parts are missing; "" if all are there. Valid after run().
    std::string problem() const;

  private:
    // The part of the work that one thread has.
    struct Share {
        Share(const ImageTrace& image, const PartSequence::Wanted& wanted) : parts(image, wanted) {}

        PartSequence parts;
        std::deque<PartSequence::Part> ready;   // decoded parts
        std::size_t records = 0;                // in `ready`
        std::vector<PartSequence::Part> spare;  // parts whose memory is used again
        bool all_decoded = false;
        // A lower bound of the order of its next part, if this is known.
        std::optional<std::uint64_t> next;
        bool ended = false;  // there is no next part
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
    bool has_all_ = true;  // whether all chunks are wanted
    // Used only by the thread that has the turn:
    const std::function<void(const PartSequence::Part&)>* take_ = nullptr;
    OrderCheck order_;

    std::mutex mutex_;  // protects `next` and `ended` of each share, and:
    std::condition_variable turn_;
    bool stops_ = false;
    std::exception_ptr failure_;
};

}  // namespace assay::replay
