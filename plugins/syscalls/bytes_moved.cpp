#include "plugins/syscalls/bytes_moved.h"

#include <sys/syscall.h>

namespace syscalls {

Moves moves(std::uint64_t number) {
    switch (number) {
        case SYS_read:
        case SYS_pread64:
        case SYS_readv:
        case SYS_preadv:
        case SYS_preadv2:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_msgrcv:
        case SYS_mq_timedreceive:
        case SYS_getdents:
        case SYS_getdents64:
        case SYS_getrandom:
        case SYS_process_vm_readv:
            return Moves::kIn;
        case SYS_write:
        case SYS_pwrite64:
        case SYS_writev:
        case SYS_pwritev:
        case SYS_pwritev2:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_vmsplice:
        case SYS_process_vm_writev:
            return Moves::kOut;
        case SYS_sendfile:
        case SYS_splice:
        case SYS_copy_file_range:
            return Moves::kBoth;
        default:
            return Moves::kNothing;
    }
}

}  // namespace syscalls
