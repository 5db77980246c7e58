// Maps, moves and unmaps memory in all ways that leave the address to the kernel, many times, and
// says where it came to lie.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kPlaces = 200, kRounds = 2000 };

static struct {
    char* start;
    size_t pages;
} places[kPlaces];

static unsigned long state = 1;
static unsigned random_below(unsigned limit) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(state >> 33) % limit;
}

static void* map(void* wanted, size_t pages, int flags) {
    void* start = mmap(wanted, pages * kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (start == MAP_FAILED) abort();
    return start;
}

static void* attach(size_t pages) {
    const int segment = shmget(IPC_PRIVATE, pages * kPage, IPC_CREAT | 0600);
    void* start = shmat(segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL);
    if (start == (void*)-1) abort();
    return start;
}

// Mappings of which many more are unmapped than grow where they are.
static void churn(void) {
    uint64_t sum = 0;
    for (int round = 0; round < kRounds; ++round) {
        const unsigned i = random_below(kPlaces);
        const size_t pages = 1 + random_below(40);
        if (places[i].start == NULL) {
            places[i].start = map(NULL, pages, 0);
        } else if (random_below(2) == 0) {
            munmap(places[i].start, places[i].pages * kPage);
            places[i].start = NULL;
            continue;
        } else {
            const char before = places[i].start[0];
            places[i].start =
                mremap(places[i].start, places[i].pages * kPage, pages * kPage, MREMAP_MAYMOVE);
            if (places[i].start == MAP_FAILED || places[i].start[0] != before) abort();
        }
        places[i].pages = pages;
        places[i].start[0] = (char)round;
        sum = sum * 31 + (uintptr_t)places[i].start;
    }
    printf("churn %lx\n", sum);
}

static void show(const char* how, const void* start) {
    printf("%s %p\n", how, start);
}

static void each_way(void) {
    char* const first = map(NULL, 3, 0);
    show("anywhere", first);
    show("in low memory", map(NULL, 2, MAP_32BIT));
    show("in low memory", map(NULL, 2, MAP_32BIT));
    show("grows down", map(NULL, 1, MAP_GROWSDOWN | MAP_STACK));
    show("below what grows down", map(NULL, 1, 0));
    show("large", map(NULL, 3 << 9, 0));
    show("larger", map(NULL, (5 << 9) + 1, MAP_NORESERVE));
    show("huge", map(NULL, (size_t)1 << 27, MAP_NORESERVE));
    char* const wished = (char*)0x123456000;
    show("wished", map(wished, 2, 0));
    show("wished again", map(wished + kPage, 2, 0));
    show("wished impossibly", map((void*)0x7ffffffff0000000, 1, 0));
    show("wished too low", map((void*)kPage, 1, 0));
    show("moved, and left behind",
         mremap(first, kPage, kPage, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL));
    char* const shared = attach(4);
    show("attached", shared);
    show("attached", attach(3));
    show("attached twice", mremap(shared, 0, 4 * kPage, MREMAP_MAYMOVE));
    shmdt(shared);
    show("attached in its place", attach(4));
    show("heap", sbrk(100 * kPage));
    sbrk(-60 * kPage);
    show("heap", sbrk(1 << 20));
    show("allocated", malloc(1 << 20));
}

int main(void) {
    each_way();
    churn();
    fflush(stdout);
    if (fork() == 0) {
        churn();
        each_way();
        return 0;
    }
    wait(NULL);
    return 0;
}
