// Code whose mapping changes: unmapped, replaced, moved, mapped twice, loaded and unloaded, on a
// stack that is made executable.
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"
#include "machine_code.h"

enum { READ_EXEC = PROT_READ | PROT_EXEC, ALL = PROT_READ | PROT_WRITE | PROT_EXEC };

// Makes the file a function.
static int fill(int file, int value) {
    unsigned char page[PAGE] = {0};
    write_return(page, value);
    if (file < 0 || write(file, page, PAGE) != PAGE) abort();
    return file;
}

static int make_file(int value) {
    return fill(memfd_create("code", 0), value);
}

// A file with a name of its own.
static int make_named_file(int value) {
    char name[] = "/tmp/code.XXXXXX";
    const int file = fill(mkstemp(name), value);
    unlink(name);
    return file;
}

static int unmapped_and_mapped(void) {
    unsigned char* code = map_all_permitted(PAGE);
    unsigned sum = 0;
    for (int i = 0; i < 200; ++i) {
        write_return(code, i);
        sum = sum * 3 + (unsigned)call(code);
        munmap(code, PAGE);
        void* again = mmap(code, PAGE, ALL, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (again != code) return 1;
    }
    printf("%u\n", sum);
    return 0;
}

static int replaced_by_file(void) {
    const int files[2] = {make_file(11), make_file(22)};
    unsigned char* code = map_memory(PAGE, PROT_NONE);
    unsigned sum = 0;
    for (int i = 0; i < 200; ++i) {
        if (mmap(code, PAGE, READ_EXEC, MAP_PRIVATE | MAP_FIXED, files[i % 2], 0) != code) return 1;
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

static int moved(void) {
    unsigned char* places = map_memory(2 * PAGE, PROT_NONE);
    unsigned char* code = map_all_permitted(PAGE);
    unsigned sum = 0;
    for (int i = 0; i < 200; ++i) {
        write_return(code, i);
        sum = sum * 3 + (unsigned)call(code);
        unsigned char* to = places + i % 2 * PAGE;
        if (mremap(code, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) return 1;
        code = to;
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

static sigjmp_buf escape;
static void* fault_address;
static void jump_out(int number, siginfo_t* info, void* context) {
    (void)context;
    fault_address = info->si_addr;
    siglongjmp(escape, number);
}
static void escape_from_faults(void) {
    const struct sigaction action = {.sa_sigaction = jump_out, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

// The call must fault, with the code's own address.
static int call_gone(const unsigned char* code) {
    const int caught = sigsetjmp(escape, 1);
    if (caught == 0) return call(code);
    return caught * 10 + (fault_address == code);
}
static int called_when_gone(void) {
    unsigned char* code = map_all_permitted(PAGE);
    escape_from_faults();
    write_return(code, 1);
    printf("%d ", call_gone(code));
    mprotect(code, PAGE, PROT_READ | PROT_WRITE);
    printf("%d ", call_gone(code));
    mprotect(code, PAGE, READ_EXEC);
    printf("%d ", call_gone(code));
    munmap(code, PAGE);
    printf("%d ", call_gone(code));
    printf("%d\n", call_gone((const unsigned char*)MAP_FAILED));
    return 0;
}

// Behind the end of its file there is no code: SIGBUS.
static int file_made_shorter(void) {
    const int file = make_file(3);
    unsigned char* code = mmap(NULL, PAGE, READ_EXEC, MAP_SHARED, file, 0);
    escape_from_faults();
    printf("%d ", call_gone(code));
    if (ftruncate(file, 0) != 0) return 1;
    printf("%d\n", call_gone(code));
    return 0;
}

// munmap(2) by the code that it unmaps, which then has no next instruction:
//     mov $11, %eax; mov $4096, %esi; syscall; ret        with the page in rdi
static int unmaps_itself(void) {
    static const unsigned char bytes[] = {0xb8, 11, 0, 0, 0, 0xbe, 0, 0x10, 0, 0, 0x0f, 5, 0xc3};
    unsigned char* code = map_all_permitted(PAGE);
    memcpy(code, bytes, sizeof bytes);
    escape_from_faults();
    if (sigsetjmp(escape, 1) == 0) {
        long result;
        __asm__ volatile("call *%1"
                         : "=a"(result)
                         : "D"(code)
                         : "rcx", "rsi", "r11", "memory", "cc");
        puts("went on");
    }
    printf("%d\n", (const unsigned char*)fault_address == code + sizeof bytes - 1);
    return 0;
}

// The same, but the system call is the C library's, and returns to where the page's caller was:
//     jmp *%rdx
static int unmapped_by_last_call(void) {
    static const unsigned char bytes[] = {0xff, 0xe2};
    for (int i = 0; i < 50; ++i) {
        unsigned char* code = map_all_permitted(PAGE);
        memcpy(code, bytes, sizeof bytes);
        long (*trampoline)(void*, size_t, int (*)(void*, size_t));
        memcpy(&trampoline, &code, sizeof trampoline);
        if ((int)trampoline(code, PAGE, munmap) != 0) return 1;
    }
    puts("returned");
    return 0;
}

static int mapped_twice(void) {
    const int file = make_file(0);
    unsigned char* code = mmap(NULL, PAGE, READ_EXEC, MAP_SHARED, file, 0);
    unsigned char* data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsigned sum = 0;
    for (int i = 0; i < 200; ++i) {
        write_return(data, i);
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

// An instruction that goes on behind the last page that can be executed faults there, and is
// repeated when the handler has seen to the rest.
static unsigned char* second_page;
static void complete(int number, siginfo_t* info, void* context) {
    const uint64_t pc = (uint64_t)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
    printf("%d/%d %d at -%d, ", number, info->si_code, info->si_addr == (void*)second_page,
           (int)((uint64_t)second_page - pc));
    mmap(second_page, PAGE, ALL, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(second_page, "\0\0\0\xc3", 4);
}
static int cut_off(void) {
    const struct sigaction action = {.sa_sigaction = complete, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    for (int times = 0; times < 2; ++times) {
        unsigned char* code = map_all_permitted(2 * PAGE);
        second_page = code + PAGE;
        memcpy(second_page - 3, "\x90\xb8\x07", 3);  // mov $7, %eax; ret
        if (times == 0)
            munmap(second_page, PAGE);
        else
            mprotect(second_page, PAGE, PROT_READ | PROT_WRITE);
        printf("%d\n", call(second_page - 3));
    }
    return 0;
}

// Another process writes the code.
static int shared_with_child(void) {
    unsigned char* code = mmap(NULL, PAGE, ALL, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    write_return(code, 0);
    for (int i = 1; i < 5; ++i) {
        printf("%d ", call(code));
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            write_return(code, i);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    printf("%d\n", call(code));
    return 0;
}

// The file behind the code is written by write(2).
static int file_written(void) {
    const int file = make_file(0);
    unsigned char* code = mmap(NULL, PAGE, READ_EXEC, MAP_SHARED, file, 0);
    unsigned sum = 0;
    for (int i = 0; i < 200; ++i) {
        unsigned char bytes[RETURN_SIZE];
        write_return(bytes, i);
        if (pwrite(file, bytes, sizeof bytes, 0) != RETURN_SIZE) return 1;
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

// madvise(2): a private page that has been written becomes the file's again.
static int changes_dropped(void) {
    unsigned char* code = mmap(NULL, PAGE, ALL, MAP_PRIVATE, make_file(7), 0);
    for (int i = 0; i < 3; ++i) {
        printf("%d ", call(code));
        write_return(code, i);
        printf("%d ", call(code));
        madvise(code, PAGE, MADV_DONTNEED);
    }
    printf("%d\n", call(code));
    /* MADV_DONTNEED_LOCKED, which Linux before 5.18 does not have */
    for (int i = 0; i < 3; ++i) {
        write_return(code, i);
        printf("%d ", call(code));
        const int result = madvise(code, PAGE, 24);
        printf("%d %d\n", result, call(code));
    }
    return 0;
}

static int shared_memory_segment(void) {
    const int segment = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0700);
    if (segment < 0) return 1;
    unsigned char* code = shmat(segment, NULL, SHM_EXEC);
    shmctl(segment, IPC_RMID, NULL);
    unsigned sum = 0;
    for (int i = 0; i < 50; ++i) {
        write_return(code, i);
        sum = sum * 3 + (unsigned)call(code);
    }
    shmdt(code);
    printf("%u\n", sum);
    return 0;
}

// Without a key, pkey_mprotect(2) is mprotect(2).
static int protected_without_key(void) {
    unsigned char* code = map_memory(PAGE, PROT_READ | PROT_WRITE);
    unsigned sum = 0;
    for (int i = 0; i < 50; ++i) {
        pkey_mprotect(code, PAGE, PROT_READ | PROT_WRITE, -1);
        write_return(code, i);
        pkey_mprotect(code, PAGE, READ_EXEC, -1);
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

// One page of code among others is replaced; what jumps there from a neighbour goes on.
//     jmp .+4096
static int neighbour_replaced(void) {
    static const unsigned char jump[] = {0xe9, 0xfb, 0x0f, 0, 0};
    unsigned char* code = map_all_permitted(2 * PAGE);
    unsigned sum = 0;
    memcpy(code, jump, sizeof jump);
    mprotect(code, PAGE, READ_EXEC);
    for (int i = 0; i < 200; ++i) {
        void* next = mmap(code + PAGE, PAGE, ALL, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        write_return(next, i);
        sum = sum * 3 + (unsigned)call(code);
    }
    printf("%u\n", sum);
    return 0;
}

// --- Code right before memory that cannot be read.

// Prints the result of the call, or how far after `code` it faults.
static void show_call(const unsigned char* code, const unsigned char* function) {
    const int caught = sigsetjmp(escape, 1);
    if (caught == 0) {
        printf("%d\n", call(function));
    } else {
        printf("signal %d at %ld\n", caught, (long)((unsigned char*)fault_address - code));
    }
}

// The mapping has a page more than its file.
static int at_end_of_file(void) {
    unsigned char bytes[RETURN_SIZE];
    const int file = memfd_create("code", 0);
    write_return(bytes, 5);
    escape_from_faults();
    for (int pages = 1; pages <= 2; ++pages) {
        ftruncate(file, pages * PAGE);
        pwrite(file, bytes, sizeof bytes, PAGE - RETURN_SIZE);
        if (pages == 2) pwrite(file, bytes, 2, 2 * PAGE - 2);  // an instruction that is cut off
        const unsigned char* code = mmap(NULL, 3 * PAGE, READ_EXEC, MAP_PRIVATE, file, 0);
        show_call(code, code + PAGE - RETURN_SIZE);
        show_call(code, code + 2 * PAGE - 2);
        show_call(code, code + 2 * PAGE);
    }
    return 0;
}

// Generated code, in a file that grows.
static int in_growing_file(void) {
    enum { PAGES = 4 };
    const int file = memfd_create("code", 0);
    unsigned char* to = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const unsigned char* code = mmap(NULL, PAGES * PAGE, READ_EXEC, MAP_SHARED, file, 0);
    for (int pages = 1; pages <= PAGES; ++pages) {
        ftruncate(file, pages * PAGE);
        write_return(to + pages * PAGE - RETURN_SIZE, pages);
        printf("%d\n", call(code + pages * PAGE - RETURN_SIZE));
        if (pages == PAGES) break;
        ftruncate(file, (pages + 1) * PAGE);
        write_return(to + pages * PAGE - 3, 10 * pages);  // in both pages
        printf("%d\n", call(code + pages * PAGE - 3));
    }
    return 0;
}

static int before_guard(void) {
    enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };  // since Linux 6.13
    unsigned char* code = map_all_permitted(2 * PAGE);
    write_return(code + PAGE - RETURN_SIZE, 6);
    printf("%d ", madvise(code + PAGE, PAGE, GUARD_INSTALL));
    printf("%d ", call(code + PAGE - RETURN_SIZE));
    printf("%d ", madvise(code + PAGE, PAGE, GUARD_REMOVE));
    write_return(code + PAGE - 3, 7);
    printf("%d\n", call(code + PAGE - 3));
    return 0;
}

static int only_executable(void) {
    unsigned char* code = map_memory(PAGE, PROT_READ | PROT_WRITE);
    const int file = make_file(2);
    write_return(code, 1);
    printf("%d ", mprotect(code, PAGE, PROT_EXEC));
    printf("%d ", call(code));
    printf("%d\n", call(mmap(NULL, PAGE, PROT_EXEC, MAP_PRIVATE, file, 0)));
    return 0;
}

// --- Effects of mprotect(2).

static int protected_in_part(void) {
    unsigned char* code = map_memory(3 * PAGE, PROT_READ | PROT_WRITE);
    escape_from_faults();
    munmap(code + 2 * PAGE, PAGE);
    write_return(code, 1);
    write_return(code + PAGE, 2);
    show_error(mprotect(code + 2 * PAGE, PAGE, READ_EXEC), ENOMEM);
    show_call(code, code);
    show_error(mprotect(code, 3 * PAGE, READ_EXEC), ENOMEM);
    show_call(code, code);
    show_call(code, code + PAGE);
    show_error(mprotect(code, 3 * PAGE, PROT_READ), ENOMEM);
    show_call(code, code + PAGE);
    return 0;
}

static int protected_to_the_end(void) {
    unsigned char* data = map_memory(2 * PAGE, PROT_READ | PROT_WRITE);
    unsigned char* code = map_memory(2 * PAGE, READ_EXEC);
    const int protections[] = {
        PROT_READ | PROT_GROWSDOWN, READ_EXEC | PROT_GROWSDOWN,
        READ_EXEC | PROT_GROWSUP,   READ_EXEC | PROT_GROWSDOWN | PROT_GROWSUP,
        ALL | PROT_GROWSDOWN,       READ_EXEC | 0x40,
        PROT_READ | 0x40,           READ_EXEC | 8};
    for (size_t i = 0; i < sizeof protections / sizeof protections[0]; ++i) {
        show_error(mprotect(data + PAGE, PAGE, protections[i]), EINVAL);
        show_error(mprotect(code, PAGE, protections[i]), EINVAL);
    }
    unsigned char* stack = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    escape_from_faults();
    write_return(stack, 1);
    show_error(mprotect(stack + 8 * PAGE, PAGE, ALL | PROT_GROWSDOWN), EINVAL);
    show_call(stack, stack);
    show_call(stack, stack + 9 * PAGE);
    return 0;
}

// What /proc/self/maps says of each page.
static void show_permissions(const unsigned char* begin, int pages) {
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[512], permissions[8];
    unsigned long from, to;
    const unsigned long start = (unsigned long)begin, end = start + (unsigned long)pages * PAGE;
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %7s", &from, &to, permissions) == 3 && from < end && to > start)
            printf("%ld-%ld %s ", (long)(from - start) / PAGE, (long)(to - start) / PAGE,
                   permissions);
    puts("");
    fclose(maps);
}
static int runs_into_read_only(void) {
    enum { NOP = 0x90, PAGES = 4 };
    unsigned char* code = map_memory((PAGES + 2) * PAGE, PROT_NONE) + PAGE;
    mprotect(code, PAGES * PAGE, ALL);
    memset(code, NOP, PAGES * PAGE);
    mprotect(code + 2 * PAGE, PAGE, PROT_READ);
    escape_from_faults();
    show_call(code, code + PAGE - 8);
    show_permissions(code, PAGES);
    write_return(code + PAGE, 1);
    show_call(code, code + PAGE - 8);
    show_permissions(code, PAGES);
    show_call(code, code + 2 * PAGE);
    return 0;
}

// Two libraries, unloaded and loaded in turn: the second usually comes to the addresses where the
// first was.
static int call_library(const char* folder, const char* name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void* library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        puts(dlerror());
        return -1;
    }
    const int result = call(dlsym(library, "answer"));
    dlclose(library);
    return result;
}
static int libraries(void) {
    char path[PATH_MAX] = "";
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
    const char* folder = dirname(path);
    unsigned sum = 0;
    for (int i = 0; i < 50; ++i) {
        sum = sum * 3 + (unsigned)call_library(folder, "libanswer_one.so");
        sum = sum * 3 + (unsigned)call_library(folder, "libanswer_two.so");
    }
    printf("%u\n", sum);
    return 0;
}

// The same with many files of one and two pages, whose last page is executed.
static int many_files(void) {
    unsigned sum = 0;
    for (int i = 0; i < 300; ++i) {
        const int file = make_named_file(i);  // stays open, so that no other gets its inode
        const size_t before = i % 2 * PAGE;
        unsigned char* whole = mmap(NULL, before + PAGE, PROT_READ, MAP_PRIVATE, file, 0);
        void* code = mmap(whole + before, PAGE, READ_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
        sum = sum * 3 + (unsigned)call(code);
        munmap(whole, before + PAGE);
    }
    printf("%u\n", sum);
    return 0;
}

// The page of this frame and those below it, into which the calls go.
static int stack_made_executable(void) {
    unsigned char* here =
        (unsigned char*)((uintptr_t)__builtin_frame_address(0) & -(uintptr_t)PAGE);
    if (mprotect(here - 3 * PAGE, 4 * PAGE, ALL) != 0) return 1;
    printf("%d %d\n", call_on_stack(20), call_on_stack(10));
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"unmapped_and_mapped", unmapped_and_mapped},
        {"replaced_by_file", replaced_by_file},
        {"moved", moved},
        {"cut_off", cut_off},
        {"shared_with_child", shared_with_child},
        {"called_when_gone", called_when_gone},
        {"file_made_shorter", file_made_shorter},
        {"unmaps_itself", unmaps_itself},
        {"unmapped_by_last_call", unmapped_by_last_call},
        {"mapped_twice", mapped_twice},
        {"file_written", file_written},
        {"changes_dropped", changes_dropped},
        {"shared_memory_segment", shared_memory_segment},
        {"protected_without_key", protected_without_key},
        {"neighbour_replaced", neighbour_replaced},
        {"at_end_of_file", at_end_of_file},
        {"in_growing_file", in_growing_file},
        {"before_guard", before_guard},
        {"only_executable", only_executable},
        {"protected_in_part", protected_in_part},
        {"protected_to_the_end", protected_to_the_end},
        {"runs_into_read_only", runs_into_read_only},
        {"libraries", libraries},
        {"many_files", many_files},
        {"stack_made_executable", stack_made_executable},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
