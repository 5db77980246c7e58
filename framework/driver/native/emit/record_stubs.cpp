#include "framework/driver/native/emit/record_stubs.h"

#include "framework/driver/native/machine/context.h"

#include <algorithm>

namespace assay::native {
namespace {

constexpr std::size_t kTag = offsetof(Context, data_filter);
constexpr std::size_t kWrittenTag = kTag + kWrittenInEntry;
constexpr std::size_t kTouched = kFootprintsOffset;
constexpr std::size_t kSaved = offsetof(Context, stub_gpr);

// The arguments, above the return address.
constexpr Address kAddressArgument{RSP, kNoGpr, 1, 8};
constexpr Address kSiteArgument{RSP, kNoGpr, 1, 16};
constexpr Address kBytesArgument{RSP, kNoGpr, 1, 24};
constexpr Address kDistanceArgument = kBytesArgument;
constexpr std::int32_t kArgumentBytes = 24;

// Puts the cursor into rdx. `cursor`: the register that has it, or kNoGpr for the context.
void save(Assembler& code, unsigned cursor) {
    code.store_context(kSaved, RAX);
    code.store_context(kSaved + 8, RCX);
    code.store_context(kSaved + 16, RDX);
    if (cursor == kNoGpr)
        code.load_context(RDX, kCursorOffset);
    else
        code.registers(kStore, RDX, cursor);
}

void begin(Assembler& code, unsigned cursor) {
    save(code, cursor);
    code.with_memory(kLoad, RAX, kAddressArgument);
    // Faults at the end of the buffer; the handler then changes rdx.
    code.with_memory(kStore, RAX, Address{RDX, kNoGpr, 1, 0});
    code.with_memory(kLoad, RCX, kSiteArgument);
    code.with_memory(kStore, RCX, Address{RDX, kNoGpr, 1, 8});
}

void end(Assembler& code, unsigned cursor) {
    if (cursor == kNoGpr)
        code.store_context(kCursorOffset, RDX);
    else
        code.registers(kStore, cursor, RDX);
    if (cursor != RAX) code.load_context(RAX, kSaved);
    if (cursor != RCX) code.load_context(RCX, kSaved + 8);
    if (cursor != RDX) code.load_context(RDX, kSaved + 16);
    code.ret();
}

// Makes the line in rax the most recent one of its set. rcx gets the set's offset. With `compare`,
// the zero flag is set if the line was the most recent one already.
void touch(Assembler& code, std::int32_t set_mask, bool compare) {
    code.registers(0x89, RCX, RAX, false);
    code.group1(kAnd, RCX, set_mask, false);
    if (compare) code.with_context(kCompareMemory, RAX, kTag, true, RCX);
    code.with_context(kStore, RAX, kTag, true, RCX);
}

// Always records the reference. Before it, records the footprints of the most recent lines of the
// sets of its first and last byte, even if these are its own lines.
void emit_footprint_stub(Assembler& code, const trace::Filter& filter, unsigned cursor) {
    const auto at = [](unsigned record, std::int32_t offset) {
        return Address{RDX, kNoGpr, 1, static_cast<std::int32_t>(record) * kRecordBytes + offset};
    };
    save(code, cursor);
    code.with_memory(kLoad, RAX, kAddressArgument);
    code.with_memory(kStore, RAX, at(2, 0));  // stored first, as in begin()
    code.with_memory(kLoad, RCX, kSiteArgument);
    code.with_memory(kStore, RCX, at(2, 8));
    code.lea(RCX, Address{RCX, kNoGpr, 1, -1});
    for (const unsigned line : {0U, 1U}) code.with_memory(kStore, RCX, at(line, 8));
    for (const unsigned line : {0U, 1U}) {
        if (line == 1) {
            code.with_memory(kLoad, RAX, kAddressArgument);
            code.with_memory(kAddMemory, RAX, kBytesArgument);
            code.lea(RAX, Address{RAX, kNoGpr, 1, -1});
        }
        code.group1(kAnd, RAX, -static_cast<std::int32_t>(filter.line_bytes), true);
        touch(code, data_set_mask(filter), false);
        code.with_context(kLoad, RAX, kTouched, true, RCX);
        code.with_memory(kStore, RAX, at(line, 0));
        code.with_memory(kStore, RCX, at(line, 12), false);
        code.with_context(kStoreConstant, 0, kTouched, true, RCX);
        code.u32(0);
    }
    code.lea(RDX, at(3, 0));
    end(code, cursor);
}

// Always records the reference, because it may be a write that must be recorded. Its lines then
// count as not written, so that the next write is also recorded.
void emit_first_write_stub(Assembler& code, const trace::Filter& filter, unsigned cursor) {
    begin(code, cursor);
    for (const bool last : {false, true}) {
        if (last) {
            code.with_memory(kLoad, RAX, kAddressArgument);
            code.with_memory(kAddMemory, RAX, kBytesArgument);
            code.lea(RAX, Address{RAX, kNoGpr, 1, -1});
        }
        code.group1(kAnd, RAX, -static_cast<std::int32_t>(filter.line_bytes), true);
        touch(code, data_set_mask(filter), false);
        code.with_context(kStoreConstant, 0, kWrittenTag, true, RCX);
        code.u32(0);
    }
    code.lea(RDX, Address{RDX, kNoGpr, 1, kRecordBytes});
    end(code, cursor);
}

}  // namespace

void emit_reference_stub(Assembler& code, const trace::Spec& spec, unsigned cursor) {
    const trace::Filter& filter = spec.data;
    if (filter.sets == 0) return;
    if (spec.data.footprints()) return emit_footprint_stub(code, filter, cursor);
    if (spec.data.first_writes()) return emit_first_write_stub(code, filter, cursor);
    const auto line = static_cast<std::int32_t>(filter.line_bytes);
    const std::int32_t set_mask = data_set_mask(filter);
    begin(code, cursor);
    code.registers(0x89, RCX, RAX, false);
    code.group1(kAnd, RCX, line - 1, false);
    code.with_memory(kAddMemory, RCX, kBytesArgument, false);
    code.group1(kCompare, RCX, line, false);
    const std::uint64_t straddles = code.jump_if(kAbove, code.address);
    code.group1(kAnd, RAX, -line, true);
    touch(code, set_mask, true);
    code.lea(RAX, Address{RDX, kNoGpr, 1, kRecordBytes});
    code.move_if(kNotEqual, RDX, RAX);
    end(code, cursor);

    // Both lines become the most recent ones of their sets.
    code.patch(straddles, code.address);
    code.group1(kAnd, RAX, -line, true);
    touch(code, set_mask, true);
    const std::uint64_t first_is_new = code.jump_if(kNotEqual, code.address);
    code.group1(kAdd, RAX, line, true);
    touch(code, set_mask, true);
    code.lea(RAX, Address{RDX, kNoGpr, 1, kRecordBytes});
    code.move_if(kNotEqual, RDX, RAX);
    end(code, cursor);

    code.patch(first_is_new, code.address);
    code.group1(kAdd, RAX, line, true);
    touch(code, set_mask, false);
    code.lea(RDX, Address{RDX, kNoGpr, 1, kRecordBytes});
    end(code, cursor);
}

namespace {

void change_argument(Assembler& code, const Address& argument, unsigned operation, int value) {
    code.with_memory(kGroup1Byte, operation, argument);
    code.u8(static_cast<unsigned>(value));
}

void push(Assembler& code, const Address& memory) {
    code.with_memory(0xff, 6, memory, false);
}

void pop(Assembler& code, const Address& memory) {
    code.with_memory(0x8f, 0, memory, false);
}

void drop_arguments(Assembler& code) {
    code.lea(RSP, Address{RSP, kNoGpr, 1, kArgumentBytes});
}

// One call for each reference, because those of an unaligned series may lie in two lines.
void emit_each_of_series(Assembler& code, std::uint64_t reference_stub) {
    constexpr int kStep = 8;
    const std::uint64_t next = code.address;
    code.push_constant(kStep);
    // Pushes the site, then the address: both are at the same distance when they are pushed.
    for (int i = 0; i < 2; ++i) push(code, Address{RSP, kNoGpr, 1, kSiteArgument.disp + 8});
    code.call(reference_stub);
    drop_arguments(code);
    change_argument(code, kSiteArgument, kAdd, 1);
    change_argument(code, kDistanceArgument, kCompare, 0);
    const std::uint64_t more = code.short_jump_if(kNotEqual);
    code.ret();

    code.patch_short(more);
    const std::uint64_t upwards = code.short_jump_if(kGreater);
    change_argument(code, kAddressArgument, kAdd, -kStep);
    change_argument(code, kDistanceArgument, kAdd, kStep);
    code.jump(next);
    code.patch_short(upwards);
    change_argument(code, kAddressArgument, kAdd, kStep);
    change_argument(code, kDistanceArgument, kAdd, -kStep);
    code.jump(next);
}

// Keeps the record at rdx if touch() has just made a line the most recent one of its set.
void keep_if_new(Assembler& code) {
    code.lea(RAX, Address{RDX, kNoGpr, 1, kRecordBytes});
    code.move_if(kNotEqual, RDX, RAX);
}

}  // namespace

// Records the references of the series that are the first in their line.
void emit_series_stub(Assembler& code, const trace::Spec& spec, unsigned cursor,
                      std::uint64_t reference_stub) {
    const trace::Filter& filter = spec.data;
    if (filter.sets == 0 || spec.data.footprints()) return;
    const auto line = static_cast<std::int32_t>(filter.line_bytes);
    const std::int32_t set_mask = data_set_mask(filter);
    code.store_context(kSaved, RAX);
    code.with_memory(kLoad, RAX, kAddressArgument);
    code.test_bits(RAX, 7);
    code.load_context(RAX, kSaved);
    const std::uint64_t misaligned = code.jump_if(kNotEqual, code.address);
    begin(code, cursor);
    code.group1(kAnd, RAX, -line, true);
    touch(code, set_mask, true);
    keep_if_new(code);

    code.with_memory(kLoad, RCX, kAddressArgument);
    code.with_memory(kAddMemory, RCX, kDistanceArgument);
    code.with_memory(kLoad, RAX, kAddressArgument);
    for (const unsigned end : {RAX, RCX}) code.group1(kAnd, end, -line, true);
    code.registers(0x39, RCX, RAX);  // cmp
    const std::uint64_t differs = code.short_jump_if(kNotEqual);
    end(code, cursor);

    // The second line's first reference is at its begin in an upward series, otherwise at its end.
    code.patch_short(differs);
    code.lea(RAX, Address{RAX, kNoGpr, 1, -8});
    code.move_if(kAbove, RAX, RCX);
    code.with_memory(kStore, RAX, Address{RDX, kNoGpr, 1, 0});
    code.registers(kStore, RCX, RAX);
    code.with_memory(kSubtractMemory, RCX, kAddressArgument);
    const std::uint64_t upwards = code.short_jump_if(kNotSign);
    code.registers(0xf7, RCX, 3);  // neg
    code.patch_short(upwards);
    code.registers(0xc1, RCX, 5);  // shr
    code.u8(3);
    code.with_memory(kAddMemory, RCX, kSiteArgument);
    code.with_memory(kStore, RCX, Address{RDX, kNoGpr, 1, 8});
    code.group1(kAnd, RAX, -line, true);
    touch(code, set_mask, true);
    keep_if_new(code);
    end(code, cursor);

    code.patch(misaligned, code.address);
    emit_each_of_series(code, reference_stub);
}

// The only argument is the site, above the return address.
void emit_miss_stub(Assembler& code, const trace::Spec& spec, unsigned address, unsigned spare,
                    unsigned bytes, std::uint64_t reference_stub) {
    const auto base = static_cast<std::uint8_t>(spare);
    std::uint64_t misaligned = 0;
    if (bytes != 1) {
        code.test_bits(address, bytes - 1);
        misaligned = code.short_jump_if(kNotEqual);
    }
    code.load_context(spare, kCursorOffset);
    code.with_memory(kStore, address, Address{base, kNoGpr, 1, 0});  // stored first, as in begin()
    push(code, Address{RSP, kNoGpr, 1, 8});
    pop(code, Address{base, kNoGpr, 1, 8});
    code.prefetch_for_write(Address{base, kNoGpr, 1, kPrefetched});
    code.lea(spare, Address{base, kNoGpr, 1, kRecordBytes});
    code.store_context(kCursorOffset, spare);
    code.registers(0x89, spare, address, false);
    code.group1(kAnd, address, -static_cast<std::int32_t>(spec.data.line_bytes), true);
    code.group1(kAnd, spare, data_set_mask(spec.data), false);
    code.with_context(kStore, address, kTag, true, base);
    code.ret();
    if (misaligned == 0) return;

    code.patch_short(misaligned);
    code.push_constant(bytes);
    push(code, Address{RSP, kNoGpr, 1, 16});
    code.push(address);
    code.call(reference_stub);
    drop_arguments(code);
    code.ret();
}

namespace {

std::uint64_t function_of(CallTreeStub stub) {
    switch (stub) {
        case kCallStub:
            return reinterpret_cast<std::uint64_t>(assay_tree_call);
        case kJumpStub:
            return reinterpret_cast<std::uint64_t>(assay_tree_jump);
        case kLineStub:
            return reinterpret_cast<std::uint64_t>(assay_tree_line);
        default:
            return reinterpret_cast<std::uint64_t>(assay_tree_arrive);
    }
}

}  // namespace

void emit_object_stub(Assembler& code, driver::ObjectRegions* regions) {
    // Above the saved registers and the return address.
    constexpr auto kArguments = static_cast<std::int32_t>((kChangedByCalls.size() + 1) * 8);
    constexpr std::array<unsigned, 4> kRegisters{RSI, RCX, R8, R9};
    for (const unsigned reg : kChangedByCalls) code.push(reg);
    code.load_context(RDX, kCursorOffset);
    // Room for two records: the store faults at the buffer's end, and the handler changes rdx.
    code.with_memory(kStore, RDX, Address{RDX, kNoGpr, 1, kRecordBytes});
    code.prefetch_for_write(Address{RDX, kNoGpr, 1, kPrefetched});
    for (std::size_t i = 0; i < kRegisters.size(); ++i)
        code.with_memory(kLoad, kRegisters[i],
                         Address{RSP, kNoGpr, 1, kArguments + static_cast<std::int32_t>(i) * 8});
    code.move_imm64(RDI, reinterpret_cast<std::uint64_t>(regions));
    code.move_imm64(RAX, reinterpret_cast<std::uint64_t>(&assay_object_reference));
    code.registers(0xff, RAX, 2, false);  // call
    for (auto reg = kChangedByCalls.rbegin(); reg != kChangedByCalls.rend(); ++reg) code.pop(*reg);
    code.ret();
}

void emit_call_tree_stub(Assembler& code, CallTreeStub stub) {
    // Above the saved registers and the return address.
    constexpr auto kArguments = static_cast<std::int32_t>((kChangedByCalls.size() + 1) * 8);
    for (const unsigned reg : kChangedByCalls) code.push(reg);
    code.with_memory(kLoad, RDX, Address{RSP, kNoGpr, 1, kArguments});
    code.with_memory(kLoad, RSI, Address{RSP, kNoGpr, 1, kArguments + 8});
    code.load_context(RDI, offsetof(Context, call_tree));
    code.load_context(RCX, offsetof(Context, target_sp));
    code.move_imm64(RAX, function_of(stub));
    code.registers(0xff, RAX, 2, false);  // call
    for (auto reg = kChangedByCalls.rbegin(); reg != kChangedByCalls.rend(); ++reg) code.pop(*reg);
    code.u8(0xc3);  // ret
}

}  // namespace assay::native
