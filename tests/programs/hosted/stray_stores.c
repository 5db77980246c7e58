// A program with a wild pointer. It says its process id, and stores what it is told: an address,
// how many numbers of eight bytes, and the number.
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    printf("%d\n", getpid());
    fflush(stdout);
    uintptr_t address = 0;
    uint64_t count = 0, value = 0;
    if (scanf("%" SCNxPTR " %" SCNu64 " %" SCNu64, &address, &count, &value) != 3) return 1;
    for (volatile uint64_t* to = (volatile uint64_t*)address; count != 0; --count) *to++ = value;
    puts("stored");
    return 0;
}
