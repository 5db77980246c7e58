// Memory of every kind, each referred to a known number of times: by functions of their own, whose
// lines are the only ones that read or write it.
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWords = 1000 };

static long counters[kWords];
long shared_table[kWords];
static __thread long own[kWords];

// Each word once.
__attribute__((noinline)) static long walk(volatile long* words) {
    long sum = 0;
    for (int i = 0; i < kWords; ++i) sum += words[i];
    return sum;
}

__attribute__((noinline)) static void fill(volatile long* words) {
    for (int i = 0; i < kWords; ++i) words[i] = i;
}

__attribute__((noinline)) static void* allocate(size_t bytes) {
    return malloc(bytes);
}

// --- Blocks.

__attribute__((noinline)) static void first_site(void) {
    long* block = allocate(kWords * sizeof(long));
    fill(block);
    free(block);
}

__attribute__((noinline)) static void second_site(void) {
    for (int i = 0; i < 3; ++i) {
        long* block = calloc(kWords, sizeof(long));
        walk(block);
        free(block);
    }
}

__attribute__((noinline)) static void growing(void) {
    long* block = malloc(16);
    block = realloc(block, kWords * sizeof(long));
    fill(block);
    block = reallocarray(block, 2 * kWords, sizeof(long));
    walk(block);
    free(block);
}

__attribute__((noinline)) static void aligned(void) {
    void* block = NULL;
    if (posix_memalign(&block, 4096, kWords * sizeof(long)) != 0) abort();
    fill(block);
    free(block);
    block = aligned_alloc(64, 8000);
    fill(block);
    free(block);
    block = memalign(64, kWords * sizeof(long));
    fill(block);
    free(block);
}

static void blocks(void) {
    first_site();
    second_site();
    growing();
    aligned();
}

// --- Other memory.

__attribute__((noinline)) static void on_stack(void) {
    volatile long words[kWords];
    fill(words);
}

static void others(void) {
    fill(counters);
    fill(shared_table);
    fill(own);
    on_stack();
    long* mapped = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill(mapped);
    mapped = mremap(mapped, 16384, 1 << 20, MREMAP_MAYMOVE);
    fill(mapped);
    munmap(mapped, 1 << 20);
}

// --- Out of the ordinary.

static jmp_buf back;

// As a handler that gives up does: nothing has been allocated then.
static void give_up(int number) {
    (void)number;
    longjmp(back, 1);
}

static void* refuse(size_t bytes) {
    (void)bytes;
    raise(SIGUSR1);
    return NULL;
}

static void longjmp_out(void) {
    signal(SIGUSR1, give_up);
    if (setjmp(back) == 0) refuse(8);
    first_site();
}

// An arena out of which pool_alloc() cuts blocks, from its second argument on.
static char* arena;
__attribute__((noinline)) static void* pool_alloc(int pool, size_t bytes) {
    (void)pool;
    char* block = arena;
    arena += bytes;
    return block;
}

__attribute__((noinline)) static void pools(void) {
    char* const whole = arena = malloc(1 << 20);
    long* inner = pool_alloc(1, kWords * sizeof(long));
    fill(inner);
    fill((long*)(whole + (1 << 19)));
    free(whole);
}

static void* work(void* block) {
    fill(block);
    long* mine = malloc(kWords * sizeof(long));
    fill(mine);
    free(mine);
    return NULL;
}

static void threads(void) {
    pthread_t workers[2];
    long* handed = malloc(2 * kWords * sizeof(long));
    for (int i = 0; i < 2; ++i) pthread_create(&workers[i], NULL, work, handed + i * kWords);
    for (int i = 0; i < 2; ++i) pthread_join(workers[i], NULL);
    free(handed);
}

// What the parent has allocated is known in the child.
static void child(void) {
    long* block = allocate(kWords * sizeof(long));
    if (fork() == 0) {
        fill(block);
        _exit(0);
    }
    wait(NULL);
    free(block);
}

// --- Memory in which references are left out of the trace while they stay in one object.

enum { kLarge = 64 * 1024, kTimes = 3000 };
static long large_table[kLarge / sizeof(long)];
static volatile long left_counter, right_counter;

// One instruction refers to the ends of the memory in turn.
__attribute__((noinline)) static void count_in(volatile long* first, volatile long* last,
                                               int times) {
    for (int i = 0; i < times; ++i) {
        volatile long* const chosen = i % 3 == 0 ? last : first;
        *chosen += i;
        left_counter += i;
        right_counter -= i;
    }
}

__attribute__((noinline)) static long* large_block(void) {
    return malloc(kLarge);
}

__attribute__((noinline)) static void cut_out(long* whole) {
    arena = (char*)whole + 4096;
    long* const inner = pool_alloc(1, 40000);
    count_in(inner, whole, kTimes);
    count_in(whole + 1, whole + kLarge / sizeof(long) - 1, kTimes);
}

static void* count_in_thread(void* block) {
    count_in(block, block, kTimes);
    return NULL;
}

__attribute__((noinline)) static void in_child(long* block) {
    if (fork() == 0) {
        count_in(block, block + 1, kTimes);
        _exit(0);
    }
    wait(NULL);
}

static void large(void) {
    const size_t last = kLarge / sizeof(long) - 1;
    for (int i = 0; i < 2; ++i) {
        long* const one = large_block();
        long* const other = malloc(kLarge);
        count_in(one, one + last, kTimes);
        count_in(one, other, kTimes);
        count_in(other, large_table, kTimes);
        count_in(large_table, large_table + last, kTimes);
        in_child(one);
        free(one);
        long* const again = malloc(kLarge);  // probably at the same address
        count_in(again, again + last, kTimes);
        long* const grown = realloc(again, 2 * kLarge);
        count_in(grown, grown + 2 * last, kTimes);
        cut_out(other);
        count_in(other, other + last, kTimes);
        free(grown);
        free(other);
    }
    char* const mapped =
        mmap(NULL, 4 * kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long* const in_mapped = (long*)mapped;
    count_in(in_mapped, in_mapped + 3 * last, kTimes);
    arena = mapped + 4096;
    count_in(pool_alloc(1, 64), in_mapped, kTimes);
    munmap(mapped + kLarge, kLarge);
    count_in(in_mapped, in_mapped + last, kTimes);
    // A variable of the program becomes a block.
    arena = (char*)large_table;
    count_in(pool_alloc(1, kLarge / 2), large_table + last, kTimes);
}

static void handed(void) {
    long* const block = malloc(kLarge);
    count_in(block, block + 1, kTimes);
    pthread_t worker;
    pthread_create(&worker, NULL, count_in_thread, block);
    pthread_join(worker, NULL);
    count_in(block, block + 1, kTimes);
    free(block);
}

// --- Times: two instructions for each turn, and a few for what is between.
enum { kTurns = 1000000 };
static void wait_for(long turns) {
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(turns) : : "cc");
}

static long* used_early(void) {
    long* block = malloc(kWords * sizeof(long));
    fill(block);
    return block;
}
static void used_until_the_end(void) {
    long* block = malloc(kWords * sizeof(long));
    fill(block);
    wait_for(kTurns);
    walk(block);
    free(block);
}
static void never_freed(void) {
    static long* volatile kept;
    kept = malloc(kWords * sizeof(long));
    fill(kept);
    kept = NULL;
}
static void lives(void) {
    long* block = used_early();
    for (int i = 0; i < 2; ++i) used_until_the_end();
    free(block);
    never_freed();
    wait_for(kTurns);
    walk(counters);
}

int main(int count, char** arguments) {
    static const struct {
        const char* name;
        void (*run)(void);
    } kCases[] = {{"blocks", blocks}, {"others", others},   {"longjmp", longjmp_out},
                  {"pools", pools},   {"threads", threads}, {"child", child},
                  {"large", large},   {"handed", handed},   {"lives", lives}};
    for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i)
        if (count > 1 && strcmp(arguments[1], kCases[i].name) == 0) return kCases[i].run(), 0;
    fputs("which case?\n", stderr);
    return 1;
}
