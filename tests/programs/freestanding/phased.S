// Phases that are known on paper: loops of ten instructions a round, so that 1,000 rounds are an
// interval of 10,000 instructions, but for the few between the phases. By the number of arguments:
// 0: A for 20 intervals; 1: A, B, A and B for 5 each; 2: A for 3, B for 10, C for 7.

    .macro phase name, instruction
    .type \name, @function
\name:
    .rept 8
    \instruction
    .endr
    dec %ecx
    jnz \name
    ret
    .size \name, . - \name
    .endm

    .macro run name, intervals
    mov $(\intervals * 1000), %ecx
    call \name
    .endm

    .text
    phase a, "add $1, %rax"
    phase b, "xor %rcx, %rdx"
    phase c, "lea 1(%rsi), %rsi"

    .globl _start
    .type _start, @function
_start:
    cmpq $2, (%rsp)             // argc
    ja unequal
    je alternating
    run a, 20
    jmp leave
alternating:
    run a, 5
    run b, 5
    run a, 5
    run b, 5
    jmp leave
unequal:
    run a, 3
    run b, 10
    run c, 7
leave:
    xor %edi, %edi
    mov $60, %eax               // exit
    syscall
    .size _start, . - _start
    .section .note.GNU-stack, "", @progbits
