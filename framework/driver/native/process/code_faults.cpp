#include "framework/driver/native/process/code_faults.h"

#include "framework/driver/native/emit/assembler.h"

#include <cstring>
#include <mutex>

namespace assay::native {
namespace {

// Processors report int1 after the instruction, like int3. Some hypervisors report it before.
bool is_at_int1(std::uint64_t pc) {
    constexpr std::uint8_t kInt1 = 0xf1, kInt3 = 0xcc;
    const auto* code = reinterpret_cast<const std::uint8_t*>(pc);
    return code[0] == kInt1 && code[-1] != kInt1 && code[-1] != kInt3;
}

}  // namespace

// The fault came from a store at the end of the buffer: mov [register + displacement], reg or
// constant. It is the first store of a record, or the last of several.
bool CodeFaults::continue_in_next_buffer(const siginfo_t& info, bool adapts,
                                         ucontext_t* interrupted) {
    const auto address = reinterpret_cast<std::uint64_t>(info.si_addr);
    if (!trace_.is_behind_buffer(address)) return false;
    const auto* code = reinterpret_cast<const std::uint8_t*>(pc_of(interrupted));
    unsigned rex = 0;
    if ((*code & 0xf0) == 0x40) rex = *code++;
    if (code[0] != kStore && code[0] != kStoreConstant) return false;
    const unsigned base = (code[1] & 7U) | (rex & 1U) << 3;
    greg_t& cursor = interrupted->uc_mcontext.gregs[kGregs[base]];
    cursor = static_cast<greg_t>(trace_.next_buffer(static_cast<std::uint64_t>(cursor)));
    if (adapts && code_.lock.try_lock()) {
        code_.translator.adapt(trace_.last_buffer());
        for (const trace_record_t& record : code_.trace.object_runs().take_ended()) {
            std::memcpy(reinterpret_cast<void*>(cursor), &record, sizeof record);
            cursor += sizeof record;
        }
        code_.lock.unlock();
    }
    return true;
}

// An instruction that writes to its own page runs alone, because it may change the next one.
bool CodeFaults::let_write(Context& context, const siginfo_t& info, ucontext_t* interrupted) {
    const auto address = reinterpret_cast<std::uint64_t>(info.si_addr);
    const std::uint64_t host_pc = pc_of(interrupted);
    const bool translated = code_.cache.contains(host_pc);
    // Otherwise the driver copies memory and already holds the lock.
    std::unique_lock guard(code_.lock, std::defer_lock);
    if (translated) guard.lock();
    const std::uint64_t page = address & ~(kPage - 1);
    const RecoveryPoint* point = code_.cache.point_at(host_pc);
    const bool own = point != nullptr && code_.cache.reaches_into(host_pc, page);
    if (!code_.watch.let_write(address)) return false;
    code_.translator.invalidate(page, page + kPage);
    if (!own) return true;
    leave_before(context, *point, host_pc, false, interrupted);
    runs_alone_ = true;
    return true;
}

bool CodeFaults::leave_at_fault(Context& context, int number, std::uint64_t host_pc, bool again,
                                siginfo_t& info, ucontext_t* interrupted) {
    const std::lock_guard guard(code_.lock);
    // A breakpoint is reported after the instruction.
    const unsigned behind = number == SIGTRAP && !is_at_int1(host_pc) ? 1 : 0;
    const RecoveryPoint* point = code_.cache.point_at(host_pc - behind);
    if (point == nullptr) return false;
    leave_before(context, *point, host_pc - behind, !again, interrupted);
    if (again) return true;
    context.pc += behind;
    // The access was below the stack: a stack overflow.
    if (number == SIGSEGV && info.si_code == SEGV_ACCERR &&
        program_.is_below_stack(reinterpret_cast<std::uint64_t>(info.si_addr)))
        info.si_code = SEGV_MAPERR;
    if (number == SIGFPE || number == SIGILL) info.si_addr = reinterpret_cast<void*>(context.pc);
    return true;
}

// Even if the block has not counted itself, its first instructions were executed in this context.
void CodeFaults::count_left_block(const Context& context, std::uint32_t block,
                                  std::uint32_t executed, bool counted) {
    const trace::ContextNode* const node = context.call_tree ? context.calls.node : nullptr;
    code_.trace.partial({.block = block,
                         .executed = executed,
                         .counted = counted ? 1U : 0U,
                         .slot = trace_.slot(),
                         .node = node ? node->number : 0});
    if (node == nullptr || counted) return;
    if (const std::uint32_t word = code_.trace.context_word(block); word != 0)
        ++*reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uint64_t>(node) +
                                            trace::word_offset(word));
}

// Leaves translated code before the instruction, or after it if the event is reported there.
void CodeFaults::leave_before(Context& context, const RecoveryPoint& point, std::uint64_t host_pc,
                              bool executed, ucontext_t* interrupted) {
    auto& gregs = interrupted->uc_mcontext.gregs;
    if (point.cursor != kNoGpr)
        trace_.set_cursor(static_cast<std::uint64_t>(gregs[kGregs[point.cursor]]));
    for (unsigned reg = 0; reg < 16; ++reg)
        if (point.saved & bit(reg)) gregs[kGregs[reg]] = static_cast<greg_t>(context.gpr[reg]);
    if (point.displaced_by != Segment::kFlat)
        gregs[kGregs[point.displaced]] -=
            static_cast<greg_t>(context.segment_base(point.displaced_by));
    // The push of the return address has failed.
    if (point.rcx_is_target) gregs[REG_RCX] = static_cast<greg_t>(context.indirect_rcx);
    const std::uint32_t count = point.executed - (executed ? 0U : 1U);
    const Block& block = code_.cache.block_at(host_pc, point.block);
    if (collects(block.version) && (point.counted ? count != block.instr_count : count != 0))
        count_left_block(context, block.id, count, point.counted);
    if (collects(block.version) && count != block.instr_count &&
        code_.trace.captures(trace::kCaptureBlocks))
        trace_.append(count, code_.trace.driver_site(block.first_instr, TRACE_SITE_BLOCK_LEFT));
    if (block.counts_at_exits)
        context.countdown -= block.position() + count;
    else if (code_.regions.counts() || code_.regions.samples())
        context.countdown += block.instr_count - count;
    intervals_.left_early(context, block, count, point.counted);
    context.pc = block.pc + point.pc_offset;
    context.exit_id = kInterrupted;
    // Translated code has the same way out: it stores the registers in the context.
    set_pc(interrupted, context.exit_glue);
    set_trap_flag(interrupted, false);
}

}  // namespace assay::native
