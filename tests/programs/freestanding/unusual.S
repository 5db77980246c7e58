// Instructions that Valgrind 3.19 does not know or gets wrong: only behaviour can be compared,
// with the native run's.
    .text
    .globl unusual_all
    .type unusual_all, @function
unusual_all:                    // rdi: 512 bytes, rsi: a number; returns a sum
    push %rbx
    mov %rdi, %r8
    pushw $1234
    popw 10(%r8)                // pop to memory of a word
    lea (%r8), %rbx
    mov %esi, %eax
    and $255, %eax
    xlat                        // rbx-based table lookup
    movzbl %al, %r9d
    mov %r8, %rsi
    lea 3(%r8), %rdi
    mov $40, %ecx
1:  cmpsb                       // compares without a prefix
    adc $0, %r9
    dec %ecx
    jnz 1b
    mov $77, %ecx
    mov %r8, %rsi
    rep lodsb                   // Valgrind ignores this prefix
    movzbl %al, %eax
    add %rax, %r9
    enter $32, $0
    mov %rsp, %rax
    sub %rbp, %rax
    add %rax, %r9
    leave
    movw 10(%r8), %ax
    movzwl %ax, %eax
    add %r9, %rax
    pop %rbx
    ret
    .size unusual_all, . - unusual_all
    .section .note.GNU-stack, "", @progbits
