// Values of x87, MMX and mask registers, each under a label: tests/end_to_end/test_values.py.
    .text
    .globl _start
_start:
    // x87. To the right the stack behind each instruction.
push_one:
    fld1                        // 1
push_half:
    fldl half(%rip)             // 0.5 1
push_copy:
    fld %st(1)                  // 1 0.5 1
add_and_pop:
    faddp %st, %st(1)           // 1.5 1
change_sign:
    fchs                        // -1.5 1
exchange:
    fxch %st(1)                 // 1 -1.5
store:
    fstpl to(%rip)              // -1.5
    fldz                        // 0 -1.5
sine_cosine:
    fsincos                     // 1 0 -1.5
pop_two:
    fcompp                      // -1.5
compare:
    fcomi %st(0), %st
integer:
    fildq whole(%rip)           // 2^53+1 -1.5
    fld1
third:
    fdivs three(%rip)           // 1/3 2^53+1 -1.5
huge:
    fldt two_to_2000(%rip)
tiny:
    fldt two_to_minus_1074(%rip)
test:
    ftst
empty:
    ffree %st(0)
    fincstp                     // 2^2000 1/3 2^53+1 -1.5

    // An exception that stays pending until it is cleared.
    fnclex
    fldcw divisions_trap(%rip)
    fld1
divide:
    fdivs zero(%rip)
status:
    fnstsw %ax
    fninit

    // MMX.
mmx_load:
    movq word(%rip), %mm1
mmx_copy:
    movq %mm1, %mm2
mmx_add:
    paddb %mm1, %mm1
mmx_store:
    movq %mm1, to(%rip)
mmx_move:
    movd %mm1, %eax
mmx_to_vector:
    movq2dq %mm1, %xmm0
mmx_end:
    emms
    fnstenv environment(%rip)
tags:
    mov environment+8(%rip), %ax

    // Masks, where CPUID and XCR0 have them.
    mov $1, %eax
    cpuid
    bt $27, %ecx                // OSXSAVE
    jnc end
    mov $7, %eax
    xor %ecx, %ecx
    cpuid
    bt $16, %ebx                // AVX512F
    jnc end
    xor %ecx, %ecx
    xgetbv
    not %eax
    test $0xe0, %al
    jnz end
    mov $0x5a5a, %eax
mask_set:
    kmovw %eax, %k1
mask_not:
    knotw %k1, %k2
mask_get:
    kmovw %k2, %ebx
mask_compare:
    vpcmpeqd %zmm0, %zmm0, %k3{%k1}
under_mask:
    vmovdqa32 %zmm0, %zmm4{%k1}{z}
end:
    mov $60, %eax
    mov $17, %edi
exit:
    syscall

    .data
    .balign 64
word:   .quad 0x1122334455667788
half:   .double 0.5
whole:  .quad 0x20000000000001
to:     .quad 0
two_to_2000: .quad 0x8000000000000000, 0x47cf
two_to_minus_1074: .quad 0x8000000000000000, 0x3bcd
three:  .single 3.0
zero:   .single 0.0
divisions_trap: .word 0x037b
environment: .skip 28
    .section .note.GNU-stack, "", @progbits
