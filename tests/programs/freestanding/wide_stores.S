// 64 rounds of stores of 16, 32 and 64 bytes: tests/end_to_end/test_wide_values.py. Without arguments
// those of 16; with one of 32, too, which need AVX; with two of 64, too, which need AVX-512.
    .text
    .globl _start
    .type _start, @function
_start:
    mov (%rsp), %r12            // argc
    xor %ebx, %ebx
round:
    // One byte of the source changes, another one in each round: in 64 rounds each of 64.
    incb source(%rbx)
    movups source(%rip), %xmm0
    movups source+16(%rip), %xmm1
store_16:                       // changes something in the first 16 rounds
    movups %xmm0, to_16(%rip)
store_16_again:
    movaps %xmm0, to_16(%rip)
load_16:
    movaps to_16(%rip), %xmm2
add_16:
    paddb ones(%rip), %xmm2
    fldt ten(%rip)
store_10:                       // the same exponent as before but in the first round
    fstpt to_10(%rip)
    xor %eax, %eax
    xor %edx, %edx
    xor %ecx, %ecx
exchange_16:                    // stores the round's number in rounds 0 and 1, then what is there
    cmpxchg16b to_exchange(%rip)
    cmp $2, %r12
    jl next
    vmovups source(%rip), %ymm3
store_32:                       // changes something in the first 32 rounds
    vmovups %ymm3, to_32(%rip)
store_32_again:
    vmovaps %ymm3, to_32(%rip)
    vpcmpeqd %xmm4, %xmm4, %xmm4
store_under_mask_32:
    vmaskmovps %ymm3, %ymm4, to_32(%rip)
    vzeroupper
    cmp $3, %r12
    jl next
    vmovups source(%rip), %zmm17
store_64:                       // changes something in each round
    vmovups %zmm17, to_64(%rip)
store_64_again:
    vmovaps %zmm17, to_64(%rip)
store_upper_32:                 // of a register that only EVEX has
    vmovups %ymm17, to_32(%rip)
    mov $0xff, %eax
    kmovw %eax, %k1
store_under_mask_64:
    vmovups %zmm17, to_64(%rip){%k1}
next:
    inc %ebx
    cmp $64, %ebx
    jne round
    mov $60, %eax
    xor %edi, %edi
    syscall
    .size _start, . - _start

    .data
    .balign 64
source: .fill 64
ones:   .fill 16, 1, 1
to_16:  .fill 16
to_exchange: .fill 16
    .balign 64
to_32:  .fill 32
    .balign 64
to_64:  .fill 64
ten:    .fill 8
    .word 0x3fff
to_10:  .fill 10
    .section .note.GNU-stack, "", @progbits
