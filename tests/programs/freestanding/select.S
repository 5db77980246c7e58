// Conditional moves (which read memory whether or not they move), loop, loopne and jrcxz, and
// instructions that name memory without touching it.
    .text
    .globl select_all
    .type select_all, @function
select_all:                     // rdi: 512 bytes, rsi: seed; returns a sum
    mov %rsi, %rax
    xor %r8d, %r8d
    xor %r9d, %r9d
    mov $60, %ecx
1:  imul $1103515245, %rax, %rax
    add $12345, %rax
    mov %eax, %edx
    and $255, %edx
    test $1, %al
    cmovz (%rdi,%rdx), %r8
    cmovnz 64(%rdi,%rdx), %r9d
    add %r8, %r9
    lea 100000000(%rdi), %r10
    prefetcht0 (%rdi,%rdx)
    nopl 4096(%rdi)
    loop 1b
    mov $50, %ecx
2:  cmpb $9, (%rdi,%rcx)
    loopne 2b
    add %rcx, %r9
    mov $5, %ecx
3:  jrcxz 4f
    add (%rdi,%rcx,8), %r9
    dec %rcx
    jmp 3b
4:  mov %r9, %rax
    ret
    .size select_all, . - select_all
    .section .note.GNU-stack, "", @progbits
