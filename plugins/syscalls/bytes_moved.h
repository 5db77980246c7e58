// How many bytes a system call has moved, where its result says that.
#pragma once

#include <cstdint>

namespace syscalls {

enum class Moves : std::uint8_t {
    kNothing,  // or nobody knows how much
    kIn,       // to the program
    kOut,      // from the program
    kBoth,     // from one descriptor to another
};

// What a result that is no error counts. Not of calls for several messages (recvmmsg, sendmmsg), of
// asynchronous ones (io_submit, io_uring_enter), and of memory that is mapped.
Moves moves(std::uint64_t number);

}  // namespace syscalls
