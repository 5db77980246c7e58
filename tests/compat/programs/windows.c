// A program for Windows: exceptions, threads and generated code.
#include <stdio.h>
#include <string.h>
#include <windows.h>

static int faults;
static LONG CALLBACK handle(EXCEPTION_POINTERS* exception) {
    if (exception->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION)
        return EXCEPTION_CONTINUE_SEARCH;
    ++faults;
    exception->ContextRecord->Rip = exception->ContextRecord->Rbx;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static void fault(void) {
    __asm__ volatile("lea 1f(%%rip), %%rbx\n\tmovl $1, 0\n1:" ::: "rbx", "memory");
}

static DWORD WINAPI compute(void* result) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 1000000; ++i) sum = sum * 3 + i;
    *(unsigned*)result = sum;
    return 0;
}

static int call_generated(unsigned char* code, int value) {
    static const unsigned char bytes[] = {0xb8, 0, 0, 0, 0, 0xc3};  // mov eax, value; ret
    memcpy(code, bytes, sizeof bytes);
    memcpy(code + 1, &value, sizeof value);
    FlushInstructionCache(GetCurrentProcess(), code, sizeof bytes);
    int (*function)(void);
    memcpy(&function, &code, sizeof function);
    return function();
}

int main(void) {
    AddVectoredExceptionHandler(1, handle);
    for (int i = 0; i < 100; ++i) fault();

    unsigned sums[2] = {0, 0};
    HANDLE threads[2];
    for (int i = 0; i < 2; ++i) threads[i] = CreateThread(NULL, 0, compute, &sums[i], 0, NULL);
    WaitForMultipleObjects(2, threads, TRUE, INFINITE);

    unsigned char* code = VirtualAlloc(NULL, 4096, MEM_COMMIT, PAGE_EXECUTE_READWRITE);
    int generated = 0;
    for (int i = 0; i < 50; ++i) generated += call_generated(code, i);
    printf("%d faults, %u %u, %d\n", faults, sums[0], sums[1], generated);
    return 7;
}
