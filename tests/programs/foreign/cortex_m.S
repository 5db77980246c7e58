// Firmware with known counts, for the machine lm3s6965evb of qemu-system-arm: 1,000 rounds of 12
// instructions with 4 around them, and 1,000 calls of 3 instructions. The timer interrupts 3 times.
// How often `wait` looks depends on the time.
    .syntax unified
    .cpu cortex-m3
    .thumb

    .macro function name
    .globl \name
    .type \name, %function
    .thumb_func
\name:
    .endm

    .text
    .word stack_top, reset, fault, fault
    .zero 4 * 11
    .word tick

function reset
    bl begin_ticks
    bl counted
    bl wait
    movs r0, #0x18              // SYS_EXIT
    ldr r1, =0x20026            // ADP_Stopped_ApplicationExit
    bkpt 0xab
    b .
    .size reset, . - reset

function begin_ticks
    ldr r0, =0xe000e010         // SysTick
    movw r1, #5000
    str r1, [r0, #4]
    movs r1, #7
    str r1, [r0, #8]
    str r1, [r0]
    bx lr
    .size begin_ticks, . - begin_ticks

function counted
    push {r4-r7, lr}            // 1 write
    ldr r1, =cells              // 1 read
    movw r0, #1000
round:
    ldr r3, [r1]                // a read
    adds r3, #1
    str r3, [r1]                // a write
    ldm r1, {r3-r6}             // a read
    strd r3, r4, [r1, #8]       // a write
    tst r0, #1
    itt ne
    ldrne r5, [r1, #64]         // 500 reads
    strne r5, [r1, #68]         // 500 writes
    bl leaf
    subs r0, #1
    bne round
    pop {r4-r7, pc}             // 1 read
    .size counted, . - counted

function leaf
    push {r4, lr}               // a write
    nop
    pop {r4, pc}                // a read
    .size leaf, . - leaf

function wait
    ldr r0, =ticks
again:
    ldr r1, [r0]
    cmp r1, #3
    bne again
    bx lr
    .size wait, . - wait

function tick
    ldr r0, =ticks              // a read
    ldr r1, [r0]                // a read
    adds r1, #1
    str r1, [r0]                // a write
    cmp r1, #3
    bne ticked
    ldr r2, =0xe000e010         // 1 read
    movs r3, #0
    str r3, [r2]                // 1 write
    ldr r2, =0xe000ed04         // 1 read: ICSR
    mov r3, #0x02000000         // a tick that waits is forgotten
    str r3, [r2]                // 1 write
ticked:
    bx lr
    .size tick, . - tick

function fault
    b .
    .size fault, . - fault
    .ltorg

    .bss
    .balign 64
cells: .space 128
ticks: .space 4
    .balign 8
    .space 256
stack_top:
