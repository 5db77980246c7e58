// The lines and pages that several threads use, and the bytes that each of them uses.
//
// There is one entry for each thread, operand and line, with the bytes and the number of
// references. The order of the threads' references is unknown, except that a thread that has ended
// does not share data with later references of other threads. Therefore, the result is not how
// often a line moved between processors, but how often it may have moved.
//
// To bound memory, only a part of the pages is kept: when the table is full, the pages stay whose
// hash ends in one more 0 bit (Wegman's adaptive sampling; Flajolet, "On adaptive sampling",
// Computing 43, 1990). Counts are then scaled up.
#pragma once

#include "plugins/effective_address/footprint.h"

#include <array>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

namespace effective_address {

// The stride of the very first reference, which has no predecessor.
inline constexpr std::int64_t kNoStride = INT64_MIN;

// References of one operand in one thread with the same stride. A reference with another stride
// begins a new run.
struct ReferenceRun {
    std::uint64_t end;    // address of the last reference
    std::int64_t stride;  // between references, also from the last one before the run to the first
    std::uint64_t count;  // of references

    // 0 gives the last reference.
    std::uint64_t address(std::uint64_t backwards) const {
        return end - backwards * static_cast<std::uint64_t>(stride);
    }
};

// References of one operand in one thread to one line. Two entries fill a cache line, because their
// table is larger than any cache.
struct alignas(32) Touch {
    std::uint64_t line;
    std::uint64_t bytes;  // one bit for each byte of the line
    // 0 marks a free slot. No run reaches a trillion references or 16 million threads.
    std::uint64_t count : 40, thread : 24;
    std::uint32_t operand;
    std::uint32_t since;  // the thread's latest site at the first reference
};
static_assert(sizeof(Touch) == 32);

// For each thread that has ended, the number of sites at that time. A thread that executes a later
// site is still alive after that.
using ThreadEnds = std::unordered_map<std::uint32_t, std::uint64_t>;

// References to data that another thread also uses, where at least one of the two writes.
struct Shared {
    std::uint64_t falsely = 0;  // to lines that another thread uses at other bytes
    std::uint64_t truly = 0;    // to lines that another thread uses at the same bytes
    std::uint64_t pages = 0;    // to pages that another thread uses
};

class Sharing {
  public:
    // `most` is the number of entries of the table, a power of two. 4 Mi take 128 MB.
    explicit Sharing(std::size_t most = std::size_t{4} << 20) : most_(most) {}

    void add(const ReferenceRun& run, std::uint32_t operand, std::uint16_t bytes,
             std::uint32_t thread, std::uint32_t since = 0);

    // All entries, grouped by line and then by thread.
    std::vector<Touch> touches();
    // touches() contains one of this many pages.
    std::uint64_t scale() const { return std::uint64_t{1} << dropped_bits_; }

  private:
    // `use` gives all members except the line and the bytes.
    void add_reference(std::uint64_t address, std::uint16_t bytes, const Touch& use);
    void add_waiting();
    void add_line(const Touch& touch);
    bool looked_at(std::uint64_t line) const;
    static std::size_t hash_of(const Touch& touch);
    Touch& slot_of(const Touch& touch);
    void make_room();

    const std::size_t most_;
    std::vector<Touch> table_;  // open addressing
    // Touches that are not in the table yet. Adding several at a time lets their cache misses
    // overlap.
    std::array<Touch, 32> waiting_touches_{};
    std::size_t waiting_ = 0;
    std::size_t used_ = 0;
    unsigned dropped_bits_ = 0;
};

struct ThreadBytes {
    std::uint32_t thread;
    std::uint64_t touched = 0, written = 0;
};

enum class Relation { kNone, kFalse, kTrue };
// The relation of two threads at one line: kNone if one of them does not use the line or neither
// writes.
Relation relation(const ThreadBytes& a, const ThreadBytes& b);

struct FalselyShared {
    std::span<const Touch> touches;  // all touches of the line
    std::uint64_t references;        // of the threads that share it falsely
    // The largest possible number of changes between these threads where the reference before or
    // after the change writes, over all orders of the references.
    std::uint64_t transfers;
};

struct SharingResult {
    std::vector<Shared> by_operand;
    std::vector<FalselyShared> lines;  // the line with the most transfers first
    std::uint64_t lines_shared_falsely = 0, lines_shared_truly = 0, pages_shared = 0;
};

// `touches` come from Sharing::touches(). `writes` tells whether an operand writes.
SharingResult evaluate(std::span<const Touch> touches, std::uint64_t scale, std::size_t operands,
                       const std::function<bool(std::uint32_t)>& writes, const ThreadEnds& ends);

}  // namespace effective_address
