// Determines which part of the program is profiled: everything, or a part of it. Names of functions
// (--toggle) or two instruction counts bound the part. If both are given, both must hold. The
// native driver has the same rules (native/trace/regions.h):
//
//   - A thread is inside from the first block of a named function on, until a return, longjmp(3) or
//     an exception leaves the call. The number of calls that have not returned tells this, because
//     QEMU before version 9 does not tell the stack pointer. Recursion, signal handlers and
//     interrupt handlers make this number larger, so they stay inside.
//   - The first thread counts its instructions. A block lies on the side of a boundary on which its
//     last instruction lies. The other threads follow at their next block.
//
// All code is translated in the same way. Callbacks ask the thread (GuestThread::is_profiled()).
#pragma once

#include "framework/driver/qemu/guest_code.h"
#include "framework/trace/segment_layout.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace assay::qemu {

class Regions {
  public:
    // Takes the regions from the specification.
    void initialise(const trace::Spec& spec) {
        has_functions_ = spec.regions.functions[0] != '\0';
        from_ = spec.regions.from_instruction;
        to_ = spec.regions.to_instruction;
        in_range_ = from_ <= 1;
        samples_ = trace::has_bursts(spec.regions);
    }
    // False: all is profiled.
    bool wanted() const { return has_functions_ || from_ > 1 || to_ != 0 || samples_; }
    bool has_functions() const { return has_functions_; }
    // True if only bursts of the part are captured: --sample.
    bool samples() const { return samples_; }

    // The position of a thread.
    struct Place {
        static constexpr std::size_t kOutside = SIZE_MAX;
        bool counts = false;             // its instructions
        std::uint64_t executed = 0;      // instructions, if they count
        std::size_t entered = kOutside;  // of the functions: the number of calls at the entry

        // The thread has left calls. So many remain.
        void leave(std::size_t calls) {
            if (calls < entered) entered = kOutside;
        }
    };
    static Place begin(bool first_thread) { return {.counts = first_thread}; }
    // The thread goes on with this block, with so many calls that have not returned. True if the
    // block is profiled.
    bool enter(Place& place, const GuestBlock& block, std::size_t calls) {
        if (place.counts) {
            place.executed += block.instr_count;
            const bool is_late = to_ != 0 && place.executed > to_;
            in_range_.store(place.executed >= from_ && !is_late, std::memory_order_relaxed);
        }
        if (block.enters_function && place.entered == Place::kOutside) place.entered = calls;
        return in_range_.load(std::memory_order_relaxed) &&
               (!has_functions_ || place.entered != Place::kOutside);
    }

  private:
    bool has_functions_ = false, samples_ = false;
    std::uint64_t from_ = 0, to_ = 0;  // instructions; 0: no boundary
    std::atomic<bool> in_range_ = true;
};

}  // namespace assay::qemu
