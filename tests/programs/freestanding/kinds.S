// Instructions of known kinds, for the opcode_mix profiler: each function executes its loop ROUNDS
// times, of which dec and jnz are a part. test_opcode_mix.py knows what each has to count. Needs FMA
// and AVX2.
    .set ROUNDS, 1000
    .set COPIED, 4096

    .macro begin name
    .type \name, @function
\name:
    mov $ROUNDS, %ecx
1:
    .endm
    .macro end name
    dec %ecx
    jnz 1b
    ret
    .size \name, . - \name
    .endm

    .text
    .globl _start
    .type _start, @function
_start:
    call scalar
    call fused
    call packed
    call integers
    call stack87
    call copies
    call branches
    call atomics
    call general
    xor %edi, %edi
    mov $60, %eax               // exit
    syscall
    .size _start, . - _start

    // 3 flops in double and 1 in single precision; 8 + 4 bytes read, 8 written.
    begin scalar
    movsd data(%rip), %xmm0
    addsd %xmm0, %xmm0
    mulsd %xmm0, %xmm0
    sqrtsd %xmm0, %xmm0
    subss data(%rip), %xmm1
    ucomisd %xmm0, %xmm0
    cvtsi2sd %ecx, %xmm2
    movsd %xmm0, data(%rip)
    end scalar

    // 2 flops in double; 16 in single precision on 256 bits, 8 in double on 256.
    begin fused
    vfmadd231sd %xmm0, %xmm1, %xmm2
    vfmadd213ps %ymm0, %ymm1, %ymm2
    vfnmsub132pd data(%rip), %ymm1, %ymm2
    end fused

    // 2 + 4 + 8 + 2 flops, and 8 of dpps; what neither adds nor multiplies is none.
    begin packed
    addpd %xmm0, %xmm1
    mulps %xmm0, %xmm1
    vdivps %ymm0, %ymm1, %ymm2
    haddpd %xmm0, %xmm1
    dpps $255, %xmm0, %xmm1
    vandpd %ymm0, %ymm1, %ymm2
    cmppd $0, %xmm0, %xmm1
    cvtps2pd %xmm0, %xmm1
    shufps $0, %xmm0, %xmm1
    vmovaps %ymm0, data(%rip)
    vzeroupper
    end packed

    begin integers
    paddd %xmm0, %xmm1
    vpmulld %ymm0, %ymm1, %ymm2
    pxor %xmm0, %xmm0
    psllq $3, %xmm0
    pcmpeqb %xmm0, %xmm1
    pshufb %xmm0, %xmm1
    vpermd %ymm0, %ymm1, %ymm2
    pmovzxbw %xmm0, %xmm1
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vpxor %xmm5, %xmm5, %xmm5
    lea data(%rip), %rax
    vpgatherdd %ymm3, (%rax,%ymm5,4), %ymm2
    end integers

    // 4 flops: fadd, fmul, fdiv, fsqrt. 4 bytes read, 10 written.
    begin stack87
    fld1
    fadds data(%rip)
    fmul %st, %st
    fdiv %st, %st
    fsqrt
    fchs
    fstpt data(%rip)
    end stack87

    // COPIED bytes read and written by movsb, 8 * 100 written by stosq, 1 by movsb without a prefix.
    begin copies
    mov %ecx, %edx
    lea data(%rip), %rsi
    lea copy(%rip), %rdi
    mov $COPIED, %ecx
    rep movsb
    lea copy(%rip), %rdi
    mov $100, %ecx
    rep stosq
    lea data(%rip), %rsi
    lea copy(%rip), %rdi
    movsb
    mov %edx, %ecx
    end copies

    .type leaf, @function
leaf:
    ret
    .size leaf, . - leaf

    begin branches
    call leaf
    lea leaf(%rip), %rax
    call *%rax
    jmp 2f
2:
    lea 3f(%rip), %rax
    jmp *%rax
3:
    end branches

    begin atomics
    lock incl data(%rip)
    xchg %eax, data(%rip)
    mfence
    end atomics

    begin general
    mov %eax, %edx
    movzbl %al, %edx
    cmovz %eax, %edx
    setz %al
    add %eax, %edx
    imul %eax, %edx
    lea 1(%rax), %edx
    and %eax, %edx
    test %eax, %edx
    shl $3, %edx
    rol $3, %edx
    popcnt %eax, %edx
    bt $3, %edx
    push %rax
    pop %rax
    nop
    prefetcht0 data(%rip)
    cld
    rdtsc
    crc32b %al, %edx
    end general

    .data
    .balign 64
data:
    .fill 8192, 1, 0
copy:
    .fill 8192, 1, 0
    .section .note.GNU-stack, "", @progbits
