// What exp-bbv's totals lack: the iterations of lods, and fldcw behind a prefix, of which REX for r8
// is one. And one fldcw that they have.
    .text
    .globl _start
    .type _start, @function
_start:
    lea word(%rip), %r8
    mov %r8, %rsi
    mov $10, %ecx
    rep lodsb
    fldcw word(%rip)
    fldcw (%r8)
    .byte 0x67                  // address size
    fldcw word(%rip)
    .byte 0x3e                  // segment ds
    fldcw word(%rip)
    xor %edi, %edi
    mov $60, %eax               // exit
    syscall
    .size _start, . - _start

    .data
word:
    .quad 0x37f, 0
    .section .note.GNU-stack, "", @progbits
