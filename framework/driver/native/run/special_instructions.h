// Instructions that the program means for assay, those that identify the processor, and repeated
// strings.
#pragma once

#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <optional>

namespace assay::native {

// cpuid and xgetbv as the program sees them.

// Answers as the shown processor. False if that has no register for xgetbv's ecx.
bool identify(Context& context, const Instruction& instruction, const ShownProcessor& processor);

// What the program says by the markers of assay/client.h.

// Does what the marker says that a thread has just reached; rax points to it. True if it switches
// collecting off or on: other versions of translated code are due then.
bool do_marker(Context& context, ThreadTrace& trace, Regions& regions);

// What a repeated string instruction is about to do.

// Its iterations, in stretches within pages. They end with the last one, which may be one that
// faults: the memory of a stretch is looked at before the next, as the instruction does it, so that
// a huge count takes no longer than what comes of it. What other threads do meanwhile to the memory
// is not seen.
class RepeatedString {
  public:
    struct Stretch {
        std::uint64_t addresses[2] = {0, 0};  // of the first iteration's references
        std::uint64_t iterations = 0;
    };

    // `lock`, which the caller does not hold, is that of `watch`.
    RepeatedString(const Context& context, const Instruction& instruction, const CodeWatch& watch,
                   DriverLock& lock);

    // Nothing behind the last one.
    std::optional<Stretch> next();
    // From an address to that of the next iteration.
    std::int64_t step() const { return step_; }

    // Of all stretches so far.
    std::uint64_t iterations() const { return done_; }
    // How the last one ends the instruction, if not because rcx is 0 then.
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

// cmps or scas: a comparison may end it.
bool compares(const Form& form);

}  // namespace assay::native
