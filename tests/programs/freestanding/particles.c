// An array of structs, of which two members are read again and again; with SPLIT, these are in an
// array of their own.
#include "freestanding.h"

enum { kParticles = 4096, kRounds = 10 };

#ifndef SPLIT

struct particle {
    long number;
    long mass;  // hot
    long x, y, z;
    long speed[2];
    char color;
    int state;
    long unused;
    long born;
    long group;
    long charge;  // hot
};
struct particle particles[kParticles] __attribute__((aligned(4096)));
#define REST(i) particles[i]

#else

struct particle {
    long mass;
    long charge;
};
struct particle_rest {
    long speed[2];
    long number;
    long x, y, z;
    long born;
    long group;
    int state;
    char color;
    long unused;
};
struct particle particles[kParticles] __attribute__((aligned(4096)));
struct particle_rest rests[kParticles] __attribute__((aligned(4096)));
#define REST(i) rests[i]

#endif

static NOINLINE void fill(void) {
    for (long i = 0; i < kParticles; ++i) {
        particles[i].mass = i;
        particles[i].charge = i & 1;
        REST(i).number = i;
        REST(i).x = i;
        REST(i).y = i;
        REST(i).z = i;
        REST(i).speed[0] = i;
        REST(i).speed[1] = i;
        REST(i).state = 1;
        REST(i).born = i;
        REST(i).group = i;
    }
}

static NOINLINE long attract(void) {
    long sum = 0;
    __asm__ volatile("" : : : "memory");  // not the same for all rounds
    for (long i = 0; i < kParticles; ++i) sum += particles[i].mass * particles[i].charge;
    return sum;
}

int program(void) {
    long sum = 0;
    fill();
    for (int round = 0; round < kRounds; ++round) sum += attract();
    write_number("sum", (uint64_t)sum);
    return 0;
}
