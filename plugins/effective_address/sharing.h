// Which lines and pages several threads use, and at which bytes.
//
// One entry for each thread, operand and line, with the bytes touched and how often. Which thread
// came when is not known but for its end: what another thread reads behind that, it does not share.
// Nor is it known how often a line moved between processors; only how often it may have.
//
// Memory is bounded by looking at part of the pages: when the table is full, those stay whose hash
// ends in one more bit of 0 (Wegman's adaptive sampling; Flajolet, "On adaptive sampling",
// Computing 43, 1990). Counts are then scaled up.
#pragma once

#include "plugins/effective_address/footprint.h"
#include "plugins/effective_address/reference_run.h"

#include <array>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

namespace effective_address {

// References of one operand in one thread to one line. Two of them are a cache line: the table of
// them is larger than any cache.
struct alignas(32) Touch {
    std::uint64_t line;
    std::uint64_t bytes;  // a bit for each byte of the line
    // 0: a free slot of the table. A trillion, and 16 million threads, are more than a run has.
    std::uint64_t count : 40, thread : 24;
    std::uint32_t operand;
    std::uint32_t since;  // the thread's latest site at the first of them
};
static_assert(sizeof(Touch) == 32);

// Of threads that have ended, how many sites there were then. A thread that has come to a later one
// has outlived them.
using ThreadEnds = std::unordered_map<std::uint32_t, std::uint64_t>;

// What a thread shares with others, of which one writes.
struct Shared {
    std::uint64_t falsely = 0;  // references to lines that another thread uses at other bytes
    std::uint64_t truly = 0;    // to lines that another thread uses at the same bytes, too
    std::uint64_t pages = 0;    // to pages that another thread uses
};

class Sharing {
  public:
    // `most`: entries of the table, a power of two. 4 Mi are 128 MB.
    explicit Sharing(std::size_t most = std::size_t{4} << 20) : most_(most) {}

    void add(const ReferenceRun& run, std::uint32_t operand, std::uint16_t bytes,
             std::uint32_t thread, std::uint32_t since = 0);

    // All entries, those of a line together and by thread.
    std::vector<Touch> touches();
    // One of how many pages is looked at; of what touches() has returned.
    std::uint64_t scale() const { return std::uint64_t{1} << dropped_bits_; }

  private:
    // `use`: without the line and the bytes.
    void add_reference(std::uint64_t address, std::uint16_t bytes, const Touch& use);
    void add_waiting();
    void add_line(const Touch& touch);
    bool looked_at(std::uint64_t line) const;
    static std::size_t hash_of(const Touch& touch);
    Touch& slot_of(const Touch& touch);
    void make_room();

    const std::size_t most_;
    std::vector<Touch> table_;  // open addressing
    // What the table has not yet: the memory of several entries is waited for at the same time.
    std::array<Touch, 32> waiting_touches_{};
    std::size_t waiting_ = 0;
    std::size_t used_ = 0;
    unsigned dropped_bits_ = 0;
};

// The bytes of one line that one thread has read and written.
struct ThreadBytes {
    std::uint32_t thread;
    std::uint64_t touched = 0, written = 0;
};

enum class Relation { kNone, kFalse, kTrue };
// Of two threads at one line: none if one does not touch it, or none of them writes.
Relation relation(const ThreadBytes& a, const ThreadBytes& b);

// A line that is falsely shared.
struct FalselyShared {
    std::span<const Touch> touches;  // all of the line
    std::uint64_t references;        // of the threads that share it falsely
    // From one of these threads to another, the one before or the one behind it writing: as many as
    // there are at most, whatever the order of the references.
    std::uint64_t transfers;
};

struct SharingResult {
    std::vector<Shared> by_operand;
    std::vector<FalselyShared> lines;  // those with the most transfers first
    std::uint64_t lines_shared_falsely = 0, lines_shared_truly = 0, pages_shared = 0;
};

// `touches` as Sharing::touches() returns them; `writes` says which operands do.
SharingResult evaluate(std::span<const Touch> touches, std::uint64_t scale, std::size_t operands,
                       const std::function<bool(std::uint32_t)>& writes, const ThreadEnds& ends);

}  // namespace effective_address
