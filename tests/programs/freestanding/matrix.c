// Walks a matrix along its rows and down its columns: the textbook difference in misses.
#include "freestanding.h"

enum { kSize = 192 };
static double left[kSize][kSize], right[kSize][kSize];

static NOINLINE void fill(void) {
    for (int i = 0; i < kSize; ++i) {
        for (int j = 0; j < kSize; ++j) {
            left[i][j] = i - j;
            right[i][j] = i + j;
        }
    }
}

static NOINLINE double sum_by_rows(void) {
    double sum = 0;
    for (int i = 0; i < kSize; ++i) {
        for (int j = 0; j < kSize; ++j) sum += left[i][j];
    }
    return sum;
}

static NOINLINE double sum_by_columns(void) {
    double sum = 0;
    for (int j = 0; j < kSize; ++j) {
        for (int i = 0; i < kSize; ++i) sum += right[i][j];
    }
    return sum;
}

static NOINLINE double multiply_corner(void) {
    double sum = 0;
    for (int i = 0; i < 24; ++i) {
        for (int j = 0; j < 24; ++j) {
            for (int k = 0; k < kSize; ++k) sum += left[i][k] * right[k][j];
        }
    }
    return sum;
}

int program(void) {
    fill();
    write_number("rows", (uint64_t)(int64_t)sum_by_rows());
    write_number("columns", (uint64_t)(int64_t)sum_by_columns());
    write_number("product", (uint64_t)(int64_t)multiply_corner());
    return 0;
}
