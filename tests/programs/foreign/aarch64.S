// Known counts: 1,000 turns of 8 instructions with 3 reads and 2 writes, 7 instructions around them,
// and a call.
    .data
    .balign 64
cells:
    .fill 128, 1, 0
    .text
    .balign 64                  // all 16 instructions are in one line
    .globl _start
    .type _start, %function
_start:
    bl counted
    mov x8, #93                 // exit
    mov x0, #7
    svc #0
    .size _start, . - _start

    .type counted, %function
counted:
    adrp x1, cells
    add x1, x1, :lo12:cells
    mov x0, #1000
1:  ldr x2, [x1]                // one read
    ldp x3, x4, [x1, #16]       // one read of 16 bytes
    stp x3, x4, [x1, #32]       // one write
    ldadd x2, x5, [x1]          // one read and write, which counts as a read
    str w2, [x1, #62]           // one write, to two lines
    prfm pldl1keep, [x1]        // none
    subs x0, x0, #1
    b.ne 1b
    ret
    .size counted, . - counted
