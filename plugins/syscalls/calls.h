// What is known of system calls: their names, counts, the bytes that they move, who makes them, and
// the summary at the end of a run.
#pragma once

#include <assay/profiler.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace syscalls {

// What is counted of system calls.

struct Tally {
    std::uint64_t calls = 0, errors = 0;
    std::uint64_t read = 0, written = 0;  // bytes
    std::uint64_t nanoseconds = 0;

    Tally& operator+=(const Tally& other) {
        calls += other.calls;
        errors += other.errors;
        read += other.read;
        written += other.written;
        nanoseconds += other.nanoseconds;
        return *this;
    }
};

// Names of system calls and errors.

// "openat"; "number 999" for one that the kernel's header did not have when assay was built.
std::string name_of_call(std::uint64_t number);
// "ENOENT"; "error 999" for one that the C library does not know.
std::string name_of_error(std::uint32_t error);

// How many bytes a system call has moved, where its result says that.

enum class Moves : std::uint8_t {
    kNothing,  // or nobody knows how much
    kIn,       // to the program
    kOut,      // from the program
    kBoth,     // from one descriptor to another
};

// What a result that is no error counts. Not of calls for several messages (recvmmsg, sendmmsg), of
// asynchronous ones (io_submit, io_uring_enter), and of memory that is mapped.
Moves moves(std::uint64_t number);

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

// The end-of-run summary: a table of system calls.

// `by_number`: of each call that was made. Those with the most calls first, or with times those
// that took longest.
std::string summarise(const std::map<std::uint64_t, Tally>& by_number, bool times);
// "read 120, write 12", the most frequent ones.
std::string in_one_line(const std::map<std::uint64_t, Tally>& by_number);

}  // namespace syscalls
