// Code larger than a first-level instruction cache, with instructions of all lengths, many of
// them across two lines; walked in two different orders.
    .text
    .globl walk_forward
    .type walk_forward, @function
walk_forward:                   // 3000 pieces of 25 bytes
    xor %eax, %eax
    .rept 3000
    add $1, %eax
    movabs $0x123456789abcdef, %rdx
    lea 0x1234(%rax,%rdx,4), %rcx
    inc %ecx
    nop
    nop
    .endr
    ret
    .size walk_forward, . - walk_forward

    // A piece adds its number and jumps to the piece before it; the first one returns.
    .macro step_back number, previous
piece_\number:
    add $\number, %eax
    .if \number
    jmp piece_\previous
    .else
    ret
    .endif
    .skip 37
    .endm

    .altmacro
    .globl walk_backward
    .type walk_backward, @function
walk_backward:
    xor %eax, %eax
    jmp piece_1200
    .set piece, 0
    .rept 1201
    step_back %piece, %(piece - 1)
    .set piece, piece + 1
    .endr
    .size walk_backward, . - walk_backward
    .section .note.GNU-stack, "", @progbits
