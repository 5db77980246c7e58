// More functions than a first-level instruction cache holds, of many sizes, a quarter of which
// call the next one.
    .altmacro
    .macro function number
    .type many_\number, @function
many_\number:                   // edi: a number; returns another
    lea \number(%rdi), %eax
    test $1 << (\number % 5), %edi
    jz 1f
    imul $\number * 2 + 1, %eax, %eax
    .nops (\number * 7) % 41 + 1
1:  add many_data + (\number * 104729) % 65536(%rip), %eax
    .if \number % 4 == 0
    mov %eax, %edi
    call_next %(\number + 1)
    .endif
    .nops (\number * 13) % 29 + 1
    ret
    .size many_\number, . - many_\number
    .endm
    .macro call_next number
    call many_\number
    .endm
    .macro entry number
    .quad many_\number
    .endm

    .set MANY, 1500
    .text
    .set n, 0
    .rept MANY
    function %n
    .set n, n + 1
    .endr

    .section .rodata
    .globl many_functions
    .balign 64
many_functions:
    .set n, 0
    .rept MANY
    entry %n
    .set n, n + 1
    .endr
    .quad 0

    .local many_data
    .comm many_data, 65536 + 8, 64
    .section .note.GNU-stack, "", @progbits
