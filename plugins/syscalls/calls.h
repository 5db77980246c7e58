// System calls: their names and counts, the bytes that they transfer, their callers, and the
// summary at the end of a run.
#pragma once

#include <assay/profiler.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace syscalls {

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

// For example "openat", or "number 999" for an unknown call.
std::string name_of_call(std::uint64_t number);
// For example "ENOENT", or "error 999" for an error that the C library does not know.
std::string name_of_error(std::uint32_t error);

enum class Moves : std::uint8_t {
    kNothing,  // or an unknown number of bytes
    kIn,       // to the program
    kOut,      // from the program
    kBoth,     // from one descriptor to another
};

// The direction in which a call transfers bytes, if its result is their number. kNothing for calls
// with several messages (recvmmsg, sendmmsg), asynchronous calls (io_submit, io_uring_enter), and
// mapped memory.
Moves moves(std::uint64_t number);

// An instruction and its context, as in assay::Samples.
struct Place {
    std::uint64_t pc;
    std::uint64_t context;
};

// Finds the callers of system calls, at the end of a run.
class Callers {
  public:
    // `trace` must stay valid.
    explicit Callers(const assay::Trace& trace) : trace_(trace) {}

    // The place to charge a system call at `pc` to: the innermost call, or the system call itself,
    // outside of the C library and the dynamic linker that has a source line. Without such a line,
    // the innermost call outside of them; otherwise the system call.
    Place find(std::uint64_t pc, std::uint32_t context);
    // Reads debug information for all calls at once. Optional.
    void prepare(const std::vector<Place>& calls);

  private:
    bool is_in_library(std::uint64_t pc) const;
    bool has_line(std::uint64_t pc);

    const assay::Trace& trace_;
    std::unordered_map<std::uint64_t, bool> has_line_;  // by pc
};

// True for the libraries of the C library, such as libc.so.6, ld-linux-x86-64.so.2, and those of
// musl.
bool is_c_library(std::string_view path);

// A table of system calls, by number of calls, or by time if `times` is set.
std::string summarise(const std::map<std::uint64_t, Tally>& by_number, bool times);
// The most frequent calls, such as "read 120, write 12".
std::string in_one_line(const std::map<std::uint64_t, Tally>& by_number);

}  // namespace syscalls
