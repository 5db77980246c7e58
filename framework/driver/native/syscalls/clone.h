// clone(2) and its relatives: new threads and processes of the target.
#pragma once

#include "framework/driver/native/process/thread.h"

namespace assay::native {

// As the system call's arguments. Return what it returns to the target.
struct CloneArguments {
    std::uint64_t flags = 0;
    std::uint64_t stack = 0;
    std::uint64_t parent_tid = 0;
    std::uint64_t child_tid = 0;
    std::uint64_t tls = 0;
    std::uint64_t pidfd = 0;  // clone3(2) only: clone(2) has it in the place of parent_tid
};
long do_clone(Thread& thread, const CloneArguments& arguments);
// exit(2), of this thread alone.
void do_exit(Thread& thread, int status);

}  // namespace assay::native
