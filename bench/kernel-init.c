// What the kernel starts: system calls, page faults and processes. Then the machine is switched
// off.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    const size_t bytes = 1 << 22;
    char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
    for (int i = 0; i < 1000; ++i) getppid();
    int ends[2];
    if (pipe(ends) != 0) return 1;
    for (int i = 0; i < 4; ++i) {
        if (fork() == 0) {
            for (size_t at = 0; at < bytes; at += 4096) ++memory[at];
            char text[64];
            for (int j = 0; j < 100; ++j)
                if (write(ends[1], text, snprintf(text, sizeof text, "%d %d\n", i, j)) < 0)
                    _exit(1);
            _exit(0);
        }
        char text[4096];
        ssize_t got = read(ends[0], text, sizeof text);
        wait(NULL);
        printf("child %d wrote %s\n", i, got > 0 ? "text" : "nothing");
    }
    fflush(stdout);
    reboot(RB_POWER_OFF);
    return 1;
}
