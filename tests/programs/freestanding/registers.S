// A block in which each register but rsp is the address of a reference, so that instrumentation
// must borrow one that a later reference needs.
//
// rdi: 16 areas of 4096 bytes and some bytes, rsi: how often; returns a sum. One line of each area
// is referenced in turn; all of them belong to one set in most caches.

    .text
    .globl every_register
    .type every_register, @function
every_register:
    .irp register, rbx, rbp, r12, r13, r14, r15
    push %\register
    .endr
    mov %rsi, rounds(%rip)
    mov %rdi, %rax
    .set distance, 4096
    .irp register, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
    lea distance(%rax), %\register
    .set distance, distance + 4096
    .endr
1:
    .irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
    addq $64, (%\register)
    .endr
    decq rounds(%rip)
    jnz 1b
    mov $0, %eax
    adc (%r15), %rax
    .irp register, r15, r14, r13, r12, rbp, rbx
    pop %\register
    .endr
    ret
    .size every_register, . - every_register

    .local rounds
    .comm rounds, 8, 64
    .section .note.GNU-stack, "", @progbits
