// Instructions whose values are known, each under a label: tests/end_to_end/test_values.py.
    .text
    .globl _start
_start:
    mov $158, %eax              // arch_prctl(ARCH_SET_FS, thread)
    mov $0x1002, %edi
    lea thread(%rip), %rsi
set_fs:
    syscall

    // Loads.
    mov $-1, %rax
load:
    mov word(%rip), %rax
load_low:
    mov word(%rip), %ecx
    mov $-1, %rdx
load_short:
    mov word(%rip), %dx
load_byte:
    movzbl word(%rip), %edx
load_signed:
    movslq negative(%rip), %rdx
    lea pointer(%rip), %rdi
load_itself:
    mov (%rdi), %rdi
    mov $2, %ebx
load_indexed:
    mov -8(%rdi,%rbx,4), %rsi
load_fs:
    mov %fs:8, %rsi
load_vector:
    movsd one(%rip), %xmm3
load_wide:
    movdqu word(%rip), %xmm4
compare:
    cmpl $0x55667788, word(%rip)
    sete %bl

    // Stores.
    mov $0x123456789abcdef0, %rax
store:
    mov %rax, to(%rip)
store_again:
    mov %rax, to(%rip)
store_short:
    mov %ax, to(%rip)
store_high:
    mov %ah, to(%rip)
store_constant:
    movl $-1, to(%rip)
store_vector:
    movsd %xmm3, to(%rip)
push:
    push %rax
pop:
    pop %rdx
push_memory:
    push word(%rip)
pop_memory:
    pop to(%rip)
    lea to(%rip), %rdi
    mov $7, %eax
store_string:
    stosq
    lea word(%rip), %rsi
    lea to(%rip), %rdi
move_string:
    movsb

    // Both.
    movq $40, to(%rip)
modify:
    addq $2, to(%rip)
modify_byte:
    negb to(%rip)
    mov $8, %ecx
    lea to(%rip), %rax
modify_lost:
    xadd %rax, (%rax)
    mov $5, %eax
exchange:
    xchg %rax, to(%rip)

    // Registers, with every flag alive.
    mov $0x1234, %eax
    mov $0xfff0, %ebx
    stc
    setc %ch
add_short:
    add %ax, %bx
add_carry:
    adc %rax, %rbx
high:
    mov %ch, %al
zero:
    xor %edx, %edx
multiply:
    mul %rbx
vector_add:
    addsd %xmm3, %xmm3
dead:                           // rsi is dead here, and a value of the next one all the same
    mov $99, %esi
dead_next:
    mov $98, %esi

    // Repeated strings.
    lea word(%rip), %rsi
    lea to(%rip), %rdi
    mov $3, %ecx
repeat_move:
    rep movsb
    mov $0x41, %eax
    mov $2, %ecx
repeat_store:
    rep stosw
    xor %ecx, %ecx
repeat_never:
    rep stosb
    lea word(%rip), %rdi
    mov $0x66, %eax
    mov $8, %ecx
repeat_scan:
    repne scasb

    // Addresses that only the execution tells.
    lea word(%rip), %rbx
    mov $3, %eax
translate:
    xlat
    mov $17, %edx
bit_test:
    btc %rdx, word(%rip)

    // Branches.
    mov $3, %ecx
again:
    dec %rcx
conditional:
    jnz again
    mov $2, %ecx
counted_top:
    nop
counted:
    loop counted_top
    call function
behind_call:
    lea function(%rip), %rax
call_register:
    call *%rax
call_memory:
    call *function_pointer(%rip)
behind_call_memory:
    lea behind(%rip), %rcx
jump_register:
    jmp *%rcx
    ud2
behind:
    jmp end
    ud2
function:
    lea 1(%rdx), %rdx
return:
    ret
end:
    mov $60, %eax
    mov $17, %edi
exit:
    syscall

    .data
    .balign 64
word:   .quad 0x1122334455667788, 0x99
pointer: .quad pointer
negative: .long -2, 0
one:    .double 1.0
function_pointer: .quad function
to:     .quad 0, 0
thread: .quad 0, 0x7777
    .section .note.GNU-stack, "", @progbits
