// Atomic and exchange instructions on memory.
    .text
    .globl exchange_all
    .type exchange_all, @function
exchange_all:                   // rdi: 64 bytes, 16-byte aligned; returns what was seen
    push %rbx
    mov $300, %esi
    xor %r8d, %r8d
1:  mov %rsi, %rax
    xchg %rax, (%rdi)
    add %rax, %r8
    mov $5, %eax
    lock xaddl %eax, 8(%rdi)
    add %rax, %r8
    xadd %rsi, 16(%rdi)         // without lock; rsi gets the old value
    mov 16(%rdi), %r9
    sub %rsi, %r9
    mov %r9, %rsi
    lock incq 24(%rdi)
    lock orb $4, 33(%rdi)
    .byte 0x66                  // prefixes before the lock
    lock incl 28(%rdi)
    .byte 0x3e
    lock incl 28(%rdi)
    mov (%rdi), %rax            // succeeds
    lea 1(%rax), %r10
    lock cmpxchg %r10, (%rdi)
    sete %r11b
    movzbl %r11b, %r11d
    add %r11, %r8
    mov $-1, %rax               // fails
    lock cmpxchg %r10, 24(%rdi)
    add %rax, %r8
    mov 8(%rdi), %eax
    cmpxchg %esi, 8(%rdi)       // succeeds, without lock
    mov 32(%rdi), %rax
    mov 40(%rdi), %rdx
    mov %rax, %rbx
    lea 1(%rdx), %rcx
    lock cmpxchg16b 32(%rdi)
    setne %r11b
    movzbl %r11b, %r11d
    add %r11, %r8
    mov 48(%rdi), %eax
    mov 52(%rdi), %edx
    mov %esi, %ebx
    lea 3(%edx), %ecx
    lock cmpxchg8b 48(%rdi)
    add 48(%rdi), %r8
    lock btsl $3, 56(%rdi)
    setc %r11b
    movzbl %r11b, %r11d
    add %r11, %r8
    dec %esi
    jnz 1b
    mov %r8, %rax
    pop %rbx
    ret
    .size exchange_all, . - exchange_all
    .section .note.GNU-stack, "", @progbits
