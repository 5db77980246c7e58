// Instrumentation of instruction fetches and data references.
//
// A filter is a table with the most recently referenced line of each set. A reference to that
// line needs no record: a cache simulation with at least that many sets would find it in the
// most recent way and change nothing. Everything else is appended to the trace buffer.
//
//   data_filter[address & set_mask]   address of the line, or anything that no line's address is
//   fetch_filter[line % sets]         a tag of the line
//
// Three ways to check a data reference, by what is known of it:
//   constant address   compare and branch; nearly always the most recent line
//   stack pointer      compute, compare and branch
//   anything else      no branch, which would often be mispredicted: the record is always
//                      written, and the cursor moves on only if the line is a new one
//
// The end of the buffer is a page that cannot be written: the store that begins a record faults
// there, and the handler puts the start of the next buffer into the register it used.
#include "framework/driver/native/emitter.h"

#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint32_t kMostFetchSets = 1024;
constexpr std::size_t kTag = offsetof(Context, data_filter);

enum Group1 : unsigned { kAdd = 0, kAnd = 4, kCompare = 7 };
constexpr unsigned kLoad = 0x8b, kStore = 0x89, kCompareMemory = 0x3b;

}  // namespace

struct Emitter::Operands {
    const Item& item;
    const MemoryReference& reference;
    Address address;
    GprMask address_gprs;
    std::uint32_t bytes;  // at most a line
    std::uint32_t site;
    unsigned a = 0, b = 0, cursor = kNoGpr;

    // The low address bits that are clear if the reference is aligned to its size, and so does
    // not straddle; all bits within a line if its size is no power of two.
    std::uint32_t alignment(std::uint32_t line) const {
        return (bytes & (bytes - 1)) == 0 ? bytes - 1 : line - 1;
    }
};

std::uint32_t Emitter::new_site(unsigned instr, unsigned bytes, unsigned kind, unsigned operand) {
    if (trace_) trace_->add_site(global_instr(instr), bytes, kind, operand);
    return next_site_++;
}

std::int32_t Emitter::set_mask() const {
    const std::uint32_t span = std::min(kFilterSpan, spec_.data.sets * spec_.data.line_bytes);
    return static_cast<std::int32_t>(span - std::min(span, spec_.data.line_bytes));
}

// lahf and seto keep CF PF AF ZF SF OF in ah and al.
void Emitter::save_flags(Assembler& code, bool rax_free) {
    if (!rax_free) code.store_context(offsetof(Context, flags_rax), RAX);
    code.u8(0x9f);  // lahf
    code.u8(0x0f);  // seto al
    code.u8(0x90);
    code.u8(0xc0);
}

void Emitter::restore_flags(Assembler& code, bool rax_free) {
    code.u8(0x04);  // add al, 0x7f: overflows if al is 1
    code.u8(0x7f);
    code.u8(0x9e);  // sahf
    if (!rax_free) code.load_context(RAX, offsetof(Context, flags_rax));
}

void Emitter::emit_append(Assembler& code, unsigned cursor, unsigned value, std::uint32_t site) {
    const auto base = static_cast<std::uint8_t>(cursor);
    code.with_memory(kStore, value, Address{base, kNoGpr, 1, 0});
    code.with_memory(0xc7, 0, Address{base, kNoGpr, 1, 8});
    code.u32(site);
}

// --- Fetches.

void Emitter::emit_fetch_check(Assembler& code, unsigned instr, bool flags_live) {
    const Instruction& instruction = plan_.instructions[instr];
    const std::uint32_t line_bytes = spec_.fetch.line_bytes;
    const std::uint32_t sets = std::min(spec_.fetch.sets, kMostFetchSets);
    const std::uint64_t last = (instruction.next_pc() - 1) / line_bytes;
    const bool first_in_block = instr == plan_.blocks[block_index_].first;
    const std::uint64_t first = first_in_block ? instruction.pc / line_bytes : last;
    const std::uint32_t site = new_site(instr, instruction.form->length, TRACE_SITE_FETCH, 0);

    // In a cold entry nothing is borrowed yet; in hot code rax may be.
    const bool rax_free = scratch_.is_free(RAX);
    if (flags_live) save_flags(code, rax_free);
    std::uint64_t misses[2];
    unsigned miss_count = 0;
    for (std::uint64_t line = first; line <= last; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        code.with_context(0x81, 7, entry, false);  // cmp dword, imm32
        code.u32(cache_.line_tag(line));
        misses[miss_count++] = code.jump_if(kNotEqual, code.address);
    }
    const std::uint64_t back = code.address;
    if (flags_live) restore_flags(code, rax_free);

    // Out of line, but not within the code that jumps there: the cold entry goes on first.
    Assembler& cold = cold_;
    const std::uint64_t skip = &code == &cold ? cold.jump(cold.address) : 0;
    for (unsigned i = 0; i < miss_count; ++i) code.patch(misses[i], cold.address);
    for (std::uint64_t line = first; line <= last; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        cold.with_context(0xc7, 0, entry, false);
        cold.u32(cache_.line_tag(line));
    }
    emit_fetch_record(instruction.pc, site, back);
    if (skip != 0) cold.patch(skip, cold.address);
}

// Only moves: the flags stay as they are.
void Emitter::emit_fetch_record(std::uint64_t pc, std::uint32_t site, std::uint64_t back) {
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const unsigned cursor = cached ? unsigned{scratch_.cached_cursor()} : unsigned{RDX};
    const unsigned value = cursor == RCX ? unsigned{RDX} : unsigned{RCX};
    cold_.store_context(offsetof(Context, stub_scratch), value);
    if (!cached) {
        cold_.store_context(offsetof(Context, stub_cursor), cursor);
        cold_.load_context(cursor, kCursorOffset);
    }
    cold_.load_address(value, pc);
    emit_append(cold_, cursor, value, site);
    cold_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, 16});
    if (!cached) {
        cold_.store_context(kCursorOffset, cursor);
        cold_.load_context(cursor, offsetof(Context, stub_cursor));
    }
    cold_.load_context(value, offsetof(Context, stub_scratch));
    cold_.jump(back);
}

// --- Data references.

void Emitter::emit_data(const Item& item) {
    const Instruction& instruction = plan_.instructions[item.instr];
    const MemoryReference& reference = instruction.form->references[item.reference];
    const std::int64_t disp = (reference.encoded ? instruction.displacement() : 0) + reference.bias;
    if (reference.base == kRip)
        return emit_constant_reference(item, reference,
                                       instruction.next_pc() + static_cast<std::uint64_t>(disp));
    if (reference.base == kNoGpr && reference.index == kNoGpr && !reference.fs)
        return emit_constant_reference(item, reference, static_cast<std::uint64_t>(disp));

    const std::uint32_t bytes =
        spec_.data.line_bytes ? std::min<std::uint32_t>(reference.bytes, spec_.data.line_bytes)
                              : reference.bytes;
    Operands operands{
        item,
        reference,
        Address{reference.base, reference.index, reference.scale, static_cast<std::int32_t>(disp)},
        0,
        bytes,
        new_site(item.instr, bytes, reference.kind, item.reference)};
    if (reference.base < 16) operands.address_gprs |= bit(reference.base);
    if (reference.index < 16) operands.address_gprs |= bit(reference.index);

    auto exclude = operands.address_gprs;
    if (item.flags_live) exclude |= bit(RAX);
    const bool stack = reference.base == RSP && reference.index == kNoGpr;
    if (!stack || spec_.data.sets == 0) operands.cursor = scratch_.cursor(exclude, item.position);
    operands.a = scratch_.acquire(exclude, item.position);
    operands.b = scratch_.acquire(static_cast<GprMask>(exclude | bit(operands.a)), item.position);
    if (spec_.data.sets == 0)
        emit_unfiltered_reference(operands);
    else if (stack)
        emit_stack_reference(operands);
    else
        emit_general_reference(operands);
}

void Emitter::emit_address(Assembler& code, unsigned reg, const Operands& operands) {
    code.lea(reg, operands.address, !operands.reference.address32);
    // Not add: the flags may be live here.
    if (operands.reference.fs) {
        code.load_context(operands.b, offsetof(Context, target_fs));
        code.lea(reg, Address{static_cast<std::uint8_t>(reg), static_cast<std::uint8_t>(operands.b),
                              1, 0});
    }
}

void Emitter::emit_unfiltered_reference(const Operands& operands) {
    emit_address(hot_, operands.a, operands);
    emit_append(hot_, operands.cursor, operands.a, operands.site);
    hot_.lea(operands.cursor, Address{static_cast<std::uint8_t>(operands.cursor), kNoGpr, 1, 16});
}

void Emitter::emit_general_reference(const Operands& operands) {
    const unsigned a = operands.a, b = operands.b;
    const auto index = static_cast<std::uint8_t>(b);
    const std::uint32_t alignment = operands.alignment(spec_.data.line_bytes);
    const bool rax_free = scratch_.is_free(RAX);

    emit_address(hot_, a, operands);
    emit_append(hot_, operands.cursor, a, operands.site);
    if (operands.item.flags_live) save_flags(hot_, rax_free);
    hot_.registers(0x89, b, a, false);
    if (alignment != spec_.data.line_bytes - 1)
        hot_.group1(kAnd, a, line_mask() | static_cast<std::int32_t>(alignment), true);
    hot_.group1(kAnd, b, set_mask(), false);
    std::uint64_t misaligned = 0;
    if (alignment != 0) {
        hot_.test_bits(a, alignment);
        misaligned = hot_.jump_if(kNotEqual, hot_.address);
    }
    hot_.with_context(kCompareMemory, a, kTag, true, index);
    hot_.with_context(kStore, a, kTag, true, index);
    hot_.lea(a, Address{static_cast<std::uint8_t>(operands.cursor), kNoGpr, 1, 16});
    hot_.move_if(kNotEqual, operands.cursor, a);
    const std::uint64_t back = hot_.address;
    if (operands.item.flags_live) restore_flags(hot_, rax_free);
    if (misaligned != 0) {
        hot_.patch(misaligned, cold_.address);
        emit_misaligned(operands, back);
    }
}

// A reference that is not aligned to its size: within one line, as above; else both lines become
// the most recent ones of their sets.
void Emitter::emit_misaligned(const Operands& operands, std::uint64_t back) {
    const unsigned a = operands.a, b = operands.b;
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    const auto cursor = static_cast<std::uint8_t>(operands.cursor);
    cold_.with_memory(kLoad, a, Address{cursor, kNoGpr, 1, 0});
    cold_.group1(kAnd, a, line - 1, false);
    cold_.group1(kCompare, a, line - static_cast<std::int32_t>(operands.bytes), false);
    const std::uint64_t straddles = cold_.jump_if(kAbove, cold_.address);
    cold_.with_memory(kLoad, a, Address{cursor, kNoGpr, 1, 0});
    cold_.group1(kAnd, a, line_mask(), true);
    cold_.with_context(kCompareMemory, a, kTag, true, static_cast<std::uint8_t>(b));
    cold_.with_context(kStore, a, kTag, true, static_cast<std::uint8_t>(b));
    cold_.lea(a, Address{cursor, kNoGpr, 1, 16});
    cold_.move_if(kNotEqual, operands.cursor, a);
    cold_.jump(back);
    cold_.patch(straddles, cold_.address);
    cold_.with_memory(kLoad, a, Address{cursor, kNoGpr, 1, 0});
    emit_straddling_update(cold_, a, b);
    cold_.lea(operands.cursor, Address{cursor, kNoGpr, 1, 16});
    cold_.jump(back);
}

// a: an address in the first line. Destroys both registers.
void Emitter::emit_straddling_update(Assembler& code, unsigned a, unsigned b) {
    code.group1(kAnd, a, line_mask(), true);
    for (unsigned i = 0; i < 2; ++i) {
        if (i == 1) code.group1(kAdd, a, static_cast<std::int32_t>(spec_.data.line_bytes), true);
        code.registers(0x89, b, a, false);
        code.group1(kAnd, b, set_mask(), false);
        code.with_context(kStore, a, kTag, true, static_cast<std::uint8_t>(b));
    }
}

void Emitter::emit_stack_reference(const Operands& operands) {
    const unsigned a = operands.a, b = operands.b;
    const auto index = static_cast<std::uint8_t>(b);
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    const std::uint32_t alignment = operands.alignment(spec_.data.line_bytes);
    const bool rax_free = scratch_.is_free(RAX);

    emit_address(hot_, a, operands);
    if (operands.item.flags_live) save_flags(hot_, rax_free);
    hot_.registers(0x89, b, a, false);
    if (alignment != spec_.data.line_bytes - 1)
        hot_.group1(kAnd, a, line_mask() | static_cast<std::int32_t>(alignment), true);
    hot_.group1(kAnd, b, set_mask(), false);
    hot_.with_context(kCompareMemory, a, kTag, true, index);
    const std::uint64_t differs = hot_.jump_if(kNotEqual, hot_.address);
    const std::uint64_t back = hot_.address;
    if (operands.item.flags_live) restore_flags(hot_, rax_free);

    // The line is a new one, or the reference is not aligned. rsp has not changed.
    hot_.patch(differs, cold_.address);
    cold_.lea(a, operands.address);
    std::uint64_t straddles = 0;
    if (alignment != 0) {
        cold_.registers(0x89, b, a, false);
        cold_.group1(kAnd, b, line - 1, false);
        cold_.group1(kCompare, b, line - static_cast<std::int32_t>(operands.bytes), false);
        straddles = cold_.jump_if(kAbove, cold_.address);
        cold_.registers(0x89, b, a, false);
        cold_.group1(kAnd, b, set_mask(), false);
    }
    cold_.group1(kAnd, a, line_mask(), true);
    cold_.with_context(kCompareMemory, a, kTag, true, index);
    cold_.patch(cold_.jump_if(kEqual, cold_.address), back);
    cold_.with_context(kStore, a, kTag, true, index);
    const std::uint64_t append = alignment != 0 ? cold_.jump(cold_.address) : 0;
    if (straddles != 0) {
        cold_.patch(straddles, cold_.address);
        emit_straddling_update(cold_, a, b);
        cold_.patch(append, cold_.address);
    }
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const unsigned cursor = cached ? unsigned{scratch_.cached_cursor()} : b;
    if (!cached) cold_.load_context(cursor, kCursorOffset);
    cold_.lea(a, operands.address);
    emit_append(cold_, cursor, a, operands.site);
    cold_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, 16});
    if (!cached) cold_.store_context(kCursorOffset, cursor);
    cold_.jump(back);
}

// An address known now: so are its set and whether it straddles.
void Emitter::emit_constant_reference(const Item& item, const MemoryReference& reference,
                                      std::uint64_t address) {
    const std::uint32_t line = spec_.data.line_bytes;
    const std::uint32_t bytes =
        line ? std::min<std::uint32_t>(reference.bytes, line) : reference.bytes;
    const std::uint32_t site = new_site(item.instr, bytes, reference.kind, item.reference);
    const GprMask exclude = item.flags_live ? bit(RAX) : GprMask{0};
    const unsigned a = scratch_.acquire(exclude, item.position);
    const std::uint64_t first = line ? address & ~std::uint64_t{line - 1} : 0;
    const bool straddles = line != 0 && ((address + bytes - 1) & ~std::uint64_t{line - 1}) != first;
    const auto entry = [this](std::uint64_t where) {
        return kTag + (where & static_cast<std::uint64_t>(set_mask()));
    };
    if (spec_.data.sets == 0 || straddles) {
        const unsigned cursor =
            scratch_.cursor(static_cast<GprMask>(exclude | bit(a)), item.position);
        for (unsigned i = 0; straddles && i < 2; ++i) {
            hot_.load_address(a, first + i * line);
            hot_.store_context(entry(first + i * line), a);
        }
        hot_.load_address(a, address);
        emit_append(hot_, cursor, a, site);
        hot_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, 16});
        return;
    }
    const bool rax_free = scratch_.is_free(RAX) && a != RAX;
    hot_.load_address(a, first);
    if (item.flags_live) save_flags(hot_, rax_free);
    hot_.with_context(kCompareMemory, a, entry(first));
    const std::uint64_t differs = hot_.jump_if(kNotEqual, hot_.address);
    const std::uint64_t back = hot_.address;
    if (item.flags_live) restore_flags(hot_, rax_free);

    hot_.patch(differs, cold_.address);
    cold_.store_context(entry(first), a);
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const unsigned spare = a == RDX ? unsigned{RCX} : unsigned{RDX};
    const unsigned cursor = cached ? unsigned{scratch_.cached_cursor()} : spare;
    if (!cached) {
        cold_.store_context(offsetof(Context, stub_cursor), cursor);
        cold_.load_context(cursor, kCursorOffset);
    }
    cold_.load_address(a, address);
    emit_append(cold_, cursor, a, site);
    cold_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, 16});
    if (!cached) {
        cold_.store_context(kCursorOffset, cursor);
        cold_.load_context(cursor, offsetof(Context, stub_cursor));
    }
    cold_.jump(back);
}

}  // namespace assay::native
