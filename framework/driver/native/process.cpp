#include "framework/driver/native/process.h"

#include "framework/driver/native/address_space.h"
#include "framework/driver/native/cpu_levels.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <elf.h>
#include <immintrin.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace assay::native {
namespace {

// x87, SSE, AVX, and the three AVX-512 components (SDM volume 1, 13.1); what of them the system
// has enabled.
std::uint64_t vector_components() {
    constexpr std::uint64_t kWanted = 0xe7;
    return processor_xcr0() & kWanted;
}

bool has_xsave_and_fsgsbase() {
    constexpr std::uint64_t kHwcap2FsGsBase = 2;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    __cpuid_count(0xd, 1, a, b, c, d);
    return (a & 1) && getauxval(AT_HWCAP2) & kHwcap2FsGsBase;
}

std::string hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

void note_vdso(MemoryMap& memory, TraceWriter& trace) {
    const std::uint64_t base = getauxval(AT_SYSINFO_EHDR);
    if (base == 0) return;
    const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(base);
    const auto* segments = reinterpret_cast<const Elf64_Phdr*>(base + header.e_phoff);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X)) continue;
        const std::uint64_t end = (base + segments[i].p_memsz + 4095) & ~4095ULL;
        memory.add(base, end, false);
        trace.mapped(base, end, 0, "[vdso]");
    }
}

}  // namespace

bool Process::initialise(int segment_fd) {
    if (!has_xsave_and_fsgsbase()) {
        std::fputs(
            "assay: this processor or kernel lacks xsave or fsgsbase, which the native "
            "driver needs\n",
            stderr);
        return false;
    }
    context = trace.attach(segment_fd);
    if (context == nullptr) return false;
    begin_arena();
    if (!cache.reserve()) return false;
    cache.initialise(*context, trace.spec());
    close(segment_fd);
    context->exit_glue = reinterpret_cast<std::uint64_t>(&assay_exit);
    context->vector_mask = vector_components();
    context->driver_fs = _readfsbase_u64();
    syscall(SYS_arch_prctl, ARCH_SET_GS, context);
    trace.set_pid(getpid());
    signals.initialise();
    return true;
}

void Process::load(const std::string& path, const std::vector<std::string>& argv,
                   char** environment) {
    const trace::CpuLevel level = trace.spec().cpu_level;
    const std::string missing = missing_for(level, processor_cpuid, processor_xcr0());
    if (!missing.empty())
        refuse("--cpu=" + std::string(name_of(level)) + ": this processor lacks " + missing +
               "; use a lower level");
    const LoadError error = load_program(path, cache.open_window(), memory, trace, program);
    if (error.exit_status != 0) refuse(error.reason, error.exit_status);
    note_vdso(memory, trace);
    break_end = program.break_start;
    const std::uint64_t stack = build_stack(program, level, argv, environment);
    if (stack == 0) refuse("no memory for the program's stack");
    context->gpr[RSP] = stack;
    context->rflags = 0x202;
    context->pc = program.start;
    // MXCSR and the x87 control word as a new program finds them (psABI 3.4.1).
    constexpr std::uint32_t kInitialMxcsr = 0x1f80;
    std::memcpy(context->vector_state + 24, &kInitialMxcsr, sizeof kInitialMxcsr);
    trace.set_state(trace::DriverState::kRunning);
}

void Process::refuse(const std::string& reason, int exit_status) {
    trace.refuse(reason);
    _exit(exit_status);
}

void Process::finish(int exit_status) {
    trace.set_state(trace::DriverState::kFinished);
    _exit(exit_status);
}

Block* Process::block_for(std::uint64_t pc, bool by_indirect_branch) {
    if (Block* block = cache.find(pc)) return block;
    if (trace.tables_full()) refuse("the program has more code than the trace segment can hold");
    const Region* region = memory.find(pc);
    if (region == nullptr) {
        signals.raise_fault(SIGSEGV, SEGV_MAPERR, pc);
        return nullptr;
    }
    if (region->writable)
        refuse("code in writable memory at " + hexadecimal(pc) +
               ": generated code is not supported yet");
    Block* block = translator.translate(pc, by_indirect_branch);
    if (block == nullptr) signals.raise_fault(SIGILL, ILL_ILLOPN, pc);
    return block;
}

void Process::enter(std::uint64_t host_address, const Block& block) {
    signals.divert_if_pending(cache.units()[block.unit]);
    context->entry = host_address;
    assay_enter(context);
    signals.left();
}

void Process::run() {
    for (;;) {
        if (signals.pending()) {
            signals.deliver();
            next_ = nullptr;
        }
        Block* block = next_ ? next_ : block_for(context->pc);
        next_ = nullptr;
        if (block == nullptr) continue;
        enter(block->entry, *block);
        handle_exit();
    }
}

void Process::handle_exit() {
    for (;;) {
        const auto id = static_cast<std::uint32_t>(context->exit_id);
        if (id == kFault) return;
        if (id == kIndirectMiss) return indirect_miss();
        Exit exit = cache.exits()[id - kFirstExit];
        switch (exit.kind) {
            case ExitKind::kSyscall:
                return do_syscall(*this, exit.target);
            case ExitKind::kUnsupported: {
                context->pc = exit.target;
                refuse("unsupported instruction at " + hexadecimal(exit.target) + ": " +
                       translator.describe(exit.target));
            }
            case ExitKind::kSpecial:
                context->pc = exit.target;
                run_special(exit);
                break;  // the block has gone on to its own next exit
            case ExitKind::kIdentify:
                context->pc = exit.target;
                run_identification(exit);
                break;
            case ExitKind::kDirect: {
                context->pc = exit.target;
                const std::uint32_t generation = cache.generation();
                next_ = block_for(exit.target);
                if (next_ && generation == cache.generation()) cache.link(id - kFirstExit, *next_);
                return;
            }
        }
    }
}

void Process::indirect_miss() {
    const std::uint64_t target = context->pc;
    if (!translator.planner().flags_cross_calls() && memory.find(target) != nullptr &&
        translator.planner().reads_flags(target, 128)) {
        // Flags may come from before the branch: from now on they are kept across calls too.
        translator.planner().set_flags_cross_calls();
        translator.flush();
    }
    next_ = block_for(target, true);
    if (next_) cache.add_landing(*next_);
}

void Process::run_special(const Exit& exit) {
    Instruction instruction;
    const auto code = memory.code_at(exit.target);
    if (!translator.decoder().decode(code, exit.target, instruction))
        refuse("internal error: instruction at " + hexadecimal(exit.target) + " has changed");
    record_special(*this, instruction, static_cast<std::uint32_t>(exit.site));
    enter(exit.stub, cache.blocks()[exit.block]);
}

void Process::run_identification(const Exit& exit) {
    Instruction instruction;
    if (!translator.decoder().decode(memory.code_at(exit.target), exit.target, instruction))
        refuse("internal error: instruction at " + hexadecimal(exit.target) + " has changed");
    identify(*this, instruction);
    enter(exit.stub, cache.blocks()[exit.block]);
}

}  // namespace assay::native
