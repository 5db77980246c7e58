// Firmware with known counts, for the machine virt of qemu-system-aarch64: 1,000 rounds of 4 instructions with 11
// around them, a call of 3, and a system call whose handler has 5. Only the first core works.
    .text
    .globl _start
    .type _start, %function
_start:
    mrs x0, mpidr_el1
    and x0, x0, #3
    cbnz x0, park
    adr x0, vectors
    msr vbar_el1, x0
    adrp x1, cells
    add x1, x1, :lo12:cells
    mov x2, #1000
1:  bl work
    svc #0
    subs x2, x2, #1
    b.ne 1b
    mov w0, #0x18               // SYS_EXIT
    adr x1, block
    hlt #0xf000
    b .
    .size _start, . - _start
    .type work, %function
work:
    ldp x3, x4, [x1]            // a read
    stp x3, x4, [x1, #16]       // a write
    ret
    .size work, . - work
    .type park, %function
park: wfi
    b park
    .size park, . - park
    .type handle, %function
handle:
    ldr x5, [x1, #32]           // a read
    add x5, x5, #1
    str x5, [x1, #32]           // a write
    eret
    .size handle, . - handle
    .balign 8
block: .quad 0x20026, 0
    .balign 2048
vectors:
    .space 0x200                // synchronous exceptions at the same level
    b handle
    .bss
    .balign 64
cells: .space 64
