// container PROGRAM [ARG...]: runs a program behind a filter of system calls as the default ones of
// Docker and Podman are (profiles/seccomp/default.json of moby), for a container without
// capabilities: what needs one fails with EPERM, and personality(2) permits nothing that would turn
// address-space randomisation off.
#include "filters.h"

#include <errno.h>
#include <stdio.h>
#include <sys/personality.h>

static const unsigned not_permitted[] = {
    SYS_acct,
    SYS_bpf,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_fanotify_init,
    SYS_get_mempolicy,
    SYS_init_module,
    SYS_io_uring_enter,
    SYS_io_uring_setup,
    SYS_ioperm,
    SYS_iopl,
    SYS_kcmp,
    SYS_keyctl,
    SYS_mbind,
    SYS_mount,
    SYS_move_pages,
    SYS_open_by_handle_at,
    SYS_perf_event_open,
    SYS_pivot_root,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_reboot,
    SYS_set_mempolicy,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapon,
    SYS_syslog,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_vhangup,
};

static int filter_personality(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ADDR_NO_RANDOMIZE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    // libc then uses the older call.
    if (filter_call(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS) != 0) return 2;
    for (size_t i = 0; i < sizeof not_permitted / sizeof not_permitted[0]; ++i)
        if (filter_call(not_permitted[i], SECCOMP_RET_ERRNO | EPERM) != 0) return 2;
    if (filter_personality() != 0) return 2;
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
