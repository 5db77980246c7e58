// Machine code that a program makes itself.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

typedef int (*function)(void);

// ISO C has no cast from data to code.
static inline function as_function(const void* code) {
    function result;
    __asm__ volatile("" : "+r"(code) : : "memory");  // calling it uses what has been stored there
    memcpy(&result, &code, sizeof result);
    return result;
}
static inline int call(const void* code) {
    return as_function(code)();
}

// mov $value, %eax; ret
enum { RETURN_SIZE = 6 };
static inline void write_return(void* code, int value) {
    unsigned char bytes[RETURN_SIZE] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(bytes + 1, &value, sizeof value);
    memcpy(code, bytes, sizeof bytes);
}

static inline unsigned char* map_memory(size_t size, int protection) {
    void* memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}
static inline unsigned char* map_all_permitted(size_t size) {
    return map_memory(size, PROT_READ | PROT_WRITE | PROT_EXEC);
}

// Calls trampolines as GNU C makes them for nested functions: on the stack, one in each frame.
static inline int call_on_stack(int depth) {
    unsigned char trampoline[RETURN_SIZE];
    write_return(trampoline, depth);
    int sum = call(trampoline);
    if (depth > 0) sum += call_on_stack(depth - 1);
    return sum + call(trampoline);
}
