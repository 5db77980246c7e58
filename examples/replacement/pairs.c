/* Reads 1,000 records of two lines, the last record first and of each the second line first. */
#include <assay/client.h>

enum { RECORDS = 1000, LINE = 64 };

static volatile char records[RECORDS][2 * LINE] __attribute__((aligned(4096)));

static void read_records(void) {
    for (int i = RECORDS - 1; i >= 0; --i) {
        (void)records[i][LINE];
        (void)records[i][0];
    }
}

int main(void) {
    assay_start_collecting(); /* what happened before has left nothing in the caches */
    read_records();
    return 0;
}
