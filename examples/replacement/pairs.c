/* Reads 1,000 records of two lines. The last record, and the second line of each, come first. */
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
    assay_start_collecting(); /* the caches are empty here */
    read_records();
    return 0;
}
