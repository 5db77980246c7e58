/* Functions that are inlined into one another, and one that is called from there. Each reads cache
 * lines of its own: sum_cells and leaf as many as they are told, both sum functions one more. */
enum { LINE_BYTES = 64, MOST_LINES = 100 };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

struct line {
    volatile long value;
    char rest[LINE_BYTES - sizeof(long)];
};

static struct line cells[MOST_LINES] __attribute__((aligned(LINE_BYTES)));
static struct line leaves[MOST_LINES] __attribute__((aligned(LINE_BYTES)));
static struct line single[2] __attribute__((aligned(LINE_BYTES)));
static int next_cell, next_leaf;

__attribute__((noinline)) void leaf(int lines) {
    for (int i = 0; i < lines; ++i) leaves[next_leaf++].value;
}

ALWAYS_INLINE void sum_cells(int lines) {
    for (int i = 0; i < lines; ++i) cells[next_cell++].value;
    leaf(lines / 2);
}

ALWAYS_INLINE void sum_all(int lines) {
    single[0].value;
    sum_cells(lines);
}

__attribute__((noinline)) void work(void) {
    single[1].value;
    sum_all(40);
    sum_cells(20);
}

int main(void) {
    work();
    return 0;
}
