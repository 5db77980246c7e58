// Repeated string instructions that run into memory that cannot be accessed, or whose operands only
// segment and address size tell.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include "cases.h"

enum { PAGE = 4096, PAGES = 8, BYTES = PAGES * PAGE };

// Between pages that cannot be accessed.
static unsigned char* memory;
static sigjmp_buf behind;
static int faults;

static void map_memory(void) {
    unsigned char* all =
        mmap(NULL, BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = all + PAGE;
    mprotect(memory, BYTES, PROT_READ | PROT_WRITE);
    memset(memory, 1, BYTES);
}

// Tells how far the instruction has come.
static void tell(int number, siginfo_t* info, void* context) {
    const greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    const intptr_t start = (intptr_t)memory;
    // Of what is no address at all, there is none.
    const intptr_t address = info->si_addr == NULL ? 0 : (intptr_t)info->si_addr - start;
    printf("%d %d at %ld: %llx %lld %lld\n", number, info->si_code, address, registers[REG_RCX],
           registers[REG_RSI] - start, registers[REG_RDI] - start);
    siglongjmp(behind, 1);
}

// Makes the page accessible; the instruction goes on.
static void let(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    ++faults;
    mprotect((void*)((uintptr_t)info->si_addr & -PAGE), PAGE, PROT_READ | PROT_WRITE);
}

static void handle(void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

// Executes the instruction with those registers, which are offsets in `memory`, if they are small.
#define RUN(instruction, count, from, to)                                         \
    do {                                                                          \
        unsigned long rcx = (unsigned long)(count), rax = 0;                      \
        unsigned char *rsi = memory + (from), *rdi = memory + (to);               \
        if (sigsetjmp(behind, 1)) break;                                          \
        __asm__ volatile(instruction "\n\tcld"                                    \
                         : "+c"(rcx), "+S"(rsi), "+D"(rdi), "+a"(rax)             \
                         :                                                        \
                         : "memory", "cc");                                       \
        printf("%lx %ld %ld\n", rcx, (long)(rsi - memory), (long)(rdi - memory)); \
    } while (0)

static int compared(void) {
    map_memory();
    handle(tell);
    RUN("repe cmpsb", 0x100000, 0, 100);
    RUN("repe cmpsb", -1, 100, 0);
    RUN("repe cmpsq", -1, 3, 100);
    RUN("repne scasb", -1, 0, 100);
    RUN("repne scasl", -1, 0, 101);
    RUN("std\n\trepne scasw", -1, 0, BYTES - 3);
    RUN("std\n\trepe cmpsl", -1, 50 * 4, BYTES - 4);
    RUN("repne scasb", 1, 0, -1);
    RUN("repne scasb", 0, 0, -1);
    memory[5000] = 0;
    RUN("repne scasb", -1, 0, 100);
    RUN("std\n\trepne scasb", -1, 0, BYTES - 1);
    RUN("repe cmpsb", -1, 4900, 100);
    RUN("repe cmpsb", -1, 1L << 50, 100);
    RUN("repe cmpsb", -1, 0, 1L << 62);
    return 0;
}

static int moved(void) {
    map_memory();
    handle(tell);
    RUN("rep movsb", -1, 0, 100);
    RUN("rep movsb", 0x100000000, 100, 0);
    RUN("rep movsq", -1, 5, 7 * PAGE + 3);
    RUN("std\n\trep movsl", -1, 2 * PAGE, 5 * PAGE + 1);
    RUN("rep stosq", -1, 0, 4);
    RUN("std\n\trep stosw", -1, 0, 4 * PAGE + 1);
    RUN("rep stosb", -1, 0, -3);
    RUN("rep lodsb", -1, 10, 0);
    RUN("rep lodsq", 1L << 40, 3 * PAGE + 1, 0);
    RUN("rep movsb", -1, 0, 1L << 62);
    // What is read only can be read, but not written.
    mprotect(memory + 4 * PAGE, PAGE, PROT_READ);
    RUN("rep movsb", -1, 2 * PAGE + 7, 10);
    RUN("rep movsb", 0x10000000, 10, 2 * PAGE + 7);
    RUN("rep lodsl", BYTES / 4, 0, 0);
    unsigned sum = 0;
    for (unsigned i = 0; i < BYTES; ++i) sum = sum * 31 + memory[i];
    printf("%x\n", sum);
    return 0;
}

static int file_end(void) {
    char name[] = "/tmp/faulting_strings.XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    if (file < 0 || ftruncate(file, PAGE + 100) != 0) return 1;
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    handle(tell);
    RUN("rep stosb", BYTES, 0, 10);
    RUN("repe scasb", BYTES, 0, 10);
    RUN("rep lodsw", BYTES / 2, 9, 0);
    return 0;
}

static int segment_and_size(void) {
    memory =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    handle(tell);
    const long above = 7L << 40;
    RUN("addr32 repe cmpsb", 50 + above, above, above + 1);
    RUN("addr32 rep stosl", 50 + above, 0, above + 9);
    RUN("addr32 repne scasl", 500 + above, 0, above + 209);
    RUN("addr32 repne scasb", 10, 0, above);
    mprotect(memory + BYTES - PAGE, PAGE, PROT_NONE);
    RUN("addr32 rep lodsb", above - 1, above, 0);
    map_memory();
    uint64_t base = 0, copy[2] = {0, 0}, count = 8;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
    uint64_t offset = 0;
    __asm__ volatile("repe cmpsb %%es:(%%rdi), %%fs:(%%rsi)"
                     : "+c"(count), "+S"(offset), "+D"(base)
                     :
                     : "memory", "cc");
    printf("%lu %lu\n", count, offset);
    void* to = copy;
    offset = 0, count = 1;
    __asm__ volatile("rep movsq %%fs:(%%rsi), %%es:(%%rdi)"
                     : "+c"(count), "+S"(offset), "+D"(to)
                     :
                     : "memory");
    __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
    printf("%lu %d\n", count, copy[0] == base);
    return 0;
}

// With `protection` before, which the handler takes away page by page.
static int repeat_on_pages(int protection) {
    map_memory();
    handle(let);
    for (int i = 0; i < 10; ++i) {
        mprotect(memory, BYTES, protection);
        RUN("rep stosq", BYTES / 8, 0, 0);
        mprotect(memory, BYTES, protection);
        RUN("repe scasb", 3 * PAGE, 0, 2 * PAGE);
        RUN("std\n\trep movsb", 3 * PAGE, 5 * PAGE - 1, 4 * PAGE - 1);
    }
    printf("%d\n", faults);
    return 0;
}

static int resumed(void) {
    return repeat_on_pages(PROT_NONE);
}

static int not_resumed(void) {
    return repeat_on_pages(PROT_READ | PROT_WRITE);
}

// Ends by the signal.
static int ended(void) {
    map_memory();
    memset(memory, 1, BYTES);
    puts("now");
    fflush(stdout);
    RUN("repne scasb", -1, 0, 0);
    return 0;
}

// Code that has been executed is where the instruction stores to.
static int over_code(void) {
    memory =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(tell);
    mprotect(memory + 6 * PAGE, PAGE, PROT_NONE);
    for (int i = 0; i < 3; ++i) {
        static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};  // mov eax, 7; ret
        memcpy(memory + 3 * PAGE, code, sizeof code);
        memory[3 * PAGE + 1] += i;
        int (*function)(void);
        void* at = memory + 3 * PAGE;
        memcpy(&function, &at, sizeof function);
        printf("%d\n", function());
        RUN("rep stosb", -1, 0, 2 * PAGE + 1);
    }
    return 0;
}

static const struct test_case cases[] = {
    {"compared", compared}, {"moved", moved},
    {"file_end", file_end}, {"segment_and_size", segment_and_size},
    {"resumed", resumed},   {"not_resumed", not_resumed},
    {"ended", ended},       {"over_code", over_code},
};

int main(int argc, char** argv) {
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
