// What of the program is profiled: all of it, or what runs between the markers of assay/client.h,
// in functions of certain names (--toggle), from one instruction to another. Where several of
// these are asked for, what satisfies all. Of that, Bursts may choose a part.
//
// Translated code has two versions (Version). A thread that is profiled executes the collecting
// one, else the plain one, and goes over to the other at the end of a basic block:
//
//   - A marker is the last instruction of its block, which leaves to the driver.
//   - The first block of such a function leaves if it is entered with a stack pointer above
//     Context::enters_above: from outside. From then on that is the stack pointer there, which
//     points to the return address, so that recursion stays inside. Returns and indirect jumps
//     leave if they take the stack pointer above Context::leaves_above: the function has returned,
//     or longjmp(3) or an exception has gone past it.
//   - Instructions are counted down from Context::countdown, block by block, in the first thread,
//     until the second boundary has been reached; with Spec::objects always, in all threads. A
//     block belongs to where its last instruction lies.
//
// The other threads of the process leave for the new version when they are told to
// (Thread::ask_to_leave).
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/trace/allocation_functions.h"

#include <cstdint>
#include <set>
#include <string>

namespace assay::native {

class Regions {
  public:
    // Takes what the specification says.
    void initialise(const trace::Spec& spec);

    // --- What translations depend on.

    // The functions of such names, and whether there can be any.
    bool has_functions() const { return !patterns_.empty(); }
    bool is_entry(std::uint64_t pc) const { return entries_.contains(pc); }
    // An executable part of a file was mapped, or is not any more.
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                const std::string& path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    std::vector<std::string> missing_functions() const { return patterns_.unmatched(); }
    // Whether instructions are counted down. When that ends, all translations must be dropped.
    bool counts() const { return counts_; }
    // Whether only bursts are captured: Bursts.
    bool samples() const { return samples_; }

    // --- Threads.

    void begin(Context& context, bool first_thread) const;
    Version version_of(const Context& context) const {
        const bool inside = patterns_.empty() || context.enters_above != 0;
        return collects_ && in_range_ && inside ? kCollecting : kPlain;
    }
    // Returns whether that changes anything.
    bool set_collecting(bool wanted);
    // At the beginning of one of the functions.
    void enter(Context& context) const;
    // The stack pointer has changed.
    void leave_functions(Context& context) const;
    // The last instruction of the block that is about to be executed lies behind a boundary.
    void reach(Context& context);
    // What the thread has executed since it began, where instructions are counted down: before the
    // block that it is about to execute.
    static std::uint64_t executed(const Context& context) {
        return static_cast<std::uint64_t>(context.countdown_begin - context.countdown);
    }

  private:
    FunctionPatterns patterns_{""};
    std::set<std::uint64_t> entries_;
    std::uint64_t from_ = 0, to_ = 0;  // instructions; 0: no boundary
    bool collects_ = true;
    bool in_range_ = true;
    bool counts_ = false, always_counts_ = false;
    bool samples_ = false;
};

}  // namespace assay::native
