// References of every size at pseudo-random addresses, aligned or not, in an area larger than most
// second-level caches: nearly all miss, and some lie in two lines. Each function makes so many
// that checks of references which miss often differ from others after a while.
//
// rdi: 4 MiB and some bytes, rsi: how often, rdx: state of the generator; returns a sum.
    .macro function name
    .globl \name
    .type \name, @function
\name:
    mov %rdx, %rax
    xor %r9d, %r9d
1:  mov %rax, %rdx              // xorshift64
    shl $13, %rdx
    xor %rdx, %rax
    mov %rax, %rdx
    shr $7, %rdx
    xor %rdx, %rax
    mov %rax, %rdx
    shl $17, %rdx
    xor %rdx, %rax
    .endm
    .macro again name
    dec %rsi
    jnz 1b
    add %r9, %rax
    ret
    .size \name, . - \name
    .endm

    // Another address, from other bits of the state.
    .macro place shift, register
    mov %rax, %\register
    shr $\shift, %\register
    and $0x3fffff, %\register
    .endm

    .text
function scattered_loads
    place 0, rcx
    movzbl (%rdi,%rcx), %edx
    add %rdx, %r9
    place 11, rcx
    movzwl (%rdi,%rcx), %edx
    add %rdx, %r9
    place 23, rcx
    add (%rdi,%rcx), %r9d
    place 37, rcx
    xor (%rdi,%rcx), %r9
again scattered_loads

function scattered_stores
    place 0, rcx
    movb %al, (%rdi,%rcx)
    place 11, rcx
    movw %ax, (%rdi,%rcx)
    place 23, rcx
    movl $77, (%rdi,%rcx)
    place 37, rcx
    mov %rax, (%rdi,%rcx)
again scattered_stores

function scattered_modifies
    place 0, rcx
    addb $3, (%rdi,%rcx)
    place 11, rcx
    notw (%rdi,%rcx)
    place 23, rcx
    subl $9, (%rdi,%rcx)
    place 37, rcx
    sbb %rax, (%rdi,%rcx)
again scattered_modifies

    // Flags that are live across references whose address is in rax, where checks keep flags: as
    // its base, as its index, and of a large one.
function scattered_flags
    place 0, rcx
    place 11, r8
    place 23, r10
    mov %rax, %r11
    test $1, %r11b
    lea (%rdi,%rcx), %rax
    movzwl (%rax), %edx
    lea (%rdi), %rax
    movups (%rax,%r8), %xmm0
    mov %r10, %rax
    mov (%rdi,%rax), %rcx
    cmovne %rcx, %rdx
    mov %r11, %rax
    add %rdx, %r9
again scattered_flags

    // Flags that are live across references, and no other registers left.
function scattered_carries
    place 0, rcx
    place 19, r8
    place 38, r10
    mov %rbx, %r11
    add %rax, %r9               // sets the carry
    mov (%rdi,%rcx), %rdx
    mov %rdx, 24(%rdi,%r8)
    mov (%rdi,%r10), %ebx
    adc %rbx, %r9
    mov %r11, %rbx
again scattered_carries

function scattered_vectors
    place 0, rcx
    movdqu (%rdi,%rcx), %xmm0
    place 11, rcx
    movups %xmm0, (%rdi,%rcx)
    place 23, rcx
    and $-16, %rcx
    pxor (%rdi,%rcx), %xmm0
    place 37, rcx
    movsd (%rdi,%rcx), %xmm1
    movq %xmm0, %rdx
    add %rdx, %r9
again scattered_vectors

function scattered_wide
    place 0, rcx
    vmovdqu (%rdi,%rcx), %ymm0
    place 11, rcx
    vmovups %ymm0, (%rdi,%rcx)
    place 23, rcx
    vandps (%rdi,%rcx), %ymm0, %ymm0
    vmovq %xmm0, %rdx
    add %rdx, %r9
    vzeroupper
again scattered_wide

    // Two fields of a record, then two of another, one of them in the next line now and then. The
    // code is larger than small caches and has other lines between two fields.
function scattered_records
    place 0, rcx
    lea (%rdi,%rcx), %r8
    mov 8(%r8), %rdx
    add %rdx, %r9
    mov %r9d, 4(%r8)
    addl $1, 12(%r8)
    place 23, rcx
    add %rdi, %rcx
    movzbl (%rcx), %edx
    .rept 20
    nopl 0x12345(%rax,%rax)
    .endr
    add %rdx, %r9
    mov %r9w, 9(%rcx)
    cmpb $0, 15(%rcx)
    jmp 2f
2:
    .rept 60
    nopl 0x12345(%rax,%rax)
    .endr
again scattered_records

    // One access in many misses: checks stay as they are.
function scattered_seldom
    place 0, rcx
    test $0x3c, %al
    jz 2f
    and $0x3f8, %ecx
2:  add (%rdi,%rcx), %r9
    incb 3(%rdi,%rcx)
again scattered_seldom

    // Places that are known when the code is translated, of one set in most caches.
function scattered_constants
    add conflicting(%rip), %r9
    mov %rax, conflicting+65536(%rip)
    incl conflicting+131072+62(%rip)
    mov conflicting+8(%rip), %rdx
    xor %rdx, %r9
again scattered_constants

    .local conflicting
    .comm conflicting, 196608, 4096
    .section .note.GNU-stack, "", @progbits
