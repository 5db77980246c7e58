// Code of which 5 bytes of each line are executed, and a loop in one line that reads two others.
    .text
    .balign 64
    .globl jump_along
    .type jump_along, @function
jump_along:                     // 99 lines with a jump, and one with the return
    .rept 99
    .byte 0xe9                  // jmp rel32, to the next line
    .long 64 - 5
    .balign 64, 0xcc
    .endr
    ret
    .size jump_along, . - jump_along

    .balign 64
    .globl two_reads
    .type two_reads, @function
two_reads:
    mov $1000, %ecx
1:  mov line_a, %eax
    nop
    mov line_b, %eax
    nop
    dec %ecx
    jnz 1b
    ret
    .size two_reads, . - two_reads

    .bss
    .balign 64
line_a:
    .skip 64
line_b:
    .skip 64
    .section .note.GNU-stack, "", @progbits
