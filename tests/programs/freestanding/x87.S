// x87 loads and stores of 4, 8 and 10 bytes, of integers and of the environment.
    .text
    .globl float_all
    .type float_all, @function
float_all:                      // rdi: 192 bytes; returns an integer result
    finit
    fildl (%rdi)
    mov $200, %ecx
1:  fld1
    faddp
    fstl 8(%rdi)
    flds 16(%rdi)
    fadds 16(%rdi)
    fstps 20(%rdi)
    fld %st(0)
    fstpt 31(%rdi)              // ten bytes, not aligned
    fldt 31(%rdi)
    faddl 8(%rdi)
    fmull 8(%rdi)
    fstpt 57(%rdi)              // crosses a line when rdi is aligned to one
    fldt 57(%rdi)
    fistpll 80(%rdi)
    fildq 80(%rdi)
    fisttpl 88(%rdi)
    fiaddl (%rdi)
    fistl 92(%rdi)
    fnstcw 96(%rdi)
    fldcw 96(%rdi)
    fnstsw 98(%rdi)
    dec %ecx
    jnz 1b
    fistpll 104(%rdi)
    mov 80(%rdi), %rax
    add 104(%rdi), %rax
    movslq 92(%rdi), %rdx
    add %rdx, %rax
    ret
    .size float_all, . - float_all
    .section .note.GNU-stack, "", @progbits
