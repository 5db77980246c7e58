// 1000 rounds of instructions whose most frequent values are known: tests/end_to_end/test_classic.py.
    .text
    .globl _start
    .type _start, @function
_start:
    xor %ebx, %ebx
round:
    // 7, but in every tenth round its number.
    mov %ebx, %eax
    xor %edx, %edx
    mov $10, %ecx
    div %ecx
    mov $7, %eax
    cmp $3, %edx
    cmove %ebx, %eax
store_mostly_7:
    mov %eax, mostly_7(%rip)
load_mostly_7:
    mov mostly_7(%rip), %eax
load_zero:
    mov zero(%rip), %rax
load_double:
    movsd number(%rip), %xmm0
    fldl number(%rip)
double_x87:
    fadd %st(0), %st
    fstp %st(0)
store_constant:                 // the first one changes 0 to 5
    movl $5, constant(%rip)
store_number:                   // none is silent but the first, of 0
    mov %ebx, counter(%rip)
load_parity:
    mov counter(%rip), %eax
    and $1, %eax
parity:
    lea (%rax), %rdx
add_number:
    addl $0, counter(%rip)
    // 16 bytes, of which only the high 8 change; as many, in a string; and 8 of the same register.
    movd %ebx, %xmm1
    pslldq $8, %xmm1
store_wide:
    movups %xmm1, wide(%rip)
    lea wide(%rip), %rdi
    mov $8, %ecx
    mov $0, %eax
store_string:
    rep stosb
store_low:
    movlps %xmm1, low(%rip)
    inc %ebx
    cmp $1000, %ebx
    jne round
    mov $60, %eax
    xor %edi, %edi
    syscall
    .size _start, . - _start

    .data
    .balign 8
zero:   .quad 0
number: .double 3.25
mostly_7: .long 0
constant: .long 0
counter: .long 0
low:    .quad 0
wide:   .quad 0, 0
    .section .note.GNU-stack, "", @progbits
