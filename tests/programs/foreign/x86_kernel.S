// A kernel with known counts, for qemu-system-x86_64 with -device isa-debug-exit. It begins with 32-bit code at its
// physical address and goes on in the upper half: 1,000 calls and software interrupts, 100 faults in the middle of
// a block, three ticks of the timer, and user space with 100 system calls.
    .section .note, "a", @note
    .long 4, 4, 18              // XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long boot

    .section .boot, "ax"
    .code32
    .globl boot
    .type boot, @function
boot:
    mov $level4, %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x20, %eax              // PAE
    mov %eax, %cr4
    mov $0xc0000080, %ecx       // EFER: long mode and system calls
    rdmsr
    or $0x101, %eax
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax        // paging
    mov %eax, %cr0
    lgdt segments_size
    ljmp $8, $enter
    .size boot, . - boot
    .code64
    .type enter, @function
enter:
    movabs $start, %rax
    jmp *%rax
    .size enter, . - enter
    .type user, @function
user:
    xor %eax, %eax
    mov $100, %ebx
1:  push %rbx                   // a write
    syscall
    pop %rbx                    // a read
    dec %ebx
    jnz 1b
    inc %eax
    syscall
    .size user, . - user
    .balign 8
segments:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0, 0x00cff2000000ffff, 0x00affa000000ffff
segments_size:
    .short . - segments - 1
    .quad segments
    .balign 4096
level4:
    .quad level3 + 7
    .fill 510, 8, 0
    .quad level3 + 7
level3:
    .quad level2 + 7
    .fill 509, 8, 0
    .quad level2 + 7, 0
level2:                         // 2 MiB pages, also for user space
    .set page, 0
    .rept 8
    .quad page + 0x87
    .set page, page + 0x200000
    .endr
    .fill 504, 8, 0
    .fill 64, 8, 0
user_stack:

    .text
    .globl start
    .type start, @function
start:
    lea stack(%rip), %rsp
    lea divided(%rip), %rsi
    lea gates(%rip), %rdi
    call set_gate
    lea tick(%rip), %rsi
    lea gates + 0x20 * 16(%rip), %rdi
    call set_gate
    lea interrupt(%rip), %rsi
    lea gates + 0x40 * 16(%rip), %rdi
    call set_gate
    lidt gates_size(%rip)
    lea cells(%rip), %rbp
    call count
    call fault
    call wait
    mov $0xc0000081, %ecx       // STAR
    xor %eax, %eax
    mov $0x00180008, %edx
    wrmsr
    inc %ecx                    // LSTAR
    lea system_call(%rip), %rdx
    mov %edx, %eax
    shr $32, %rdx
    wrmsr
    mov $user, %ecx
    mov $2, %r11d
    mov $user_stack, %esp
    sysretq
    .size start, . - start

    .type count, @function
count:
    mov $1000, %ebx
1:  call work                   // a write
    int $0x40
    dec %ebx
    jnz 1b
    ret                         // a read
    .size count, . - count

    .type work, @function
work:
    mov (%rbp), %rax            // a read
    mov %rax, 8(%rbp)           // a write
    ret                         // a read
    .size work, . - work

    .type interrupt, @function
interrupt:
    incl 16(%rbp)               // a read and a write
    iretq
    .size interrupt, . - interrupt

    .type fault, @function
fault:
    mov $100, %ebx
    xor %ecx, %ecx
1:  div %ecx                    // two bytes, which the handler skips
    nop
    nop
    dec %ebx
    jnz 1b
    ret                         // a read
    .size fault, . - fault

    .type divided, @function
divided:
    addq $2, (%rsp)             // a read and a write
    iretq
    .size divided, . - divided

    .type wait, @function
wait:
    mov $0x11, %al              // the interrupt controller: interrupts begin at 0x20
    out %al, $0x20
    mov $0x20, %al
    out %al, $0x21
    mov $4, %al
    out %al, $0x21
    mov $1, %al
    out %al, $0x21
    mov $0xfe, %al              // only the timer
    out %al, $0x21
1:  sti
    hlt
    cli
    cmpl $3, 32(%rbp)           // a read
    jb 1b
    ret                         // a read
    .size wait, . - wait

    .type tick, @function
tick:
    incl 32(%rbp)               // a read and a write
    push %rax                   // a write
    mov $0x20, %al
    out %al, $0x20
    pop %rax                    // a read
    iretq
    .size tick, . - tick

    .type system_call, @function
system_call:
    test %eax, %eax
    jnz 1f
    incl 48(%rbp)               // a read and a write
    sysretq
1:  xor %eax, %eax
    out %al, $0xf4              // ends the machine with status 1
    hlt
    .size system_call, . - system_call

    .type set_gate, @function
set_gate:                       // %rdi: the gate, %rsi: the handler
    mov %si, (%rdi)             // a write
    movl $0x8e000008, 2(%rdi)   // a write
    shr $16, %rsi
    mov %si, 6(%rdi)            // a write
    shr $16, %rsi
    mov %esi, 8(%rdi)           // a write
    ret                         // a read
    .size set_gate, . - set_gate

    .balign 8
gates_size:
    .short 0x41 * 16 - 1
    .quad gates
    .bss
    .balign 64
gates: .space 0x41 * 16
    .balign 64
cells: .space 64
    .space 512
stack:
