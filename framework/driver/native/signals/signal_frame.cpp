#include "framework/driver/native/signals/signal_frame.h"

#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/x86/instruction.h"

#include <cerrno>
#include <cstring>

namespace assay::native {
namespace {

// arch/x86/include/asm/sigframe.h, struct rt_sigframe.
struct SigContext {
    std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    std::uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
    std::uint16_t cs, gs, fs, ss;
    std::uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
};
struct Frame {
    std::uint64_t return_address;
    std::uint64_t uc_flags, uc_link;
    stack_t uc_stack;
    SigContext registers;
    std::uint64_t uc_sigmask;
    siginfo_t info;
};
static_assert(sizeof(SigContext) == 256);
static_assert(offsetof(Frame, info) == 8 + 304);

std::uint64_t SigContext::*const kFields[16] = {
    &SigContext::rax, &SigContext::rcx, &SigContext::rdx, &SigContext::rbx,
    &SigContext::rsp, &SigContext::rbp, &SigContext::rsi, &SigContext::rdi,
    &SigContext::r8,  &SigContext::r9,  &SigContext::r10, &SigContext::r11,
    &SigContext::r12, &SigContext::r13, &SigContext::r14, &SigContext::r15};

constexpr std::uint32_t kMagic1 = 0x46505853, kMagic2 = 0x46505845;  // FP_XSTATE_MAGIC1, 2
constexpr std::size_t kSoftwareBytes = 464;  // offset of struct _fpx_sw_bytes in FXSAVE
constexpr std::size_t kMxcsr = 24, kHeaderBytes = 64;
constexpr std::uint16_t kUserCode = 0x33;    // __USER_CS
constexpr std::uint64_t kX87 = 1, kSse = 2;  // state components: bits of XSTATE_BV

// True if frames hold more state than FXSAVE writes.
bool is_extended(const Context& context) {
    return context.frame_bytes > kLegacyBytes;
}

bool has_pkru(const Context& context) {
    return (context.frame_components & kPkruState) != 0;
}

void fill(Frame& frame, const Context& context, const PendingSignal& signal, std::uint64_t mask) {
    frame.uc_flags = 6;                             // UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
    if (is_extended(context)) frame.uc_flags |= 1;  // UC_FP_XSTATE
    for (unsigned reg = 0; reg < 16; ++reg) frame.registers.*kFields[reg] = context.gpr[reg];
    frame.registers.rip = context.pc;
    frame.registers.eflags = context.rflags;
    frame.registers.cs = kUserCode;
    frame.registers.ss = 0x2b;
    if (signal.fault) {
        frame.registers.err = signal.error;
        frame.registers.trapno = signal.trap;
        frame.registers.cr2 = reinterpret_cast<std::uint64_t>(signal.info.si_addr);
    }
    frame.registers.oldmask = frame.uc_sigmask = mask;
    frame.info = signal.info;
}

// Writes the vector registers in the format of XSAVE, and the words that tell programs its size.
// Since Linux 5.16 frames have these words even without XSAVE (fpu/signal.c, save_sw_bytes()).
bool write_vectors(Context& context, std::uint64_t to, std::uint32_t pkru) {
    write_out_legacy(context.vector_state);
    // Handlers change the legacy part without looking at XSTATE_BV: save_xstate_epilog().
    std::uint64_t present = 0;
    std::memcpy(&present, context.vector_state + kLegacyBytes, sizeof present);
    present = (present & context.frame_components) | kX87 | kSse;
    if (has_pkru(context)) {
        present |= kPkruState;
        std::memcpy(context.vector_state + pkru_offset(), &pkru, sizeof pkru);
    }
    std::memcpy(context.vector_state + kLegacyBytes, &present, sizeof present);
    const auto bytes = static_cast<std::uint32_t>(context.frame_bytes);
    const auto components =
        static_cast<std::uint32_t>(is_extended(context) ? context.frame_components : 0);
    const std::uint32_t software[12] = {kMagic1, bytes + 4, components, 0, bytes};
    return write_target(to, context.vector_state, bytes) &&
           write_target(to + kSoftwareBytes, software, sizeof software) &&
           (!is_extended(context) || write_target(to + bytes, &kMagic2, sizeof kMagic2));
}

// 0 if the frame lacks PKRU: xrstor initialises missing components.
std::uint32_t pkru_in(const Context& context, std::uint64_t present) {
    std::uint32_t pkru = 0;
    if (present & kPkruState) std::memcpy(&pkru, context.vector_state + pkru_offset(), sizeof pkru);
    return pkru;
}

// The kernel's struct _fpx_sw_bytes.
struct SoftwareWords {
    std::uint32_t magic, extended_bytes;
    std::uint64_t components;
    std::uint32_t bytes, unused[7];
};
static_assert(sizeof(SoftwareWords) == 48);

// True if xrstor accepts the area, and so the return from the handler does not fault (SDM volume 1,
// 13.8). xrstor faults on unknown components, on another format, and on reserved bits of MXCSR.
// fxrstor also faults on the reserved bits.
bool is_restorable(const Context& context, const std::uint64_t (&header)[8]) {
    std::uint32_t mxcsr = 0;
    std::memcpy(&mxcsr, context.vector_state + kMxcsr, sizeof mxcsr);
    return (header[0] & ~context.frame_components) == 0 && header[1] == 0 && header[2] == 0 &&
           mxcsr <= 0xffff;
}

// A handler may have replaced the frame by a smaller one. A frame without the software words has
// only the legacy part (check_xstate_in_sigframe()).
bool read_vectors(Context& context, std::uint64_t from) {
    SoftwareWords words;
    if (!read_target(from + kSoftwareBytes, &words, sizeof words)) return false;
    bool extended = is_extended(context) && words.magic == kMagic1 &&
                    words.bytes >= kLegacyBytes + kHeaderBytes &&
                    words.bytes <= context.frame_bytes && words.bytes <= words.extended_bytes;
    std::uint32_t end = 0;
    if (extended && !read_target(from + words.bytes, &end, sizeof end)) return false;
    extended = extended && end == kMagic2;
    if (!read_target(from, context.vector_state, extended ? words.bytes : kLegacyBytes))
        return false;
    std::memset(context.vector_state + kSoftwareBytes, 0, 48);
    std::uint64_t header[8] = {kX87 | kSse};
    if (extended) std::memcpy(header, context.vector_state + kLegacyBytes, sizeof header);
    if (!is_restorable(context, header)) return false;
    std::memset(header + 1, 0, sizeof header - sizeof *header);
    header[0] &= context.frame_components;
    if (extended) header[0] &= words.components;
    if (has_pkru(context)) write_pkru(pkru_in(context, header[0]));
    header[0] &= ~kPkruState;
    std::memcpy(context.vector_state + kLegacyBytes, header, sizeof header);
    return true;
}

void reset_vectors(Context& context) {
    reset_state(context);
    if (has_pkru(context)) write_pkru(context.initial_pkru);
}

}  // namespace

// kernel/signal.c, __on_sig_stack(). sp is the lowest used byte: an empty stack's sp is its end.
bool AlternateStack::contains(std::uint64_t sp) const {
    return sp - reinterpret_cast<std::uint64_t>(stack_.ss_sp) - 1 < stack_.ss_size;
}

bool AlternateStack::is_on(std::uint64_t sp) const {
    return !disarms_itself() && contains(sp);
}

stack_t AlternateStack::as_seen_at(std::uint64_t sp) const {
    stack_t seen = stack_;
    seen.ss_flags &= kFlagBits;
    if (stack_.ss_size == 0)
        seen.ss_flags |= SS_DISABLE;
    else if (is_on(sp))
        seen.ss_flags |= SS_ONSTACK;
    return seen;
}

// The kernel's do_sigaltstack().
long AlternateStack::set(const stack_t& wanted, std::uint64_t sp) {
    constexpr std::size_t kLeast = 2048;  // the kernel's MINSIGSTKSZ
    if (is_on(sp)) return -EPERM;
    const int mode = wanted.ss_flags & ~kFlagBits;
    if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0) return -EINVAL;
    const bool unchanged = wanted.ss_sp == stack_.ss_sp && wanted.ss_size == stack_.ss_size &&
                           wanted.ss_flags == stack_.ss_flags;
    if (unchanged) return 0;  // never too small: a program starts with a stack of size 0
    if (mode != SS_DISABLE && wanted.ss_size < kLeast) return -ENOMEM;
    stack_ = wanted;
    if (mode == SS_DISABLE) stack_ = stack_t{nullptr, wanted.ss_flags, 0};
    return 0;
}

bool push_signal_frame(Context& context, const KernelAction& action, const PendingSignal& signal,
                       std::uint64_t mask, AlternateStack& stack) {
    constexpr std::uint64_t kRedZone = 128;
    std::uint64_t sp = context.gpr[RSP] - kRedZone;
    const bool enters = action.flags & SA_ONSTACK && !stack.is_disabled() && !stack.is_on(sp);
    const bool needs_room = enters || stack.is_on(context.gpr[RSP]);
    if (enters) sp = stack.end();
    const std::uint64_t words = is_extended(context) ? sizeof kMagic2 : 0;
    const std::uint64_t vectors = (sp - context.frame_bytes - words) & ~63ULL;
    sp = ((vectors - sizeof(Frame)) & ~15ULL) - 8;
    if (needs_room && !stack.contains(sp)) return false;

    Frame frame{};
    fill(frame, context, signal, mask);
    frame.return_address = action.restorer;
    frame.uc_stack = stack.as_set();
    frame.registers.fpstate = vectors;
    // The stack may have a protection key that the program denies itself. Since Linux 6.12 the
    // kernel writes the frame nevertheless: sig_prepare_pkru().
    const std::uint32_t pkru = has_pkru(context) ? read_pkru() : 0;
    if (has_pkru(context)) write_pkru(0);
    if (!write_vectors(context, vectors, pkru) || !write_target(sp, &frame, sizeof frame)) {
        if (has_pkru(context)) write_pkru(pkru);
        return false;
    }

    context.gpr[RSP] = sp;
    context.gpr[RDI] = static_cast<std::uint64_t>(signal.number);
    context.gpr[RSI] = sp + offsetof(Frame, info);
    context.gpr[RDX] = sp + offsetof(Frame, uc_flags);
    context.gpr[RAX] = 0;
    context.pc = action.handler;
    context.rflags &= ~0x10500ULL;  // TF, DF, RF
    reset_vectors(context);
    if (stack.disarms_itself()) stack.disable();
    return true;
}

bool goes_on_in_64_bits(const Context& context) {
    constexpr std::uint16_t kUserPrivilege = 3;  // set by the kernel in any case
    std::uint16_t segment = 0;
    constexpr std::size_t kSegment = offsetof(Frame, registers) + offsetof(SigContext, cs);
    const bool there = read_target(context.gpr[RSP] - 8 + kSegment, &segment, sizeof segment);
    return !there || (segment | kUserPrivilege) == kUserCode;
}

// rt_sigreturn(2). The return from the handler has popped the first word of the frame. If the
// vector state cannot be read, the other registers are restored nevertheless.
bool pop_signal_frame(Context& context, std::uint64_t& mask, AlternateStack& stack) {
    Frame frame;
    if (!read_target(context.gpr[RSP] - 8, &frame, sizeof frame)) return false;
    for (unsigned reg = 0; reg < 16; ++reg) context.gpr[reg] = frame.registers.*kFields[reg];
    context.pc = frame.registers.rip;
    constexpr std::uint64_t kUserFlags = 0x50dd5;  // FIX_EFLAGS
    context.rflags = (context.rflags & ~kUserFlags) | (frame.registers.eflags & kUserFlags);
    mask = frame.uc_sigmask & ~kUnblockable;
    const std::uint64_t vectors = frame.registers.fpstate;
    const bool restored = vectors != 0 && read_vectors(context, vectors);
    if (!restored) reset_vectors(context);
    if (!restored && vectors != 0) return false;
    stack.set(frame.uc_stack, context.gpr[RSP]);  // restore_altstack(): errors are ignored
    return true;
}

}  // namespace assay::native
