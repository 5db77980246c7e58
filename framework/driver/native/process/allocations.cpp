#include "framework/driver/native/process/allocations.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/process/process.h"

namespace assay::native {
namespace {

// Arguments in registers: psABI, section 3.2.3.
std::uint64_t argument(const Context& context, unsigned number) {
    constexpr unsigned kRegisters[] = {RDI, RSI, RDX, RCX, R8, R9};
    return context.gpr[kRegisters[number - 1]];
}

std::uint64_t read_word(std::uint64_t address) {
    std::uint64_t word = 0;
    return read_target(address, &word, sizeof word) ? word : 0;
}

}  // namespace

void Allocations::begin(Context& context) {
    if (!wanted()) return;
    interrupted_.clear();
    set_call(context, {});
    note(trace::MemoryUse::kStack, context.gpr[RSP], 0);
    if (context.target_fs != 0) note(trace::MemoryUse::kThreadPointer, context.target_fs, 0);
}

void Allocations::set_call(Context& context, const Call& call) {
    call_ = call;
    context.allocates_above = call.sp;
    context.set_leaves_above();
}

void Allocations::enter(Context& context, const AllocationFunction& function) {
    const std::uint64_t sp = context.gpr[RSP];
    while (!interrupted_.empty() && interrupted_.back().sp < sp) interrupted_.pop_back();
    if (function.freed != 0) {
        const std::uint64_t block = argument(context, function.freed);
        if (block != 0) note(trace::MemoryUse::kFreed, block, 0);
        // The function may call other allocation functions for the same block.
        return set_call(context, {.sp = sp, .return_pc = read_word(sp)});
    }
    Call call{.sp = sp, .return_pc = read_word(sp)};
    call.bytes = function.size != 0 ? argument(context, function.size) : 0;
    if (function.count != 0) {
        const std::uint64_t count = argument(context, function.count);
        if (__builtin_mul_overflow(call.bytes, count, &call.bytes)) call.bytes = 0;
    }
    if (function.before != 0) call.before = argument(context, function.before);
    if (function.result != 0) call.result = argument(context, function.result);
    set_call(context, call);
    mark(trace::kBegins, 0);
}

void Allocations::leave(Context& context) {
    const Call call = call_;
    if (call.sp == 0 || context.gpr[RSP] <= call.sp) return;
    set_call(context, {});
    if (context.gpr[RSP] != call.sp + 8 || context.pc != call.return_pc) return;
    const std::uint64_t block = call.result != 0 ? read_word(call.result) : context.gpr[RAX];
    if (call.bytes == 0 && call.before != 0 && block == 0) {
        note(trace::MemoryUse::kFreed, call.before, 0);  // realloc(block, 0)
    } else if (block != 0 && call.bytes != 0) {
        const bool moved = call.before != 0;
        note(moved ? trace::MemoryUse::kMoved : trace::MemoryUse::kAllocated, block, call.bytes,
             call.before);
    }
}

void Allocations::interrupt(Context& context) {
    if (!wanted() || call_.sp == 0) return;
    interrupted_.push_back(call_);
    set_call(context, {});
}

void Allocations::resume(Context& context) {
    if (!wanted() || call_.sp != 0 || interrupted_.empty()) return;
    const Call call = interrupted_.back();
    if (context.gpr[RSP] > call.sp) return;
    interrupted_.pop_back();
    set_call(context, call);
}

void Allocations::map(std::uint64_t start, std::uint64_t end) {
    if (wanted()) note(trace::MemoryUse::kMapped, start, end - start);
}

void Allocations::map_file(std::uint64_t start, std::uint64_t end, const File& file) {
    if (!wanted()) return;
    const std::optional<std::uint32_t> number = tables_.mapped_file(file.path);
    if (number)
        note(trace::MemoryUse::kFile, start, end - start,
             trace::packed({*number, file.offset, file.executable}));
    else
        map(start, end);
}

void Allocations::unmap(std::uint64_t start, std::uint64_t end) {
    if (wanted()) note(trace::MemoryUse::kUnmapped, start, end - start);
}

void Allocations::remap(std::uint64_t from, std::uint64_t start, std::uint64_t end) {
    if (wanted()) note(trace::MemoryUse::kRemapped, start, end - start, from);
}

void Allocations::set_thread_pointer(std::uint64_t address) {
    if (wanted()) note(trace::MemoryUse::kThreadPointer, address, 0);
}

void Allocations::set_break(std::uint64_t start, std::uint64_t end) {
    if (wanted()) note(trace::MemoryUse::kBreak, start, end - start);
}

void Allocations::look_at_others() {
    if (!wanted() || tables_.allocations() == seen_) return;
    seen_ = tables_.allocations();
    mark(trace::kSees, seen_);
}

void Allocations::note(trace::MemoryUse use, std::uint64_t address, std::uint64_t bytes,
                       std::uint64_t before) {
    const std::uint64_t now = process_.instructions();
    trace_.set_time(now);
    const trace::AllocationEntry entry{address, bytes, before, now, trace_.thread(), use};
    tables_.object_runs().change(entry, [this](const auto& record) {
        trace_.append({&record, 1});
    });
    if (!tables_.add_allocation(entry)) return leave_out_no_more();
    seen_ = tables_.allocations();
    mark(trace::kHas, seen_);
}

void Allocations::leave_out_no_more() {
    tables_.object_runs().stop([this](const auto& record) { trace_.append({&record, 1}); });
}

// A record needs a block, but at the start the trace has no blocks yet.
void Allocations::mark(trace::AllocationMark mark, std::uint64_t value) {
    if (tables_.next_block() == 0) return;
    trace_.append(value, tables_.driver_site(0, TRACE_SITE_ALLOCATION), mark);
}

}  // namespace assay::native
