// Calls of the kernel that concern the process as a whole, and therefore the driver in it.
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <regex.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "filters.h"
#include "machine_code.h"

// --- Processes and threads

static long make(struct clone_args* arguments) {
    fflush(stdout);
    return syscall(SYS_clone3, arguments, sizeof *arguments);
}

static int status_of(long child) {
    int status = -1;
    waitpid((pid_t)child, &status, 0);
    return status;
}

static int clone3_process(void) {
    int pidfd = -1;
    pid_t parent_tid = -1, child_tid = -1;
    struct clone_args arguments = {
        .flags = CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID,
        .pidfd = (uintptr_t)&pidfd,
        .parent_tid = (uintptr_t)&parent_tid,
        .child_tid = (uintptr_t)&child_tid,
        .exit_signal = SIGCHLD,
    };
    long child = make(&arguments);
    if (child == 0) _exit(child_tid == getpid() ? 7 : 8);
    siginfo_t info = {0};
    printf("%d\n", parent_tid == child);
    printf("%d\n", waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED));
    printf("%d %d\n", info.si_status, fcntl(pidfd, F_GETFD));
    return 0;
}

// In clone(2) the descriptor takes the place of the number. A kernel before 5.2 ignores the flag,
// and leaves the word as it was.
static int run_clone_child(void* unused) {
    (void)unused;
    _exit(7);
}

static int clone_descriptor(void) {
    static char stack[65536] __attribute__((aligned(16)));
    static const int sharing[] = {0, CLONE_VM | CLONE_VFORK, CLONE_VM};
    static const int more[] = {0, CLONE_PARENT_SETTID, CLONE_DETACHED, CLONE_FILES};
    for (unsigned i = 0; i < 3; ++i) {
        for (unsigned j = 0; j < 4; ++j) {
            int word = -7;
            fflush(stdout);
            const int child = clone(run_clone_child, stack + sizeof stack,
                                    CLONE_PIDFD | sharing[i] | more[j] | SIGCHLD, NULL, &word);
            const int error = child < 0 ? errno : 0;
            const int is_number = word == child && child > 0;
            printf("%x %x: %d, %d %d", sharing[i], more[j], error, is_number, is_number ? 0 : word);
            if (child > 0) printf(" %d %x", fcntl(word, F_GETFD), status_of(child));
            puts("");
            if (word >= 0 && !is_number) close(word);
        }
    }
    return 0;
}

static void nothing(int number) {
    (void)number;
}

static void raise_both(void) {
    raise(SIGUSR2);
    raise(SIGUSR1);
    _exit(3);
}

// The child calls the function, on the stack that the arguments name.
static long make_on_stack(struct clone_args* arguments, void (*run)(void)) {
    fflush(stdout);
    long result;
    __asm__ volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t"
        "call *%[run]\n"
        "1:"
        : "=a"(result)
        : "a"(SYS_clone3), "D"(arguments), "S"(sizeof *arguments), [run] "r"(run)
        : "rcx", "r11", "memory");
    return result;
}

static int clone3_clears_handlers(void) {
    signal(SIGUSR1, nothing);
    signal(SIGUSR2, SIG_IGN);
    struct clone_args arguments = {.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD};
    long child = make(&arguments);
    if (child == 0) raise_both();
    printf("%d\n", status_of(child));
    printf("%d\n", raise(SIGUSR1));
    static char stack[65536] __attribute__((aligned(16)));
    arguments.flags |= CLONE_VM | CLONE_VFORK;
    arguments.stack = (uintptr_t)stack;
    arguments.stack_size = sizeof stack;
    printf("%d\n", status_of(make_on_stack(&arguments, raise_both)));
    printf("%d\n", raise(SIGUSR1));
    return 0;
}

static int clone3_errors(void) {
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    struct larger {
        struct clone_args known;
        unsigned long unknown[4];
    } larger = {.known = arguments, .unknown = {0, 0, 1}};
    show_error(syscall(SYS_clone3, &arguments, 16), EINVAL);
    show_error(syscall(SYS_clone3, &arguments, 8192), E2BIG);
    show_error(syscall(SYS_clone3, &larger, sizeof larger), E2BIG);
    show_error(syscall(SYS_clone3, (void*)1, sizeof arguments), EFAULT);
    arguments.exit_signal = 65;
    show_error(make(&arguments), EINVAL);
    arguments.exit_signal = SIGCHLD;
    arguments.flags = 1ULL << 60;
    show_error(make(&arguments), EINVAL);
    arguments.flags = CLONE_THREAD;
    show_error(make(&arguments), EINVAL);
    arguments.exit_signal = 0;
    show_error(make(&arguments), EINVAL);
    arguments.flags = CLONE_SIGHAND;
    show_error(make(&arguments), EINVAL);
    arguments.flags = CLONE_SIGHAND | CLONE_CLEAR_SIGHAND | CLONE_VM;
    show_error(make(&arguments), EINVAL);
    arguments.flags = 0;
    arguments.stack_size = 4096;
    show_error(make(&arguments), EINVAL);
    larger.unknown[2] = 0;
    fflush(stdout);
    long child = syscall(SYS_clone3, &larger, sizeof larger);
    if (child == 0) _exit(0);
    printf("%d\n", status_of(child));
    return 0;
}

// As before Linux 5.3, and in sandboxes that cannot look at its arguments: libc makes do without.
static int clone3_refused(void) {
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    printf("%d\n", filter_call(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS));
    const long child = make(&arguments);
    if (child == 0) _exit(1);
    printf("%ld %d\n", child, errno == ENOSYS);
    return 0;
}

static int clone_errors(void) {
    show_error(syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0), EINVAL);
    show_error(syscall(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0), EINVAL);
    // That the number cannot be written is no error.
    fflush(stdout);
    const long child = syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, 0, 1, 0, 0);
    if (child == 0) _exit(7);
    printf("%x\n", (unsigned)status_of(child));
    return 0;
}

// --- Memory

static int break_errors(void) {
    char* before = sbrk(0);
    printf("%d\n", syscall(SYS_brk, 0) == (long)before);
    printf("%d\n", syscall(SYS_brk, 4096) == (long)before);
    // Where something else is.
    printf("%d\n", syscall(SYS_brk, 0x7ffffffff000) == (long)before);
    printf("%d\n", syscall(SYS_brk, -1L) == (long)before);
    return 0;
}

static int memory_errors(void) {
    unsigned char* gap = map_memory(3 * PAGE, PROT_READ);
    munmap(gap + PAGE, PAGE);
    // Beyond all addresses, and over what else there is.
    show_error(munmap(gap, SIZE_MAX / 4), EINVAL);
    show_error(munmap(gap + 1, SIZE_MAX / 4), EINVAL);
    printf("%d\n", gap[0]);
    printf("%d\n", munmap(gap, 3 * PAGE));
    show_error(munmap(gap + 1, PAGE), EINVAL);
    show_error(munmap(gap, 0), EINVAL);
    show_error(mprotect(gap, PAGE, PROT_READ), ENOMEM);
    show_error(mprotect(gap + 1, PAGE, PROT_READ), EINVAL);
    show_error(madvise(gap, PAGE, MADV_DONTNEED), ENOMEM);
    show_error((long)mremap(gap, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
    return 0;
}

// A length of 0 changes nothing, not even what is known of the code there.
static int nothing_protected(void) {
    unsigned char* code = map_memory(2 * PAGE, PROT_READ | PROT_WRITE);
    write_return(code, 12);
    mprotect(code, PAGE, PROT_READ | PROT_EXEC);
    printf("%d\n", mprotect(code, 0, PROT_READ | PROT_WRITE | PROT_EXEC));
    show_error(mprotect(code, SIZE_MAX, PROT_READ | PROT_EXEC), ENOMEM);
    show_error(mprotect(code + 1, 0, PROT_READ | PROT_EXEC), EINVAL);
    printf("%d\n", call(code));
    return 0;
}

// What is locked must not make the driver's memory, most of which is unused, take room.
static int locked(void) {
    int result = mlockall(MCL_CURRENT | MCL_FUTURE);
    unsigned char* memory = map_memory(PAGE, PROT_READ | PROT_WRITE);
    memory[0] = 1;
    printf("%d %d\n", result, munlockall());
    return 0;
}

// --- Properties of the process

static int names(void) {
    char name[16] = "";
    prctl(PR_SET_NAME, "something else");
    prctl(PR_GET_NAME, name);
    puts(name);
    printf("%d\n", prctl(PR_SET_NAME, 1));
    return 0;
}

static int properties(void) {
    int signal_number = -1;
    printf("%d\n", prctl(PR_GET_DUMPABLE));
    prctl(PR_SET_DUMPABLE, 0);
    printf("%d\n", prctl(PR_GET_DUMPABLE));
    printf("%d\n", prctl(PR_GET_PDEATHSIG, &signal_number));
    printf("%d\n", signal_number);
    printf("%d\n", prctl(PR_SET_PDEATHSIG, SIGTERM));
    printf("%d\n", prctl(PR_GET_PDEATHSIG, &signal_number));
    printf("%d\n", signal_number);
    show_error(prctl(PR_GET_PDEATHSIG, 1), EFAULT);
    printf("%d\n", prctl(PR_GET_SECCOMP));
    printf("%d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    show_error(prctl(12345), EINVAL);
    return 0;
}

static void show_limit(int resource) {
    struct rlimit limit = {0};
    if (getrlimit(resource, &limit) == 0) printf("%lx %lx\n", limit.rlim_cur, limit.rlim_max);
}

// The driver's own memory does not count.
static int limits(void) {
    show_limit(RLIMIT_AS);
    show_limit(RLIMIT_DATA);
    struct rlimit small = {64 << 20, 128 << 20}, wrong = {2, 1}, old = {0};
    printf("%d\n", setrlimit(RLIMIT_AS, &small));
    printf("%d\n", prlimit(getpid(), RLIMIT_DATA, &small, &old));
    show_limit(RLIMIT_AS);
    show_limit(RLIMIT_DATA);
    show_error(setrlimit(RLIMIT_AS, &wrong), EINVAL);
    show_error(syscall(SYS_setrlimit, RLIMIT_AS, 1), EFAULT);
    show_error(syscall(SYS_getrlimit, RLIMIT_AS, NULL), EFAULT);
    unsigned char* memory = map_memory(1 << 20, PROT_READ | PROT_WRITE);
    memset(memory, 1, 1 << 20);
    char* heap = malloc(1 << 16);
    fflush(stdout);
    long child = fork();
    if (child == 0) _exit(heap == NULL);
    printf("%d\n", status_of(child));
    return 0;
}

// The stack may grow as far as its limit says now.
static int on_large_stack(void) {
    volatile char frame[40 << 20];
    for (size_t i = 0; i < sizeof frame; i += PAGE) frame[i] = 1;
    return frame[PAGE] + frame[sizeof frame - PAGE];
}
static int raised_stack_limit(void) {
    struct rlimit limit = {0};
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = 64 << 20;
    printf("%d\n", setrlimit(RLIMIT_STACK, &limit));
    printf("%d\n", on_large_stack());
    return 0;
}

static int persona(void) {
    printf("%x\n", personality(0xffffffff));
    printf("%x\n", personality(ADDR_NO_RANDOMIZE | UNAME26));
    printf("%x\n", personality(0xffffffff));
    printf("%x\n", personality(0));
    printf("%x\n", personality(0xffffffff));
    return 0;
}

// As programs do that want to have their addresses fixed.
static int persona_inherited(void) {
    const int now = personality(0xffffffff);
    printf("%x\n", now);
    fflush(stdout);
    if (now & ADDR_NO_RANDOMIZE || getenv("AGAIN") != NULL) return 0;
    setenv("AGAIN", "", 1);
    personality((unsigned)now | ADDR_NO_RANDOMIZE);
    execl("/proc/self/exe", "kernel", "persona_inherited", (char*)NULL);
    return 1;
}

// A child of vfork(2) shares the memory, but not these.
static int child_sets_its_own(void) {
    const struct rlimit small = {64 << 20, 128 << 20};
    const int before = personality(0xffffffff);
    const pid_t child = vfork();
    if (child == 0) {
        setrlimit(RLIMIT_AS, &small);
        personality((unsigned)before ^ ADDR_NO_RANDOMIZE);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    show_limit(RLIMIT_AS);
    printf("%d\n", personality(0xffffffff) == before);
    return 0;
}

static int readable_is_executable(void) {
    personality(READ_IMPLIES_EXEC);
    unsigned char* code = map_memory(PAGE, PROT_READ | PROT_WRITE);
    write_return(code, 12);
    printf("%d\n", call(code));
    unsigned char* later = map_memory(PAGE, PROT_NONE);
    mprotect(later, PAGE, PROT_READ | PROT_WRITE);
    write_return(later, 34);
    printf("%d\n", call(later));
    return 0;
}

// --- Old ways into the kernel

static int has_vsyscall(void) {
    char text[512];
    FILE* file = fopen("/proc/self/maps", "r");
    int found = 0;
    while (fgets(text, sizeof text, file) != NULL) found |= strstr(text, "[vsyscall]") != NULL;
    fclose(file);
    return found;
}

static int vsyscall(void) {
    if (!has_vsyscall()) return 0;
    int (*get_time)(struct timeval*, void*);
    time_t (*time_of)(time_t*);
    int (*get_cpu)(unsigned*, unsigned*, void*);
    uintptr_t page = 0xffffffffff600000;
    memcpy(&get_time, &page, sizeof page);
    page += 1024;
    memcpy(&time_of, &page, sizeof page);
    page += 1024;
    memcpy(&get_cpu, &page, sizeof page);
    struct timeval now = {0};
    time_t before = time(NULL), stored = 0;
    printf("%d\n", get_time(&now, NULL));
    // time() may be a tick behind gettimeofday().
    printf("%d\n", now.tv_sec >= before && now.tv_sec <= time(NULL) + 1);
    printf("%d\n", time_of(&stored) >= before);
    printf("%d\n", stored >= before);
    unsigned core = ~0U;
    printf("%d\n", get_cpu(&core, NULL, NULL));
    printf("%d\n", core < 4096);
    return 0;
}

static int vsyscall_elsewhere(void) {
    uintptr_t page = 0xffffffffff600008;
    function wrong;
    memcpy(&wrong, &page, sizeof page);
    return wrong();
}

// --- Filters of system calls

static int filtered(void) {
    struct utsname name;
    show_error(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL), EFAULT);  // are there filters?
    free(malloc(1000000));
    printf("%d\n", filter_call(SYS_uname, SECCOMP_RET_ERRNO | EXDEV));
    show_error(uname(&name), EXDEV);
    printf("%d\n", prctl(PR_GET_SECCOMP));
    fflush(stdout);
    long child = fork();
    if (child == 0) _exit(uname(&name) == 0);
    printf("%d\n", status_of(child));
    return 0;
}

static volatile int trapped, trapped_call, trapped_there;

// A sandbox can tell the call from one that somebody pretends.
static void note_trap(int number, siginfo_t* info, void* context) {
    ucontext_t* interrupted = context;
    greg_t* registers = interrupted->uc_mcontext.gregs;
    trapped = number;
    trapped_call = info->si_syscall;
    trapped_there = registers[REG_RAX] == info->si_syscall &&
                    registers[REG_RIP] == (greg_t)info->si_call_addr &&
                    registers[REG_RCX] == registers[REG_RIP];
    registers[REG_RAX] = 4711;
}

static int filter_traps(void) {
    struct sigaction action = {.sa_sigaction = note_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    const int calls[] = {SYS_getppid, SYS_mremap, SYS_semget};
    sigaction(SIGSYS, &action, NULL);
    for (int i = 0; i < 3; ++i) {
        trapped = 0;
        printf("%d\n", filter_call((unsigned)calls[i], SECCOMP_RET_TRAP));
        printf("%ld\n", syscall(calls[i], 0, 0, 0));
        printf("%d %d %d\n", trapped == SIGSYS, trapped_call == calls[i], trapped_there);
    }
    return 0;
}

static int filter_kills(void) {
    filter_call(SYS_getppid, SECCOMP_RET_KILL_PROCESS);
    return (int)syscall(SYS_getppid);
}

// Writes, and does not look at what.
static int filter_of_looks(void) {
    filter_call(SYS_newfstatat, SECCOMP_RET_KILL_PROCESS);
    filter_call(SYS_fstat, SECCOMP_RET_KILL_PROCESS);
    _exit(write(STDOUT_FILENO, "written\n", 8) == 8 ? 0 : 1);
}

// Executes thousands of instructions for the first time, without madvise(2).
static int filter_of_advice(void) {
    regex_t pattern;
    char number[64];
    filter_call(SYS_madvise, SECCOMP_RET_KILL_PROCESS);
    printf("%d\n", regcomp(&pattern, "^([a-c]+|x{2,3})*\\1[[:digit:]]?$", REG_EXTENDED));
    printf("%d\n", regexec(&pattern, "abcxxabc7", 0, NULL, 0));
    snprintf(number, sizeof number, "%.20Lf", strtold("0x1.8p3", NULL));
    puts(number);
    return 0;
}

static sigjmp_buf before_tick;

static void leave_tick(int number) {
    (void)number;
    siglongjmp(before_tick, 1);
}

// As in OpenSSH's sandbox, nobody may return from a handler. So this one does not; and what the
// driver's own handlers interrupt, goes on with all registers.
static int filter_of_returns(void) {
    static volatile double numbers[512];
    double sum = 0;
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    volatile int ticks = 0;
    signal(SIGALRM, leave_tick);
    filter_call(SYS_rt_sigreturn, SECCOMP_RET_KILL_PROCESS);
    for (int round = 0; round < 2000; ++round)
        for (int i = 0; i < 512; ++i) {
            numbers[i] += i;
            sum += numbers[i];
        }
    printf("%.0f\n", sum);
    sigsetjmp(before_tick, 1);
    setitimer(ITIMER_REAL, ticks++ < 100 ? &often : &never, NULL);
    while (ticks <= 100) {
        for (int i = 0; i < 512; ++i) numbers[i] = numbers[511 - i];
        getpid();
    }
    printf("%d\n", ticks > 100);
    return 0;
}

// --- What test_kernel.py runs: it differs from what happens natively.

// Addresses where the driver has its memory: the code cache.
static int in_the_way(void) {
    unsigned char* place = (unsigned char*)0x7ebff0000000;
    size_t size = 64 * PAGE;
    printf("%d\n", munmap(place, size));
    show_error(mprotect(place, size, PROT_READ | PROT_WRITE), ENOMEM);
    show_error(mprotect(place, size, PROT_READ | PROT_EXEC), ENOMEM);
    show_error(madvise(place, size, MADV_DONTNEED), ENOMEM);
    show_error(mlock(place, size), ENOMEM);
    show_error((long)mremap(place, size, 2 * size, MREMAP_MAYMOVE), EFAULT);
    void* wanted = mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%d\n", wanted != MAP_FAILED && wanted != place);
    wanted = mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    show_error((long)wanted, EEXIST);
    // All of it at once, with what lies above.
    printf("%d\n", munmap(place, 0x7fff00000000 - (uintptr_t)place));
    return 0;
}

// Below the kernel's place for a stack, where Wine reserves addresses.
static int below_stack(void) {
    unsigned char* const wanted = (unsigned char*)0x7ffffe000000;
    const size_t size = 0x1d00000;
    unsigned char* start =
        mmap(wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char* last = start + size - PAGE;
    unsigned char* again =
        mmap(last, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (again != last) return 1;
    *again = 1;
    printf("%d\n", *again);
    return 0;
}

static int mapped_over_driver(void) {
    mmap((void*)0x7ebff0000000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return 0;
}

static int moved_over_driver(void) {
    mremap(map_memory(PAGE, PROT_READ), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
           (void*)0x7ebff0000000);
    return 0;
}

// What strict mode permits, and what it does not.
static int in_strict_mode(int (*begin)(void)) {
    for (int forbidden = 0; forbidden < 2; ++forbidden) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            if (begin() != 0) _exit(1);
            if (write(1, "strict\n", 7) != 7 || forbidden) getpid();
            syscall(SYS_exit, 7);
        }
        printf("%x\n", (unsigned)status_of(child));
    }
    return 0;
}

static int begin_strict_mode(void) {
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}
static int strict_mode(void) {
    return in_strict_mode(begin_strict_mode);
}

static int begin_strict_mode_by_seccomp(void) {
    show_error(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL), EINVAL);
    fflush(stdout);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
}
static int strict_mode_by_seccomp(void) {
    return in_strict_mode(begin_strict_mode_by_seccomp);
}

static int denied(void) {
    show_error(prctl(PR_SET_MM, PR_SET_MM_BRK, sbrk(0), 0, 0), EPERM);
    show_error(prctl(PR_SET_TSC, PR_TSC_SIGSEGV), EINVAL);
    show_error(prctl(59, 1, 0, 0, 0), EINVAL);
    show_error(prctl(65, 1, 0, 0, 0), EINVAL);
    const int has_clone3 = syscall(SYS_clone3, NULL, 0) < 0 && errno != ENOSYS;
    struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid_size = 1};
    pid_t tid = 4000000;
    arguments.set_tid = (uintptr_t)&tid;
    show_error(make(&arguments), has_clone3 ? EPERM : ENOSYS);
    arguments = (struct clone_args){.exit_signal = SIGCHLD, .flags = CLONE_INTO_CGROUP};
    show_error(make(&arguments), has_clone3 ? EINVAL : ENOSYS);
    return 0;
}

// What is wrong with a call's other arguments counts first, wherever the driver's memory is.
static int everywhere(void) {
    const long most = 0x7fff00000000, mseal = 462;
    show_error(syscall(SYS_mlock2, 0, most, 8), EINVAL);
    show_error(syscall(mseal, 0, most, 8), EINVAL);
    show_error(syscall(SYS_pkey_mprotect, 0, most, 8, 8), EINVAL);
    show_error(syscall(SYS_mprotect, 0, most, PROT_READ), ENOMEM);
    show_error(madvise(NULL, (size_t)most, 77), EINVAL);
    show_error(msync(NULL, (size_t)most, 77), EINVAL);
    return 0;
}

// A program begins with a signal stack of no size, which it may set again.
static int first_signal_stack(void) {
    stack_t stack = {0};
    printf("%d\n", sigaltstack(&stack, NULL));
    printf("%d %d\n", sigaltstack(NULL, &stack), stack.ss_flags);
    stack.ss_size = 1;
    stack.ss_flags = 0;
    show_error(sigaltstack(&stack, NULL), ENOMEM);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"clone3_process", clone3_process},
        {"clone_descriptor", clone_descriptor},
        {"clone3_clears_handlers", clone3_clears_handlers},
        {"clone3_errors", clone3_errors},
        {"clone3_refused", clone3_refused},
        {"clone_errors", clone_errors},
        {"break_errors", break_errors},
        {"memory_errors", memory_errors},
        {"nothing_protected", nothing_protected},
        {"locked", locked},
        {"everywhere", everywhere},
        {"first_signal_stack", first_signal_stack},
        {"names", names},
        {"properties", properties},
        {"limits", limits},
        {"raised_stack_limit", raised_stack_limit},
        {"persona", persona},
        {"persona_inherited", persona_inherited},
        {"child_sets_its_own", child_sets_its_own},
        {"readable_is_executable", readable_is_executable},
        {"vsyscall", vsyscall},
        {"vsyscall_elsewhere", vsyscall_elsewhere},
        {"filtered", filtered},
        {"filter_traps", filter_traps},
        {"filter_kills", filter_kills},
        {"filter_of_looks", filter_of_looks},
        {"filter_of_advice", filter_of_advice},
        {"filter_of_returns", filter_of_returns},
        {"in_the_way", in_the_way},
        {"below_stack", below_stack},
        {"mapped_over_driver", mapped_over_driver},
        {"moved_over_driver", moved_over_driver},
        {"strict_mode", strict_mode},
        {"strict_mode_by_seccomp", strict_mode_by_seccomp},
        {"denied", denied},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
