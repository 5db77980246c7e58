// A large stack for assay's own work if the limit RLIMIT_STACK, which the user set for the profiled
// program, is small.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <cstddef>

namespace assay {

inline bool is_stack_smaller(std::size_t bytes) {
    rlimit limit{};
    return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < bytes;
}

// Calls `function(argument)` on a stack of `bytes` bytes if the limit is lower. `function` must not
// throw. Called once, by main().
inline void call_on_large_stack(std::size_t bytes, void (*function)(void*), void* argument) {
    void* const stack = is_stack_smaller(bytes)
                            ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                            : MAP_FAILED;
    if (stack == MAP_FAILED) return function(argument);
#if defined(__x86_64__)
    __asm__ volatile(
        "mov %%rsp, %%rbx\n"
        "mov %[top], %%rsp\n"
        "call *%[function]\n"
        "mov %%rbx, %%rsp\n"
        : "+D"(argument)
        : [top] "r"(static_cast<char*>(stack) + bytes), [function] "r"(function)
        : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
          "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
          "xmm13", "xmm14", "xmm15", "cc", "memory");
#else
    static void (*called)(void*);
    static void* given;
    called = function;
    given = argument;
    ucontext_t back, there;
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = bytes;
    there.uc_link = &back;
    makecontext(
        &there, +[] { called(given); }, 0);
    swapcontext(&back, &there);
#endif
    munmap(stack, bytes);
}

}  // namespace assay
