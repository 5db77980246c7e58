/* Moves particles. The loop needs two members of each, and fetches all of them. */
#include <stdio.h>
#include <stdlib.h>

enum { kParticles = 20000, kSteps = 20 };

struct particle {
    double x;
    char name[40];
    double mass;
    double v;
};

static void move(struct particle* particles) {
    for (int i = 0; i < kParticles; ++i) particles[i].x += particles[i].v;
}

static double weigh(const struct particle* particles) {
    double sum = 0;
    for (int i = 0; i < kParticles; ++i) sum += particles[i].mass;
    return sum;
}

int main(void) {
    struct particle* particles = calloc(kParticles, sizeof *particles);
    if (!particles) return 1;
    for (int i = 0; i < kParticles; ++i) particles[i].v = i;
    for (int i = 0; i < kSteps; ++i) move(particles);
    printf("%g %g\n", particles[1].x, weigh(particles));
    free(particles);
    return 0;
}
