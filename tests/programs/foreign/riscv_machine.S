// Firmware with known counts, for the machine virt of qemu-system-riscv64: 1,000 calls of 4
// instructions, and 3 interrupts of the timer. How often `wait` looks depends on the time.
    .option norvc
    .option norelax
    .text
    .globl _start
    .type _start, %function
_start:
    csrr t0, mhartid            // only the first core works
    bnez t0, park
    la a1, cells
    la t0, trap
    csrw mtvec, t0
    li t1, 0x02004000           // mtimecmp
    li t0, 20000
    sd t0, 0(t1)
    li t0, 0x80                 // the timer's interrupt
    csrw mie, t0
    csrwi mstatus, 8
    jal work
    jal wait
    li t0, 0x100000             // the device that ends the machine
    li t1, 0x5555
    sw t1, 0(t0)
    j .
    .size _start, . - _start

    .type park, %function
park:
    wfi
    j park
    .size park, . - park

    .type work, %function
work:
    mv s1, ra
    li a0, 1000
1:  jal count
    addi a0, a0, -1
    bnez a0, 1b
    jr s1
    .size work, . - work

    .type count, %function
count:
    lw t0, 0(a1)                // a read
    addi t0, t0, 1
    sw t0, 0(a1)                // a write
    ret
    .size count, . - count

    .type wait, %function
wait:
    lw t0, 8(a1)
    addi t0, t0, -3
    bnez t0, wait
    ret
    .size wait, . - wait

    .balign 4
    .type trap, %function
trap:                           // changes no register except s2 to s4
    lw s2, 8(a1)                // a read
    addi s2, s2, 1
    sw s2, 8(a1)                // a write
    addi s3, s2, -3
    beqz s3, 1f
    li s4, 0x02004000
    ld s3, 0(s4)                // 2 reads
    addi s3, s3, 2000
    sd s3, 0(s4)                // 2 writes
    mret
1:  csrw mie, zero
    mret
    .size trap, . - trap

    .bss
    .balign 64
cells: .space 64
