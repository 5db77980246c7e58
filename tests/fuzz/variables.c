// A program of a few kilobytes with variables of all kinds, for variables_fuzzer.cpp to damage.
struct pair {
    long first, second[3];
};
typedef struct pair pairs_t[2];
static pairs_t table = {{1}};
int volatile counter;
__thread long of_thread = 1;

static inline __attribute__((always_inline)) void fill(volatile char* to, int count) {
    static int calls;
    volatile char copy[8];
    for (int i = 0; i < count; ++i) to[i] = copy[i & 7] = (char)calls++;
}

void _start(int argument) {
    volatile char text[32];
    fill(text, argument);
    if (argument > 1) {
        pairs_t pairs;
        pairs[0].first = argument;
        volatile struct pair* second = &pairs[1];
        fill((volatile char*)second, argument);
    }
    counter = (int)table[0].first + (int)of_thread;
}
