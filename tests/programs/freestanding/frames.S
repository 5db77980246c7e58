// Stack instructions beyond call and ret: enter, leave, push and pop of memory and flags.
    .text
    .globl framed
    .type framed, @function
framed:                         // rdi: a pointer to 32 bytes; returns a sum
    enter $48, $0
    mov %rdi, -8(%rbp)
    push (%rdi)
    push $-77
    push $0x12345678
    pushw 8(%rdi)
    pushfq
    pop %rax
    and $1, %eax
    popw %dx
    add %dx, %ax
    pop %rdx
    add %rdx, %rax
    pop %rdx
    add %rdx, %rax
    pop 16(%rdi)
    add 16(%rdi), %rax
    push %rsp
    pop %rdx
    sub %rsp, %rdx
    add %rdx, %rax
    mov -8(%rbp), %rdi
    call *24(%rdi)              // reads the target, then writes the return address
    leave
    ret
    .size framed, . - framed

    .globl callee
    .type callee, @function
callee:                         // removes 16 bytes that nobody pushed: the caller's are spare
    sub $16, %rsp
    pushq 16(%rsp)              // the return address, below its place
    add $1, %rax
    ret $16
    .size callee, . - callee
    .section .note.GNU-stack, "", @progbits
