// A kernel with known counts, for the machine virt of qemu-system-aarch64. It begins at its physical address without
// the MMU and goes on in the upper half: 1,000 calls, then user space with 100 system calls and 100 reads of
// a register that user space may not read, in the middle of a block.
    .section .boot, "ax"
    .globl boot
    .type boot, %function
boot:
    mrs x0, mpidr_el1
    and x0, x0, #3
    cbnz x0, park
    mov x0, #0xff               // normal memory, with caches
    msr mair_el1, x0
    ldr x0, =0xb5193519         // 39 bits in each half, pages of 4 KiB
    msr tcr_el1, x0
    adr x0, low_table
    msr ttbr0_el1, x0
    adr x0, high_table
    msr ttbr1_el1, x0
    isb
    mrs x0, sctlr_el1
    mov x1, #0x1005
    orr x0, x0, x1
    msr sctlr_el1, x0
    isb
    ldr x0, =start
    br x0
    .size boot, . - boot
    .type park, %function
park: wfi
    b park
    .size park, . - park
    .type user, %function
user:
    mov x2, #100
    mov x0, #0
1:  svc #0
    mrs x3, ctr_el0             // the handler leaves it out
    nop
    subs x2, x2, #1
    b.ne 1b
    mov x0, #1
    svc #0
    .size user, . - user
    .ltorg
    .balign 4096
low_table:                      // blocks of 1 GiB, which nobody may write
    .quad 0, 0x400007c1
    .fill 510, 8, 0
high_table:                     // the same for the kernel
    .quad 0, 0x40000701
    .fill 510, 8, 0

    .text
    .globl start
    .type start, %function
start:
    adr x0, vectors
    msr vbar_el1, x0
    adrp x1, cells
    add x1, x1, :lo12:cells
    bl count
    msr spsr_el1, xzr           // EL0
    ldr x0, =user
    msr elr_el1, x0
    eret
    .size start, . - start
    .type count, %function
count:
    mov x9, x30
    mov x2, #1000
1:  bl work
    subs x2, x2, #1
    b.ne 1b
    ret x9
    .size count, . - count
    .type work, %function
work:
    ldp x3, x4, [x1]            // a read
    stp x3, x4, [x1, #16]       // a write
    ret
    .size work, . - work
    .type handle, %function
handle:
    mrs x5, esr_el1
    lsr x5, x5, #26
    cmp x5, #0x15               // a system call
    b.ne skip
    cbnz x0, end
    ldr x5, [x1, #32]           // a read
    add x5, x5, #1
    str x5, [x1, #32]           // a write
    eret
skip:
    mrs x5, elr_el1
    add x5, x5, #4
    msr elr_el1, x5
    eret
end:
    mov w0, #0x18               // SYS_EXIT
    adr x1, block
    hlt #0xf000
    b .
    .size handle, . - handle
    .ltorg
    .balign 8
block: .quad 0x20026, 0
    .balign 2048
vectors:
    .space 0x400                // exceptions of EL0
    b handle
    .bss
    .balign 64
cells: .space 64
