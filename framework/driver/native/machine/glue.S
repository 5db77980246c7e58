# The border between the driver's C++ code and translated code. Offsets: see context.h.
        .text

        .set GPR, 0x1000
        .set RFLAGS, 0x1080
        .set ENTRY, 0x1090
        .set HOST_SP, 0x1098
        .set SAVING, 0x10a0
        .set VECTOR_MASK, 0x10d8
        .set VECTOR_STATE, 0x2100

        # Saving, of context.h
        .set SAVING_PLAIN, 1
        .set SAVING_LEGACY, 2

# void assay_enter(Context *context)
        .globl assay_enter
        .type assay_enter, @function
assay_enter:
        push %rbx
        push %rbp
        push %r12
        push %r13
        push %r14
        push %r15
        mov %rsp, HOST_SP(%rdi)
        cmpl $SAVING_LEGACY, SAVING(%rdi)
        je 1f
        mov VECTOR_MASK(%rdi), %eax
        xor %edx, %edx
        xrstor64 VECTOR_STATE(%rdi)
        jmp 2f
1:
        fxrstor64 VECTOR_STATE(%rdi)
2:
        pushq RFLAGS(%rdi)
        popfq
        mov GPR+0x00(%rdi), %rax
        mov GPR+0x08(%rdi), %rcx
        mov GPR+0x10(%rdi), %rdx
        mov GPR+0x18(%rdi), %rbx
        mov GPR+0x20(%rdi), %rsp
        mov GPR+0x28(%rdi), %rbp
        mov GPR+0x30(%rdi), %rsi
        mov GPR+0x40(%rdi), %r8
        mov GPR+0x48(%rdi), %r9
        mov GPR+0x50(%rdi), %r10
        mov GPR+0x58(%rdi), %r11
        mov GPR+0x60(%rdi), %r12
        mov GPR+0x68(%rdi), %r13
        mov GPR+0x70(%rdi), %r14
        mov GPR+0x78(%rdi), %r15
        mov GPR+0x38(%rdi), %rdi
        jmp *%gs:ENTRY
        .globl assay_enter_end
assay_enter_end:
        .size assay_enter, . - assay_enter

# Reached by a jump; returns to the caller of assay_enter.
        .globl assay_exit
        .type assay_exit, @function
assay_exit:
        mov %rax, %gs:GPR+0x00
        mov %rcx, %gs:GPR+0x08
        mov %rdx, %gs:GPR+0x10
        mov %rbx, %gs:GPR+0x18
        mov %rsp, %gs:GPR+0x20
        mov %rbp, %gs:GPR+0x28
        mov %rsi, %gs:GPR+0x30
        mov %rdi, %gs:GPR+0x38
        mov %r8, %gs:GPR+0x40
        mov %r9, %gs:GPR+0x48
        mov %r10, %gs:GPR+0x50
        mov %r11, %gs:GPR+0x58
        mov %r12, %gs:GPR+0x60
        mov %r13, %gs:GPR+0x68
        mov %r14, %gs:GPR+0x70
        mov %r15, %gs:GPR+0x78
        mov %gs:HOST_SP, %rsp
        pushfq
        popq %gs:RFLAGS
        cld
        # With AC the driver's unaligned accesses would fault. Programs set it to find out what
        # processor they run on.
        testl $0x40000, %gs:RFLAGS
        jz 1f
        pushq $0x202
        popfq
1:
        mov %gs:VECTOR_MASK, %eax
        xor %edx, %edx
        cmpl $SAVING_PLAIN, %gs:SAVING
        jae 2f
        xsaveopt64 %gs:VECTOR_STATE
        jmp 4f
2:
        jne 3f
        xsave64 %gs:VECTOR_STATE
        jmp 4f
3:
        fxsave64 %gs:VECTOR_STATE
4:
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbp
        pop %rbx
        ret
        .size assay_exit, . - assay_exit

# long assay_interruptible_syscall(const volatile int *pending, long number, const long *arguments)
        .globl assay_interruptible_syscall
        .type assay_interruptible_syscall, @function
assay_interruptible_syscall:
        push %rbx
        push %rbp
        mov %rdi, %rbx
        mov %rsi, %rax
        mov %rdx, %rbp
        mov 0x00(%rbp), %rdi
        mov 0x08(%rbp), %rsi
        mov 0x10(%rbp), %rdx
        mov 0x18(%rbp), %r10
        mov 0x20(%rbp), %r8
        mov 0x28(%rbp), %r9
        .globl assay_syscall_begin
assay_syscall_begin:
        cmpl $0, (%rbx)
        jnz assay_syscall_interrupted
        syscall
        .globl assay_syscall_end
assay_syscall_end:
        pop %rbp
        pop %rbx
        ret
        .globl assay_syscall_interrupted
assay_syscall_interrupted:
        mov $-4096, %rax                # kNotCalled
        pop %rbp
        pop %rbx
        ret
        .size assay_interruptible_syscall, . - assay_interruptible_syscall

# size_t assay_copy(void *to, const void *from, size_t bytes)
        .globl assay_copy
        .type assay_copy, @function
assay_copy:
        mov %rdx, %rcx
        rep movsb
        .globl assay_copy_end
assay_copy_end:
        mov %rcx, %rax
        ret
        .size assay_copy, . - assay_copy

# size_t assay_touch(void *byte)
        .globl assay_touch
        .type assay_touch, @function
assay_touch:
        mov $1, %eax
        lock orb $0, (%rdi)             # other threads may write it meanwhile
        xor %eax, %eax
        .globl assay_touch_end
assay_touch_end:
        ret
        .size assay_touch, . - assay_touch

# Signal handlers return here: rt_sigreturn(2).
        .globl assay_signal_return
        .type assay_signal_return, @function
assay_signal_return:
        mov $15, %eax
        syscall
        .size assay_signal_return, . - assay_signal_return

# void assay_resume(ucontext_t *interrupted)
        .set UC_R8, 40
        .set UC_RDI, 104
        .set UC_RSI, 112
        .set UC_RBP, 120
        .set UC_RBX, 128
        .set UC_RDX, 136
        .set UC_RAX, 144
        .set UC_RCX, 152
        .set UC_RSP, 160
        .set UC_RIP, 168
        .set UC_RFLAGS, 176
        .set UC_CS, 184
        .set UC_SS, 190
        .set UC_XSAVE, 224
        .set UC_MASK, 296
        .set XSAVE_MAGIC1, 464              # struct _fpx_sw_bytes, asm/sigcontext.h
        .set XSAVE_MAGIC, 0x46505853
        .set XSAVE_COMPONENTS, 472
        .globl assay_resume
        .type assay_resume, @function
assay_resume:
        lea -8(%rdi), %rsp              # what is below the frame is not needed any more
        mov %rdi, %rbx
        mov $14, %eax                   # rt_sigprocmask(2)
        mov $2, %edi                    # SIG_SETMASK
        lea UC_MASK(%rbx), %rsi
        xor %edx, %edx
        mov $8, %r10d
        syscall
        mov UC_XSAVE(%rbx), %rcx
        cmpl $XSAVE_MAGIC, XSAVE_MAGIC1(%rcx)
        je 1f
        fxrstor64 (%rcx)
        jmp 2f
1:
        mov XSAVE_COMPONENTS(%rcx), %eax
        mov XSAVE_COMPONENTS+4(%rcx), %edx
        xrstor64 (%rcx)
2:
        movzwl UC_SS(%rbx), %eax
        push %rax
        pushq UC_RSP(%rbx)
        pushq UC_RFLAGS(%rbx)
        movzwl UC_CS(%rbx), %eax
        push %rax
        pushq UC_RIP(%rbx)
        mov UC_R8+0x00(%rbx), %r8
        mov UC_R8+0x08(%rbx), %r9
        mov UC_R8+0x10(%rbx), %r10
        mov UC_R8+0x18(%rbx), %r11
        mov UC_R8+0x20(%rbx), %r12
        mov UC_R8+0x28(%rbx), %r13
        mov UC_R8+0x30(%rbx), %r14
        mov UC_R8+0x38(%rbx), %r15
        mov UC_RDI(%rbx), %rdi
        mov UC_RSI(%rbx), %rsi
        mov UC_RBP(%rbx), %rbp
        mov UC_RDX(%rbx), %rdx
        mov UC_RAX(%rbx), %rax
        mov UC_RCX(%rbx), %rcx
        mov UC_RBX(%rbx), %rbx
        iretq
        .globl assay_resume_end
assay_resume_end:
        .size assay_resume, . - assay_resume

        .section .note.GNU-stack, "", @progbits
