// Heap sort and recursive quick sort of the same numbers.
#include "freestanding.h"

enum { kCount = 12000 };
static uint32_t first[kCount], second[kCount];

static NOINLINE void sift(uint32_t* heap, size_t root, size_t count) {
    uint32_t value = heap[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child + 1] > heap[child]) ++child;
        if (heap[child] <= value) break;
        heap[root] = heap[child];
    }
    heap[root] = value;
}

static NOINLINE void heap_sort(uint32_t* values, size_t count) {
    for (size_t i = count / 2; i-- > 0;) sift(values, i, count);
    while (count > 1) {
        uint32_t largest = values[0];
        values[0] = values[--count];
        values[count] = largest;
        sift(values, 0, count);
    }
}

static NOINLINE void quick_sort(uint32_t* values, long low, long high) {
    if (low >= high) return;
    uint32_t pivot = values[(low + high) / 2];
    long i = low, j = high;
    while (i <= j) {
        while (values[i] < pivot) ++i;
        while (values[j] > pivot) --j;
        if (i <= j) {
            uint32_t kept = values[i];
            values[i++] = values[j];
            values[j--] = kept;
        }
    }
    quick_sort(values, low, j);
    quick_sort(values, i, high);
}

int program(void) {
    uint64_t state = 42;
    for (int i = 0; i < kCount; ++i) first[i] = second[i] = (uint32_t)next_random(&state);
    heap_sort(first, kCount);
    quick_sort(second, 0, kCount - 1);
    for (int i = 0; i < kCount; ++i) {
        if (first[i] != second[i]) return 1;
    }
    write_number("median", first[kCount / 2]);
    return 0;
}
