// References of 8 bytes that follow one another on the stack, wherever it is: see series.c.

    .text
    // rax = series(stack, table): saves, fills, reads and restores below `stack`; between, lines of
    // the table that may be in the same sets.
    .globl series
    .type series, @function
series:
    push %rbx
    mov %rsp, %rbx
    mov %rdi, %rsp
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    push %rbx
    mov (%rsi), %rax
    sub $72, %rsp
    mov %rsi, (%rsp)            // upwards
    mov %rdi, 8(%rsp)
    mov %rax, 16(%rsp)
    mov %rax, 24(%rsp)
    mov %rax, 32(%rsp)
    mov %rax, 40(%rsp)
    mov %rax, 48(%rsp)
    mov %rax, 56(%rsp)
    add 4096(%rsi), %rax
    xor 56(%rsp), %rax          // downwards, and one of them again
    add 48(%rsp), %rax
    add 40(%rsp), %rax
    add 40(%rsp), %rax
    add 32(%rsp), %rax
    call inner
    add $72, %rsp
    pop %rbx
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    mov %rbx, %rsp
    pop %rbx
    ret
    .size series, . - series

    // Calls, pushes of memory and constants, and smaller references in between.
    .type inner, @function
inner:
    pushq (%rsi)
    pushq $5
    push %rax
    movl 8(%rsp), %ecx
    push %rcx
    add 24(%rsp), %rax
    pop %rcx
    pop %rcx
    add $16, %rsp
    ret
    .size inner, . - inner

    .section .note.GNU-stack, "", @progbits
