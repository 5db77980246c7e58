// Determines which part of the program is profiled: everything, or a part of it. Markers of
// assay/client.h, names of functions (--toggle), or two instruction counts bound the part. If
// several of these are given, all must hold. Bursts may choose a part of the result.
//
// Translated code has two versions (Version). A profiled thread executes the collecting one, other
// threads the plain one. A thread changes its version at the end of a basic block:
//
//   - A marker is the last instruction of its block, which leaves to the driver.
//   - The first block of a named function leaves if the stack pointer is above
//     Context::enters_above: the thread comes from outside. The driver then sets enters_above to
//     this stack pointer, which points to the return address, so that recursion stays inside.
//     Returns and indirect jumps leave if they raise the stack pointer above
//     Context::leaves_above: the function has returned, or longjmp(3) or an exception has left it.
//   - Blocks count instructions down from Context::countdown. They do so in the first thread until
//     it reaches the second boundary, and with Spec::objects always, in all threads. A block lies
//     on the side of a boundary on which its last instruction lies.
//
// The other threads of the process go to their new version when they are asked to leave
// (Thread::ask_to_leave).
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/shared/elf_functions.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::native {

class Regions {
  public:
    // Takes the regions from the specification.
    void initialise(const trace::Spec& spec);

    // --- What translations depend on.

    // The functions with the given names, and whether there can be any.
    bool has_functions() const { return !functions_.empty(); }
    bool is_entry(std::uint64_t pc) const { return functions_.begins_at(pc); }
    // Call these when an executable part of a file is mapped or unmapped.
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                const std::string& path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    std::vector<std::string> missing_functions() const { return functions_.unmatched(); }
    // True if instructions are counted down. When this ends, all translations must be dropped.
    bool counts() const { return counts_; }
    // True if only bursts are captured: Bursts.
    bool samples() const { return samples_; }

    // --- Threads.

    void begin(Context& context, bool first_thread) const;
    Version version_of(const Context& context) const {
        const bool inside = functions_.empty() || context.enters_above != 0;
        return collects_ && in_range_ && inside ? kCollecting : kPlain;
    }
    // Returns true if this changes anything.
    bool set_collecting(bool wanted);
    // The thread is at the beginning of a named function.
    void enter(Context& context) const;
    // The stack pointer has changed.
    void leave_functions(Context& context) const;
    // The last instruction of the block that will be executed next lies after a boundary.
    void reach(Context& context);
    // The instructions that the thread has executed before its next block, if instructions are
    // counted down.
    static std::uint64_t executed(const Context& context) {
        return static_cast<std::uint64_t>(context.countdown_begin - context.countdown);
    }

  private:
    driver::NamedFunctions functions_;
    std::uint64_t from_ = 0, to_ = 0;  // instructions; 0: no boundary
    bool collects_ = true;
    bool in_range_ = true;
    bool counts_ = false, always_counts_ = false;
    bool samples_ = false;
};

}  // namespace assay::native
