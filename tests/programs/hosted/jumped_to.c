// Functions that are not called but jumped to: by a tail call, through a stub of the linkage table,
// and both. Each reads cache lines of its own. Built twice: as a program, and with LIBRARY as the
// library that it needs.
enum { LINE_BYTES = 64 };

struct line {
    volatile long value;
    char rest[LINE_BYTES - sizeof(long)];
};

static struct line lines[1000] __attribute__((aligned(LINE_BYTES)));

void read_in_library(int first, int end);

#ifdef LIBRARY
void read_in_library(int first, int end) {
    for (int i = first; i < end; ++i) lines[i].value;
}
#else
__attribute__((noinline)) static void read_called(int first, int end) {
    for (int i = first; i < end; ++i) lines[i].value;
}

static inline __attribute__((always_inline)) void read_inlined(int first, int end) {
    for (int i = first; i < end; ++i) lines[i].value;
}

__attribute__((noinline)) static void tail(int first) {
    for (int i = first; i < first + 100; ++i) lines[i].value;
    read_inlined(first + 100, first + 140);
    read_called(first + 140, first + 150);
    lines[first].value;  // so that the call is not the last thing
}

__attribute__((noinline)) static void to_tail(int first) {
    lines[first].value;
    tail(first + 1);
}

__attribute__((noinline)) static void to_library(int first) {
    lines[first].value;
    read_in_library(first, first + 20);
}

int main(void) {
    to_tail(0);
    read_in_library(0, 50);
    to_library(500);
    return 0;
}
#endif
