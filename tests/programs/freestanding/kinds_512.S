// As kinds.S, of AVX-512 (F, BW and DQ).
    .set ROUNDS, 1000
    .text
    .globl _start
    .type _start, @function
_start:
    call wide
    call masked
    xor %edi, %edi
    mov $60, %eax               // exit
    syscall
    .size _start, . - _start

    // 16 and 16 flops in double, 16 in single precision; 64 + 8 bytes read, 64 written.
    .type wide, @function
wide:
    mov $ROUNDS, %ecx
1:
    vfmadd231pd data(%rip), %zmm1, %zmm2
    vfnmadd231pd data(%rip){1to8}, %zmm1, %zmm2
    vmulps %zmm0, %zmm1, %zmm2
    vaddsd %xmm16, %xmm17, %xmm18
    vpaddd %zmm0, %zmm1, %zmm2
    vpternlogd $3, %zmm0, %zmm1, %zmm2
    vmovups %zmm0, data(%rip)
    vpaddd %ymm16, %ymm17, %ymm18
    dec %ecx
    jnz 1b
    ret
    .size wide, . - wide

    // 8 flops in double precision under a mask, of which one element in two is computed.
    .type masked, @function
masked:
    mov $0x55, %eax
    kmovd %eax, %k1
    mov $ROUNDS, %ecx
1:
    vaddpd %zmm0, %zmm1, %zmm2{%k1}
    vcmppd $1, %zmm0, %zmm1, %k2
    kortestw %k2, %k2
    vpermd %zmm0, %zmm1, %zmm2{%k1}{z}
    dec %ecx
    jnz 1b
    ret
    .size masked, . - masked

    .data
    .balign 64
data:
    .fill 64, 1, 0
    .section .note.GNU-stack, "", @progbits
