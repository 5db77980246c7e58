// Bit tests on memory. With a register as the bit number the address depends on the number,
// signed, in units of the operand size.
    .text
    .globl bits_all
    .type bits_all, @function
bits_all:                       // rdi: middle of an area, rsi: bit number; returns bits seen
    xor %eax, %eax
    bt %rsi, (%rdi)
    adc $0, %eax
    bts %rsi, (%rdi)
    adc $0, %eax
    btr %esi, 8(%rdi)
    adc $0, %eax
    btc %rsi, 16(%rdi)
    adc $0, %eax
    lock bts %rsi, 24(%rdi)
    adc $0, %eax
    btl $5, (%rdi)
    adc $0, %eax
    btsq $43, 8(%rdi)
    adc $0, %eax
    btrw $3, 17(%rdi)
    adc $0, %eax
    btcl $31, 62(%rdi)
    adc $0, %eax
    bsf (%rdi), %rdx
    add %edx, %eax
    ret
    .size bits_all, . - bits_all
    .section .note.GNU-stack, "", @progbits
