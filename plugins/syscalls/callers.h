// Who makes a system call: its instruction is nearly always in the C library.
#pragma once

#include <assay/profiler.hpp>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace syscalls {

// An instruction, and the context that it was executed in, as samples have it.
struct Place {
    std::uint64_t pc;
    std::uint64_t context;
};

// For the end of a run.
class Callers {
  public:
    // Must not outlive the call that `trace` is of.
    explicit Callers(const assay::Trace& trace) : trace_(trace) {}

    // Of a system call at `pc` in the context with that number, the innermost call, or the system
    // call itself, that is outside of the C library and the dynamic linker, and has a source line.
    // If there is none with a line, the innermost outside; else the system call.
    Place find(std::uint64_t pc, std::uint32_t context);
    // Reads debug information for all of them at once.
    void prepare(const std::vector<Place>& calls);

  private:
    bool is_in_library(std::uint64_t pc) const;
    bool has_line(std::uint64_t pc);

    const assay::Trace& trace_;
    std::unordered_map<std::uint64_t, bool> has_line_;  // by pc
};

// True for the C library and what belongs to it: libc.so.6, ld-linux-x86-64.so.2, musl's.
bool is_c_library(std::string_view path);

}  // namespace syscalls
