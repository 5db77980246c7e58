// Read-modify-write forms of integer instructions: one reference each, counted as a read.
    .text
    .globl modify_all
    .type modify_all, @function
modify_all:                     // rdi: 32 bytes; returns a sum of them
    mov $500, %ecx
1:  add %rcx, (%rdi)
    adcl $7, 8(%rdi)
    sbb %ecx, 16(%rdi)
    subl $3, 24(%rdi)
    incl (%rdi)
    decw 8(%rdi)
    negq 16(%rdi)
    notb 24(%rdi)
    xor %cl, 1(%rdi)
    orl $0x11, 9(%rdi)
    andb $0xfd, 17(%rdi)
    shll $3, 4(%rdi)
    sarq %cl, 8(%rdi)
    rolw $5, 20(%rdi)
    rcrl $1, 24(%rdi)
    shldq $9, %rcx, 16(%rdi)
    setc 7(%rdi)
    addq $1, 61(%rdi)           // crosses a line
    dec %ecx
    jnz 1b
    mov (%rdi), %rax
    add 8(%rdi), %rax
    add 16(%rdi), %rax
    add 24(%rdi), %rax
    ret
    .size modify_all, . - modify_all
    .section .note.GNU-stack, "", @progbits
