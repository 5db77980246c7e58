// Code that the program writes while it runs, and changes: each change must be seen by the next
// execution, as on the processor (Intel SDM volume 3, section 12.6, "Self-Modifying Code").
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"
#include "machine_code.h"
#include "threads.h"

static int rewritten(void) {
    unsigned char* code = map_all_permitted(PAGE);
    int sum = 0;
    for (int i = 0; i < 1000; ++i) {
        write_return(code, i);
        for (int k = 0; k < 3; ++k) sum = sum * 3 + call(code);
    }
    printf("%d\n", sum);
    return 0;
}

// Valgrind unmaps the vDSO, which the driver lives beside.
static int without_vdso(void) {
    char* vdso = (char*)getauxval(AT_SYSINFO_EHDR);
    if (vdso != NULL) {
        const Elf64_Ehdr* header = (const Elf64_Ehdr*)vdso;
        const Elf64_Phdr* code = (const Elf64_Phdr*)(vdso + header->e_phoff);
        if (munmap(vdso, code->p_memsz) != 0) return 1;
    }
    return rewritten();
}

// Only the immediate changes: by stores of each size.
static int patched(void) {
    unsigned char* code = map_all_permitted(PAGE);
    unsigned sum = 0;
    write_return(code, 0);
    for (unsigned i = 0; i < 300; ++i) {
        const uint16_t two = (uint16_t)(i * 257);
        const uint32_t four = i * 0x01010101u;
        code[1] = (unsigned char)i;
        sum = sum * 3 + (unsigned)call(code);
        memcpy(code + 2, &two, sizeof two);
        sum = sum * 3 + (unsigned)call(code);
        memcpy(code + 1, &four, sizeof four);
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

static int protection_flips(void) {
    unsigned char* code = map_memory(PAGE, PROT_READ | PROT_WRITE);
    unsigned sum = 0;
    for (int i = 0; i < 300; ++i) {
        mprotect(code, PAGE, PROT_READ | PROT_WRITE);
        write_return(code, i);
        mprotect(code, PAGE, PROT_READ | PROT_EXEC);
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

// A loop whose body stores into an instruction that lies behind the store in the same block:
//     xor %eax, %eax; mov $100, %ecx
//  1: mov %ecx, 2f+1(%rip)
//  2: add $0, %eax                   with a four-byte immediate
//     dec %ecx; jnz 1b; ret
static int own_block(void) {
    static const unsigned char loop[] = {
        0x31, 0xc0, 0xb9, 100, 0, 0, 0,    0x89, 0x0d, 1,    0,    0,
        0,    0x05, 0,    0,   0, 0, 0xff, 0xc9, 0x75, 0xf1, 0xc3,
    };
    unsigned char* code = map_all_permitted(PAGE);
    memcpy(code, loop, sizeof loop);
    printf("%d\n", call(code));
    return 0;
}

// A store that replaces the very next instructions, which were `ud2; nop...`.
//     movabs $0xc30000002ab8, %rax; mov %rax, 1f(%rip)
//  1: ud2; nop; nop; nop; nop; nop; nop           becomes mov $42, %eax; ret
static int next_instruction(void) {
    static const unsigned char replace[] = {
        0x48, 0xb8, 0xb8, 42, 0,    0,    0,    0xc3, 0,    0,    0x48, 0x89, 0x05,
        0,    0,    0,    0,  0x0f, 0x0b, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    };
    unsigned char* code = map_all_permitted(PAGE);
    int sum = 0;
    for (int i = 0; i < 10; ++i) {
        memcpy(code, replace, sizeof replace);
        sum += call(code);
    }
    printf("%d\n", sum);
    return 0;
}

// Data that changes all the time, right beside code that does not.
static int data_beside_code(void) {
    unsigned char* code = map_all_permitted(PAGE);
    volatile unsigned* data = (volatile unsigned*)(void*)(code + 64);
    unsigned sum = 0;
    write_return(code, 5);
    for (unsigned i = 0; i < 20000; ++i) {
        *data = *data * 3 + i;
        sum += (unsigned)call(code) * *data;
    }
    printf("%u\n", sum);
    return 0;
}

// Written by rep movsb, and by the kernel.
static int copied(void) {
    unsigned char* code = map_all_permitted(2 * PAGE) + PAGE - 3;  // lies in two pages
    unsigned char bytes[RETURN_SIZE];
    unsigned sum = 0;
    for (int i = 0; i < 200; ++i) {
        void *to = code, *from = bytes;
        size_t size = sizeof bytes;
        write_return(bytes, i);
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}
static int written_by_kernel(void) {
    unsigned char* code = map_all_permitted(PAGE);
    int ends[2];
    unsigned sum = 0;
    if (pipe(ends) != 0) return 1;
    for (int i = 0; i < 200; ++i) {
        unsigned char bytes[RETURN_SIZE];
        write_return(bytes, i);
        struct iovec halves[2] = {{code, 2}, {code + 2, RETURN_SIZE - 2}};
        if (write(ends[1], bytes, sizeof bytes) != RETURN_SIZE) return 1;
        if (i % 2 == 0 && read(ends[0], code, RETURN_SIZE) != RETURN_SIZE) return 1;
        if (i % 2 == 1 && readv(ends[0], halves, 2) != RETURN_SIZE) return 1;
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

// Many small functions in many pages, some of them replaced between calls.
// Not all of what it writes is code.
static int read_over_code(void) {
    unsigned char* code = map_all_permitted(3 * PAGE) + PAGE;
    char bytes[2 * PAGE] = {0};
    int stream[2], messages[2];
    if (pipe(stream) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, messages) != 0) return 1;
    for (int i = 0; i < 3; ++i) {
        write_return(code, i);
        printf("%d\n", call(code));
        if (write(stream[1], bytes, sizeof bytes) != sizeof bytes) return 1;
        printf("%zd\n", read(stream[0], code - PAGE + i, sizeof bytes));
        write_return(code, i);
        printf("%d\n", call(code));
        if (write(messages[1], bytes, sizeof bytes) != sizeof bytes) return 1;
        printf("%zd\n", recv(messages[0], code - PAGE + i, sizeof bytes, MSG_DONTWAIT));
    }
    return 0;
}

static int many_functions(void) {
    enum { FUNCTIONS = 5000, STRIDE = 16 };
    unsigned char* code = map_memory(FUNCTIONS * STRIDE, PROT_READ | PROT_WRITE);
    unsigned sum = 0;
    for (int i = 0; i < FUNCTIONS; ++i) write_return(code + i * STRIDE, i);
    for (int round = 0; round < 5; ++round) {
        mprotect(code, FUNCTIONS * STRIDE, PROT_READ | PROT_EXEC);
        for (int i = 0; i < FUNCTIONS; ++i) sum = sum * 3 + (unsigned)call(code + i * STRIDE);
        mprotect(code, FUNCTIONS * STRIDE, PROT_READ | PROT_WRITE);
        for (int i = round; i < FUNCTIONS; i += 7) write_return(code + i * STRIDE, i * round);
    }
    printf("%u\n", sum);
    return 0;
}

// The same bytes mean something else from their middle on:
//     mov $0xc3ff3190, %eax; ret        from byte 2: xor %edi, %edi; ret
static int overlapping(void) {
    static const unsigned char bytes[] = {0xb8, 0x90, 0x31, 0xff, 0xc3, 0xc3};
    unsigned char* code = map_all_permitted(PAGE);
    memcpy(code, bytes, sizeof bytes);
    int edi = 1;
    const unsigned whole = (unsigned)call(code);
    __asm__ volatile("call *%1" : "+D"(edi) : "r"(code + 2) : "memory", "cc");
    printf("%x %d\n", whole, edi);
    return 0;
}

// Code that looks at its own bytes and at its return address.
//     call 1f; 1: pop %rcx; movzbl -5(%rcx), %eax; ret
static int reads_itself(void) {
    static const unsigned char bytes[] = {0xe8, 0, 0, 0, 0, 0x59, 0x0f, 0xb6, 0x41, 0xfb, 0xc3};
    unsigned char* code = map_all_permitted(PAGE);
    memcpy(code, bytes, sizeof bytes);
    printf("%x\n", (unsigned)call(code));
    return 0;
}

// Stores to protected code fault, and the handler unprotects it, as some garbage collectors do.
static unsigned char* guarded;
static volatile sig_atomic_t faults;
static void unprotect(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    const unsigned char* address = info->si_addr;
    if (address < guarded || address >= guarded + PAGE) _exit(9);
    mprotect(guarded, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    ++faults;
}
static int unprotected_by_handler(void) {
    const struct sigaction action = {.sa_sigaction = unprotect, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    guarded = map_memory(PAGE, PROT_READ | PROT_EXEC);
    unsigned sum = 0;
    for (int i = 0; i < 100; ++i) {
        write_return(guarded, i);
        sum = sum * 3 + (unsigned)call(guarded);
        if (i % 2 == 0) mprotect(guarded, PAGE, PROT_READ | PROT_EXEC);
    }
    printf("%u, %d faults\n", sum, (int)faults);
    return 0;
}

// A fault in generated code, whose handler repairs the code.  ud2; nop; nop; nop; nop
static void repair(int number, siginfo_t* info, void* context) {
    (void)number, (void)info;
    const greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    if (registers[REG_RIP] != (greg_t)guarded) _exit(9);
    write_return(guarded, ++faults);
}
static int repaired_by_handler(void) {
    static const unsigned char broken[RETURN_SIZE] = {0x0f, 0x0b, 0x90, 0x90, 0x90, 0x90};
    const struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    guarded = map_all_permitted(PAGE);
    unsigned sum = 0;
    for (int i = 0; i < 100; ++i) {
        memcpy(guarded, broken, sizeof broken);
        sum = sum * 3 + (unsigned)call(guarded);
    }
    printf("%u, %d faults\n", sum, (int)faults);
    return 0;
}

// A timer's handler changes what the interrupted loop calls.
static void change(int number) {
    (void)number;
    write_return(guarded, 1);
}
static int changed_by_signal(void) {
    const struct itimerval soon = {{0, 0}, {0, 2000}};
    guarded = map_all_permitted(PAGE);
    signal(SIGALRM, change);
    for (int i = 0; i < 10; ++i) {
        write_return(guarded, 0);
        setitimer(ITIMER_REAL, &soon, NULL);
        while (call(guarded) == 0) {
        }
    }
    puts("ended");
    return 0;
}

// Without a call, too: the loop itself is what changes.
//  1: jmp 1b        becomes  nop; nop; ret
static void leave_loop(int number) {
    (void)number;
    guarded[1] = 0x90;
    guarded[0] = 0x90;
}
static int loop_changed_by_signal(void) {
    static const unsigned char loop[] = {0xeb, 0xfe, 0xc3};
    const struct itimerval soon = {{0, 0}, {0, 2000}};
    guarded = map_all_permitted(PAGE);
    signal(SIGALRM, leave_loop);
    for (int i = 0; i < 10; ++i) {
        memcpy(guarded, loop, sizeof loop);
        setitimer(ITIMER_REAL, &soon, NULL);
        call(guarded);
    }
    puts("ended");
    return 0;
}

// One thread changes what others execute. They see it sooner or later: one aligned store changes
// one instruction (Intel SDM volume 3, section 9.1.3, "Handling Self- and Cross-Modifying Code").
static atomic_int seen;
static void* call_until_changed(void* ignored) {
    (void)ignored;
    for (int wanted = 1; wanted <= 20; ++wanted) {
        int found;
        while ((found = call(guarded)) < wanted) {
        }
        if (found != wanted) return (void*)1;
        atomic_fetch_add(&seen, 1);
        while (atomic_load(&seen) < wanted * 3) {
        }
    }
    return NULL;
}
static void* change_for_others(void* number) {
    if ((uintptr_t)number != 0) return call_until_changed(number);
    for (uint64_t value = 1; value <= 20; ++value) {
        while (atomic_load(&seen) != ((int)value - 1) * 3) {
        }
        // mov $value, %eax; ret
        atomic_store((_Atomic uint64_t*)(void*)guarded, 0xc300000000b8u | value << 8);
    }
    return NULL;
}
static int changed_by_thread(void) {
    guarded = map_all_permitted(PAGE);
    write_return(guarded, 0);
    printf("%lu wrong\n", (unsigned long)run_in_threads(4, change_for_others));
    return 0;
}

// Every thread generates its own code and calls that of the others.
static pthread_barrier_t barrier;
static unsigned char* areas[4];
static void* generate_and_call(void* number) {
    const size_t self = (size_t)number;
    unsigned sum = 0;
    areas[self] = map_all_permitted(PAGE);
    for (unsigned round = 0; round < 50; ++round) {
        for (unsigned i = 0; i < 16; ++i) {
            write_return(areas[self] + 16 * i, (int)(round * 100 + (unsigned)self + i));
        }
        pthread_barrier_wait(&barrier);
        for (size_t other = 0; other < 4; ++other) {
            for (size_t i = 0; i < 16; ++i) sum = sum * 3 + (unsigned)call(areas[other] + 16 * i);
        }
        pthread_barrier_wait(&barrier);
    }
    return (void*)(uintptr_t)sum;
}
static int generated_in_threads(void) {
    pthread_barrier_init(&barrier, NULL, 4);
    printf("%lu\n", (unsigned long)run_in_threads(4, generate_and_call));
    return 0;
}

// The child's changes are the child's.
static int changed_in_child(void) {
    unsigned char* code = map_all_permitted(PAGE);
    int status = 0;
    write_return(code, 1);
    printf("%d ", call(code));
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const int before = call(code);
        write_return(code, 2);
        _exit(before * 10 + call(code));
    }
    if (waitpid(child, &status, 0) != child) return 1;
    printf("%d %d\n", WEXITSTATUS(status), call(code));
    return 0;
}

// The kernel moves only what has the same permissions throughout, as the program's memory has.
static unsigned char* moved(unsigned char* code, size_t size, size_t new_size) {
    unsigned char* place = mremap(code, size, new_size, MREMAP_MAYMOVE);
    if (place == MAP_FAILED) abort();
    return place;
}
static int moved_code(void) {
    for (int pages = 1; pages <= 4; pages += 3) {
        const size_t size = (size_t)pages * PAGE;
        unsigned char* code = map_all_permitted(size) + size - PAGE;
        write_return(code, 1);
        int sum = call(code);
        write_return(code, 2);
        sum = sum * 10 + call(code);
        code = moved(code - (size - PAGE), size, 64 * PAGE) + size - PAGE;
        sum = sum * 10 + call(code);
        write_return(code, 3);
        printf("%d %d\n", sum, call(code));
        errno = 0;
        show_error((long)mremap(code, PAGE, 1UL << 62, MREMAP_MAYMOVE), ENOMEM);
        write_return(code, 4);
        printf("%d\n", call(code));
    }
    return 0;
}

// What has been behind the program break is not there when it comes back.
static int behind_the_break(void) {
    setvbuf(stdout, NULL, _IONBF, 0);  // malloc(3) moves the break, too
    char* code = sbrk(0);
    code += -(uintptr_t)code % PAGE;
    for (int i = 0; i < 3; ++i) {
        if (brk(code + PAGE) != 0) return 1;
        printf("%d ", code[1]);
        write_return(code, i + 1);
        mprotect(code, PAGE, PROT_READ | PROT_EXEC);
        printf("%d\n", call(code));
        if (brk(code) != 0) return 1;
    }
    const pid_t child = fork();
    if (child == 0) _exit(call(code));
    int status = 0;
    waitpid(child, &status, 0);
    printf("%x\n", (unsigned)status);
    return 0;
}

// MREMAP_DONTUNMAP, which Linux has from 5.7 on: what was moved leaves empty memory.
static int left_behind(void) {
    unsigned char* code = map_all_permitted(PAGE);
    write_return(code, 1);
    printf("%d\n", call(code));
    const unsigned char* place = mremap(code, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (place == MAP_FAILED) return 1;
    printf("%d %d\n", call(place), code[1]);
    write_return(code, 2);
    printf("%d %d\n", call(code), call(place));
    return 0;
}

// By shmat(2), as what cannot be executed.
static int attached_over_code(void) {
    unsigned char* code = map_all_permitted(PAGE);
    write_return(code, 1);
    printf("%d\n", call(code));
    fflush(stdout);
    const int segment = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    const void* place = shmat(segment, code, SHM_REMAP);
    shmctl(segment, IPC_RMID, NULL);
    if (place != code) return 1;
    write_return(code, 2);
    return call(code);
}

// Code far from all other, and code below 2 GiB, that loads what lies behind it:
//     mov 13(%rip), %rax; ret        with bits in the prefix that extend no register
static int extended_for_nothing(void) {
    static const uintptr_t places[] = {0x100000000000, 0x48000000};
    for (unsigned i = 0; i < 2; ++i) {
        unsigned char* code = mmap((void*)places[i], PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        for (unsigned bits = 0; bits < 4; ++bits) {
            const unsigned char bytes[] = {0x48 | bits, 0x8b, 0x05, 13, 0, 0, 0, 0xc3};
            memcpy(code, bytes, sizeof bytes);
            code[20] = (unsigned char)(10 * i + bits);
            printf("%d ", call(code));
        }
    }
    puts("");
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"rewritten", rewritten},
        {"without_vdso", without_vdso},
        {"patched", patched},
        {"protection_flips", protection_flips},
        {"own_block", own_block},
        {"next_instruction", next_instruction},
        {"data_beside_code", data_beside_code},
        {"copied", copied},
        {"written_by_kernel", written_by_kernel},
        {"read_over_code", read_over_code},
        {"many_functions", many_functions},
        {"overlapping", overlapping},
        {"reads_itself", reads_itself},
        {"unprotected_by_handler", unprotected_by_handler},
        {"repaired_by_handler", repaired_by_handler},
        {"changed_by_signal", changed_by_signal},
        {"loop_changed_by_signal", loop_changed_by_signal},
        {"changed_by_thread", changed_by_thread},
        {"generated_in_threads", generated_in_threads},
        {"changed_in_child", changed_in_child},
        {"moved_code", moved_code},
        {"extended_for_nothing", extended_for_nothing},
        {"behind_the_break", behind_the_break},
        {"left_behind", left_behind},
        {"attached_over_code", attached_over_code},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
