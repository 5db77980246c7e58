// Markers for assay, instructions that identify the processor, and repeated strings.
#pragma once

#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <optional>

namespace assay::native {

// Emulates cpuid and xgetbv. False if the shown processor has no register for xgetbv's ecx.
bool identify(Context& context, const Instruction& instruction, const ShownProcessor& processor);

// Executes the marker (assay/client.h) that a thread has just reached; rax points to it. True if it
// switches collecting on or off: the threads then need other versions of translated code.
bool do_marker(Context& context, ThreadTrace& trace, Regions& regions);

// Computes the accesses of a repeated string instruction before it runs.
//
// The iterations are grouped in stretches within pages. They end with the last one, which may
// fault. The memory of a stretch is checked before the next stretch starts, as the instruction
// does. A huge count therefore takes no longer than the iterations that really happen. Changes that
// other threads make to the memory meanwhile are not seen.
class RepeatedString {
  public:
    struct Stretch {
        std::uint64_t addresses[2] = {0, 0};  // the references of the first iteration
        std::uint64_t iterations = 0;
    };

    // `lock` is the lock of `watch`; the caller does not hold it.
    RepeatedString(const Context& context, const Instruction& instruction, const CodeWatch& watch,
                   DriverLock& lock);

    // Returns nullopt after the last stretch.
    std::optional<Stretch> next();
    // The distance from an address to that of the next iteration.
    std::int64_t step() const { return step_; }

    // The iterations of all stretches so far.
    std::uint64_t iterations() const { return done_; }
    // True if a comparison, or a fault, has ended the instruction.
    bool ends_by_comparison() const { return end_ == End::kComparison; }
    bool faults() const { return end_ == End::kFault; }

  private:
    enum class End : std::uint8_t { kCount, kComparison, kFault };

    std::uint64_t offset_of(const MemoryReference& reference) const;
    std::uint64_t address_of(const MemoryReference& reference) const;
    std::uint64_t iterations_in_page(const MemoryReference& reference) const;
    bool is_accessible(const MemoryReference& reference) const;
    bool is_writable(std::uint64_t address) const;
    bool read(const MemoryReference& reference, std::uint64_t iterations, unsigned char* to) const;
    void compare(std::uint64_t& iterations);
    template <typename Unit>
    std::uint64_t last_compared(const unsigned char* one, const unsigned char* other,
                                bool same_other, std::uint64_t iterations) const;

    const Context& context_;
    const CodeWatch& watch_;
    DriverLock& lock_;
    const Form& form_;
    bool until_equal_;
    std::uint64_t bytes_;
    std::int64_t step_;
    std::uint64_t count_, done_ = 0;
    End end_ = End::kCount;
};

// True for cmps and scas, which a comparison may end.
bool compares(const Form& form);

}  // namespace assay::native
