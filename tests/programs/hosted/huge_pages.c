/* Walks over memory with a stride of 4 KiB, each in a function of its own, so that it is known how
 * many pages it touches. Whether the kernel gives huge pages does not matter. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kUnit = 2 << 20, kUnits = 4, kBytes = kUnits * kUnit, kRounds = 40 };

#define WALK(name)                                           \
    static void name(const volatile unsigned char* memory) { \
        for (long i = 0; i < kBytes; i += kPage) memory[i];  \
    }
WALK(walk_advised)
WALK(walk_advised_again)
WALK(walk_plain)
WALK(walk_partly)
WALK(walk_moved)
WALK(walk_break)
WALK(walk_static)
WALK(walk_in_child)
WALK(walk_in_thread)

static unsigned char statics[kBytes + kUnit];

static unsigned char* up(unsigned char* address) {
    return (unsigned char*)(((unsigned long)address + kUnit - 1) & -(unsigned long)kUnit);
}

/* At a multiple of 2 MiB, with 2 MiB in front and behind that are not touched. */
static unsigned char* map(void) {
    void* memory = mmap(NULL, kBytes + 3 * kUnit, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) exit(1);
    return up(memory) + kUnit;
}

static void advise(unsigned char* memory, long bytes) {
    madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
}

static sem_t mapped, walked;
static unsigned char* shared;

static void* run(void* nothing) {
    for (int i = 0; i < kRounds; ++i) {
        sem_wait(&mapped);
        walk_in_thread(shared);
        sem_post(&walked);
    }
    return nothing;
}

/* Each round at other addresses, given back at once. */
static void share(void) {
    pthread_t thread;
    sem_init(&mapped, 0, 0);
    sem_init(&walked, 0, 0);
    if (pthread_create(&thread, NULL, run, NULL) != 0) exit(1);
    unsigned char* const all = map();
    munmap(all, kBytes);
    for (int i = 0; i < kRounds; ++i) {
        shared = map();
        advise(shared, kBytes);
        sem_post(&mapped);
        sem_wait(&walked);
        munmap(shared, kBytes);
    }
    pthread_join(thread, NULL);
}

int main(void) {
    unsigned char* const memory = map();
    advise(memory, kBytes);
    walk_advised(memory);
    walk_advised_again(memory);
    munmap(memory, kBytes);
    if (mmap(memory, kBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != memory)
        return 1;
    walk_plain(memory);

    /* Of four units the second and third are advised as a whole. */
    unsigned char* const part = map();
    advise(part + kUnit / 2, 3 * kUnit);
    walk_partly(part);

    unsigned char* const from = map();
    unsigned char* const to = map();
    advise(from, kBytes);
    if (mremap(from, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) return 1;
    walk_moved(to);

    unsigned char* const heap = up(sbrk(kBytes + kUnit));
    advise(heap, kBytes);
    walk_break(heap);
    advise(up(statics), kBytes);
    walk_static(up(statics));

    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        walk_in_child(to);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    share();
    return 0;
}
