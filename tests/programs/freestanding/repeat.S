// String instructions, with and without a repeat prefix. rdi: to, rsi: from, rdx: count.
    .macro function name
    .globl \name
    .type \name, @function
\name:
    mov %rdx, %rcx
    .endm
    .macro end_function name
    ret
    .size \name, . - \name
    .endm

    .text
function copy_bytes
    rep movsb
end_function copy_bytes
function copy_quads
    rep movsq
end_function copy_quads
function copy_backwards
    std
    rep movsw
    cld
end_function copy_backwards
function fill_dwords
    mov %esi, %eax
    rep stosl
end_function fill_dwords
function compare_bytes          // iterations left over
    repe cmpsb
    mov %rcx, %rax
end_function compare_bytes
function scan_bytes             // looks for the byte in sil
    mov %esi, %eax
    repne scasb
    mov %rcx, %rax
end_function scan_bytes
function skip_words             // passes over words equal to si
    mov %esi, %eax
    repe scasw
    mov %rcx, %rax
end_function skip_words
function single_steps           // rdx times movsb, stosb, lodsb, scasb without a prefix
    test %rdx, %rdx
    jz 2f
1:  movsb
    lodsb
    stosb
    scasb
    dec %rdx
    jnz 1b
2:  mov %rsi, %rax
end_function single_steps
    .section .note.GNU-stack, "", @progbits
