/* The program of the report's tests and pictures: a matrix by rows and by columns, a structure of
 * which one field is used, a sort. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double matrix[1000][1000];

static double by_rows(void) {
    double sum = 0;
    for (int i = 0; i < 1000; ++i)
        for (int j = 0; j < 1000; ++j) sum += matrix[i][j];
    return sum;
}

static double by_columns(void) {
    double sum = 0;
    for (int j = 0; j < 1000; ++j)
        for (int i = 0; i < 1000; ++i) sum += matrix[i][j];
    return sum;
}

struct particle {
    double x, y, z;
    char name[40];
};

static double move(struct particle* particles, int count) {
    double sum = 0;
    for (int step = 0; step < 5; ++step)
        for (int i = 0; i < count; ++i) {
            particles[i].x += 0.5;
            sum += particles[i].x;
        }
    return sum;
}

static int compare(const void* a, const void* b) {
    const double difference = *(const double*)a - *(const double*)b;
    return difference < 0 ? -1 : difference > 0;
}

static double median(int count) {
    double* values = malloc(count * sizeof *values);
    for (int i = 0; i < count; ++i) values[i] = rand();
    qsort(values, count, sizeof *values, compare);
    const double middle = values[count / 2];
    free(values);
    return middle;
}

int main(void) {
    struct particle* particles = calloc(20000, sizeof *particles);
    for (int i = 0; i < 1000; ++i) memset(matrix[i], 0, sizeof matrix[i]);
    const double sum = by_rows() + by_columns() + move(particles, 20000);
    printf("%g %g\n", sum, median(20000));
    free(particles);
    return 0;
}
