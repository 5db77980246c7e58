/* Adds up a matrix twice: row by row, then column by column. */
#include <stdio.h>

enum { kSize = 1000 };

static double matrix[kSize][kSize];

static double by_rows(void) {
    double sum = 0;
    for (int i = 0; i < kSize; ++i)
        for (int j = 0; j < kSize; ++j) sum += matrix[i][j];
    return sum;
}

static double by_columns(void) {
    double sum = 0;
    for (int j = 0; j < kSize; ++j)
        for (int i = 0; i < kSize; ++i) sum += matrix[i][j];
    return sum;
}

int main(void) {
    for (int i = 0; i < kSize; ++i) matrix[i][i] = i;
    printf("%g\n", by_rows() + by_columns());
    return 0;
}
