// Walks that read a word of each of 64 lines, with known numbers of instructions from one to the next.
    .set lines, 64

    .macro begin name
    .globl \name
    .type \name, @function
\name:
    lea lines_of_\name(%rip), %rsi
    mov $lines, %ecx
    .endm

    // Nobody reads what lies between two of them.
    .macro end name
    ret
    .size \name, . - \name
    .bss
    .balign 64
    .skip 256
lines_of_\name:
    .skip 64 * lines
    .text
    .endm

    .text
    begin walk_4
1:  mov (%rsi), %rax
    add $64, %rsi
    dec %ecx
    jnz 1b
    end walk_4

    begin walk_24
1:  mov (%rsi), %rax
    .rept 10
    nop
    .endr
    add $64, %rsi
    .rept 10
    nop
    .endr
    dec %ecx
    jnz 1b
    end walk_24

    // 7: those of the function that is called among them.
    begin walk_calls
1:  mov (%rsi), %rax
    add $64, %rsi
    call step
    dec %ecx
    jnz 1b
    end walk_calls

    .type step, @function
step:
    nop
    ret
    .size step, . - step

    // 9: a repeated instruction is one.
    begin walk_string
1:  mov (%rsi), %rax
    add $64, %rsi
    mov %ecx, %edx
    lea written(%rip), %rdi
    mov $16, %ecx
    rep stosb
    mov %edx, %ecx
    dec %ecx
    jnz 1b
    end walk_string

    // 6 and 9, in turns.
    begin walk_branches
1:  mov (%rsi), %rax
    add $64, %rsi
    test $1, %cl
    jz 2f
    nop
    nop
    nop
2:  dec %ecx
    jnz 1b
    end walk_branches

    .local written
    .comm written, 64, 64
    .section .note.GNU-stack, "", @progbits
