// Programs without libc whose every memory reference has a fixed address: no loader, no
// environment, and a stack of their own, because the system's starts wherever the environment
// ends. Two profilers must agree on them to the last miss.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NOINLINE __attribute__((noinline))

// Each program defines this; its result is the exit status.
int program(void);

void write_bytes(const void* bytes, size_t count);
// Writes a line: what was computed, so that a wrong execution shows. Labels have at most 50
// characters.
void write_number(const char* label, uint64_t number);

// The same pseudo-random sequence everywhere (xorshift64, Marsaglia 2003).
uint64_t next_random(uint64_t* state);
