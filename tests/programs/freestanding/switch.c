// A small bytecode interpreter: a dense switch, which compilers turn into a jump table.
#include "freestanding.h"

enum { kPush, kAdd, kMul, kSwap, kDup, kDrop, kJumpIf, kStore, kLoad, kDec, kXor, kHalt };
static const int16_t code[] = {
    kPush, 900, kStore, 0,     kPush,  1,  // counter in cell 0, accumulator on the stack
    kLoad, 0,   kMul,   kPush, 7,      kXor,  kDup,    kStore, 1,  // loop: mix the counter in
    kLoad, 1,   kAdd,   kPush, 5,      kSwap, kDrop,   kLoad,  1,     kAdd,
    kLoad, 0,   kDec,   kDup,  kStore, 0,     kJumpIf, 6,      kHalt,
};
static int64_t cells[4];

static NOINLINE int64_t interpret(void) {
    int64_t stack[64];
    size_t top = 0, pc = 0, kept = 0;
    for (;;) {
        switch (code[pc++]) {
            case kPush:
                stack[top++] = code[pc++];
                break;
            case kAdd:
                --top;
                stack[top - 1] += stack[top];
                break;
            case kMul:
                --top;
                stack[top - 1] = (int64_t)((uint64_t)stack[top - 1] * (uint64_t)stack[top]);
                break;
            case kSwap: {
                int64_t upper = stack[top - 1];
                stack[top - 1] = stack[top - 2];
                stack[top - 2] = upper;
                break;
            }
            case kDup:
                stack[top] = stack[top - 1];
                ++top;
                break;
            case kDrop:
                --top;
                break;
            case kJumpIf:
                if (stack[--top] != 0)
                    pc = (size_t)code[pc];
                else
                    ++pc;
                break;
            case kStore:
                cells[code[pc++]] = stack[--top];
                break;
            case kLoad:
                stack[top++] = cells[code[pc++]];
                break;
            case kDec:
                --stack[top - 1];
                break;
            case kXor:
                --top;
                stack[top - 1] ^= stack[top];
                break;
            default:
                kept = top;
                return stack[kept - 1];
        }
    }
}

int program(void) {
    write_number("result", (uint64_t)interpret());
    return 0;
}
