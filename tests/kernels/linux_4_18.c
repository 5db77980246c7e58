// linux_4_18 COMMAND...: runs a command that finds the system calls of Linux 4.18, the oldest
// kernel that assay is for, and no newer ones: a filter of seccomp(2) answers those with ENOSYS.
// What newer kernels have added to older calls, such as flags, it leaves alone.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

// arch/x86/entry/syscalls/syscall_64.tbl of 4.18: rseq(2) is the last one. Those of the x32 ABI,
// which have bit 30, are above it, too.
enum { kLast = 334 };

static int hide_newer_calls(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLast, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    // Root needs no PR_SET_NO_NEW_PRIVS, which would change what set-user-ID programs are.
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char** argv) {
    if (argc < 2) {
        fputs("usage: linux_4_18 COMMAND...\n", stderr);
        return 2;
    }
    if (hide_newer_calls() != 0) {
        perror("linux_4_18: seccomp");
        return 2;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "linux_4_18: %s: %s\n", argv[1], strerror(errno));
    return 127;
}
