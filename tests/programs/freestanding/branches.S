// Branches whose mispredictions are known on paper: test_branch.py says how many.
    .text

// Nested loops: `outer` times `inner` iterations, and no other branch.
    .macro loops name, outer, inner
    .globl \name
    .type \name, @function
\name:
    mov $\outer, %edx
1:  mov $\inner, %ecx
2:  dec %ecx
    jnz 2b
    dec %edx
    jnz 1b
    ret
    .size \name, . - \name
    .endm
    loops loop_of_10, 1000, 10
    loops loop_of_60, 1000, 60

// 2,000 executions of one branch, taken where the pattern has a 1; and the loop around it.
    .macro follow name, pattern:vararg
    .globl \name
    .type \name, @function
\name:
    xor %ecx, %ecx
    xor %r8d, %r8d
    mov $2000, %edx
1:  cmpb $0, 8f(%rcx)
    jne 2f
    nop
2:  inc %rcx
    cmp $(9f - 8f), %rcx
    cmove %r8, %rcx
    dec %edx
    jnz 1b
    ret
    .size \name, . - \name
    .section .rodata
8:  .byte \pattern
9:
    .text
    .endm
    follow alternate, 1, 0
    follow period_of_5, 1, 1, 0, 1, 0

// 2,000 jumps to five targets in turn.
    .globl cycle_targets
    .type cycle_targets, @function
cycle_targets:
    xor %ecx, %ecx
    xor %r8d, %r8d
    mov $2000, %edx
1:  jmp *8f(, %rcx, 8)
    .irp target, 3, 4, 5, 6, 7
    .balign 8
\target: nop
    jmp 2f
    .endr
2:  inc %rcx
    cmp $5, %rcx
    cmove %r8, %rcx
    dec %edx
    jnz 1b
    ret
    .size cycle_targets, . - cycle_targets
    .section .rodata
    .balign 8
8:  .quad 3b, 4b, 5b, 6b, 7b
    .text

// 2,000 calls that always go to the same function.
    .globl call_one
    .type call_one, @function
call_one:
    mov $2000, %edx
    lea called(%rip), %rax
1:  call *%rax
    dec %edx
    jnz 1b
    ret
    .size call_one, . - call_one
    .type called, @function
called:
    ret
    .size called, . - called

// edi activations of itself within one another.
    .globl descend
    .type descend, @function
descend:
    dec %edi
    jz 1f
    call descend
1:  ret
    .size descend, . - descend

// Calls `skipping`, which does not return here but to the caller.
    .globl skipped
    .type skipped, @function
skipped:
    call skipping
    ud2
    .size skipped, . - skipped
    .type skipping, @function
skipping:
    add $8, %rsp
    ret
    .size skipping, . - skipping
    .section .note.GNU-stack, "", @progbits
