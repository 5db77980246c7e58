// Known counts: 1,000 turns of 7 instructions with 2 reads and 2 writes, 7 instructions around them,
// and a call. The last turn does not jump back.
    .data
    .balign 64
cells:
    .fill 128, 1, 0
    .text
    .globl _start
    .type _start, %function
_start:
    call counted                // two instructions, unless the linker makes them one
    li a7, 93                   // exit
    li a0, 7
    ecall
    .size _start, . - _start

    .type counted, %function
counted:
    lla a1, cells               // two instructions
    li a2, 1000
1:  ld a3, 0(a1)                // one read
    c.sw a3, 4(a1)              // one write, in a compressed instruction
    amoadd.d a4, a3, (a1)       // one read and write, which counts as a read
    fsd fa0, 32(a1)             // one write
    addi a2, a2, -1
    beqz a2, 2f
    j 1b
2:  ret
    .size counted, . - counted
