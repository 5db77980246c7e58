// Emits the x86-64 instructions of instrumentation. It writes code to `out` that will run at
// `address`. The two differ when the driver repeats a translation to recover the state of a fault.
#pragma once

#include "framework/x86/instruction.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace assay::native {

// How code best addresses memory that it changes again within a few cycles.

// Some processors can forward a recent store to a load without waiting for it, but only for some
// kinds of addresses. Measured cycles of a loop that increments one word of memory:
//
//                   relative to rip    absolute, with gs
//    Golden Cove    7                  1
//    Zen 5          1                  7
//
// Zen 5 never forwards bytes. True on processors like Zen 5, false on those like Golden Cove.
bool forwards_relative_stores();

// True if a sign-extended displacement or immediate of 32 bits can hold the value.
inline bool fits32(std::int64_t value) {
    return value == static_cast<std::int32_t>(value);
}

// An address expression. The caller must add the base of a segment.
struct Address {
    std::uint8_t base = kNoGpr;
    std::uint8_t index = kNoGpr;
    std::uint8_t scale = 1;
    std::int32_t disp = 0;
};

// Opcodes for with_memory(), and the extensions of group 1.
enum Opcode : unsigned {
    kLoad = 0x8b,
    kStore = 0x89,
    kLoadByte = 0x8a,
    kStoreByte = 0x88,
    kStoreConstant = 0xc7,  // 32 bits, sign-extended to 64
    kCompareMemory = 0x3b,
    kAddMemory = 0x03,
    kOrInMemory = 0x09,
    kSubtractMemory = 0x2b,
    kIncrement = 0xff,   // /1 is decrement
    kGroup1 = 0x81,      // with a sign-extended immediate of 32 bits
    kGroup1Byte = 0x83,  // with a sign-extended byte
};
// The registers that a function may change (System V psABI, 3.2.1), as stubs save them in order.
inline constexpr std::array<unsigned, 9> kChangedByCalls{RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11};

enum Group1 : unsigned { kAdd = 0, kAddCarry = 2, kAnd = 4, kSubtract = 5, kCompare = 7 };
enum Condition : unsigned {
    kBelow = 2,
    kAboveEqual = 3,
    kEqual = 4,
    kNotEqual = 5,
    kBelowEqual = 6,
    kAbove = 7,
    kSign = 8,
    kNotSign = 9,
    kGreater = 15,
};

class Assembler {
  public:
    std::uint8_t* out = nullptr;
    std::uint64_t address = 0;
    std::uint64_t context = 0;  // its address if only one thread will run the code; otherwise 0

    void u8(unsigned value) { *out++ = static_cast<std::uint8_t>(value), ++address; }
    void ret() { u8(0xc3); }
    void u32(std::uint32_t value) { raw(&value, 4); }
    void u64(std::uint64_t value) { raw(&value, 8); }
    void raw(const void* bytes, std::size_t count) {
        std::memcpy(out, bytes, count);
        out += count;
        address += count;
    }

    // Between data and code. Nothing executes these bytes.
    void align_data(unsigned bytes) {
        constexpr unsigned kInt3 = 0xcc;
        while (address % bytes != 0) u8(kInt3);
    }

    // op reg, [memory] or op [memory], reg. The operand has 64 bits, or 32 if not `wide`.
    void with_memory(unsigned opcode, unsigned reg, const Address& memory, bool wide = true) {
        const unsigned rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) |
                             (memory.index != kNoGpr && memory.index >= 8 ? 2 : 0) |
                             (memory.base != kNoGpr && memory.base >= 8 ? 1 : 0);
        if (rex != 0x40) u8(rex);
        u8(opcode);
        operand(reg & 7, memory);
    }
    // The same with gs:[offset + base].
    void with_context(unsigned opcode, unsigned reg, std::size_t offset, bool wide = true,
                      std::uint8_t base = kNoGpr) {
        u8(0x65);
        with_memory(opcode, reg, Address{base, kNoGpr, 1, static_cast<std::int32_t>(offset)}, wide);
    }
    // The same with gs:[offset], or with an address relative to rip if possible: see
    // increment_context(). `immediate_bytes`: the size of an immediate operand that follows.
    void with_thread(unsigned opcode, unsigned reg, std::size_t offset, bool wide = true,
                     unsigned immediate_bytes = 0) {
        const unsigned rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0);
        const std::uint64_t end = address + (rex != 0x40 ? 1 : 0) + 6 + immediate_bytes;
        const auto distance = static_cast<std::int64_t>(context + offset - end);
        if (context == 0 || !fits32(distance)) return with_context(opcode, reg, offset, wide);
        if (rex != 0x40) u8(rex);
        u8(opcode);
        u8((reg & 7) << 3 | 5);
        u32(static_cast<std::uint32_t>(distance));
    }
    // The same for 32 or 64 bits that code probably changes again within a few cycles.
    void with_context_again(unsigned opcode, unsigned reg, std::size_t offset, bool wide = true,
                            unsigned immediate_bytes = 0) {
        if (forwards_relative_stores())
            with_thread(opcode, reg, offset, wide, immediate_bytes);
        else
            with_context(opcode, reg, offset, wide);
    }
    // Adds 1 to 64 bits of the context. Changes flags. An address relative to rip makes a shorter
    // and faster instruction than gs. An `add` would be slower than `inc`.
    void increment_context(std::size_t offset) { with_thread(kIncrement, 0, offset); }
    void increment_context_again(std::size_t offset) { with_context_again(kIncrement, 0, offset); }
    void load_context(unsigned reg, std::size_t offset) { with_context(0x8b, reg, offset); }
    void store_context(std::size_t offset, unsigned reg) { with_context(0x89, reg, offset); }
    // movzx reg, byte gs:[offset + base]. store_context_byte() stores the low byte.
    void load_context_byte(unsigned reg, std::size_t offset, std::uint8_t base = kNoGpr) {
        byte_with_context(0xb6, reg, offset, base, true);
    }
    // movzx reg, word gs:[offset + base].
    void load_context_word(unsigned reg, std::size_t offset, std::uint8_t base = kNoGpr) {
        byte_with_context(0xb7, reg, offset, base, true);
    }
    // The same for the context of the only thread, see with_thread().
    void load_word(unsigned reg, std::size_t offset) {
        const bool high = reg >= 8;
        const std::uint64_t end = address + (high ? 1 : 0) + 7;
        const auto distance = static_cast<std::int64_t>(context + offset - end);
        if (context == 0 || !fits32(distance)) return load_context_word(reg, offset);
        if (high) u8(0x44);
        u8(0x0f);
        u8(0xb7);
        u8((reg & 7) << 3 | 5);
        u32(static_cast<std::uint32_t>(distance));
    }
    void store_context_byte(std::size_t offset, unsigned reg, std::uint8_t base = kNoGpr) {
        byte_with_context(0x88, reg, offset, base, false);
    }
    // op reg, gs:[offset + index * scale] or the reverse, with a 64-bit operand.
    void with_context_indexed(unsigned opcode, unsigned reg, std::size_t offset, std::uint8_t index,
                              std::uint8_t scale) {
        u8(0x65);
        with_memory(opcode, reg, Address{kNoGpr, index, scale, static_cast<std::int32_t>(offset)});
    }
    void multiply(unsigned reg, std::uint32_t by) {  // 32 bits
        registers(0x69, reg, reg, false);
        u32(by);
    }
    // mov gs:[offset + index * scale], the low 16 bits of reg.
    void store_context_word(std::size_t offset, unsigned reg, std::uint8_t index,
                            std::uint8_t scale) {
        u8(0x66);
        u8(0x65);
        with_memory(kStore, reg, Address{kNoGpr, index, scale, static_cast<std::int32_t>(offset)},
                    false);
    }
    void shift_right(unsigned reg, unsigned bits) {  // 32 bits
        registers(0xc1, reg, 5, false);
        u8(bits);
    }
    void set_if(unsigned condition, unsigned reg) {  // sets the low byte
        if (reg >= 4) u8(0x40 | (reg >= 8 ? 1 : 0));
        u8(0x0f);
        u8(0x90 | condition);
        u8(0xc0 | (reg & 7));
    }
    // A group-1 operation with the low byte of a register, or with the byte gs:[offset + base].
    void group1_byte(unsigned extension, unsigned reg, unsigned value) {
        if (reg >= 4) u8(0x40 | (reg >= 8 ? 1 : 0));
        u8(0x80);
        u8(0xc0 | extension << 3 | (reg & 7));
        u8(value);
    }
    void group1_context_byte(unsigned extension, std::size_t offset, std::uint8_t base,
                             unsigned value) {
        with_context(0x80, extension, offset, false, base);
        u8(value);
    }
    // ModRM, SIB and displacement. Uses the low three bits of `reg`; prefixes must hold the
    // extensions of registers. `whole_displacement`: never shortens it to 8 bits.
    void operand(unsigned reg, const Address& memory, bool whole_displacement = false) {
        if (memory.base == kNoGpr) {  // absolute or only an index: SIB without base
            u8(reg << 3 | 4);
            u8(scale_bits(memory.scale) << 6 |
               (memory.index == kNoGpr ? 4U : memory.index & 7U) << 3 | 5);
            u32(static_cast<std::uint32_t>(memory.disp));
            return;
        }
        const unsigned base = memory.base & 7;
        const bool none = memory.disp == 0 && base != 5;
        const bool small =
            !whole_displacement && memory.disp == static_cast<std::int8_t>(memory.disp);
        const unsigned mod = none ? 0 : small ? 1 : 2;
        if (memory.index != kNoGpr || base == 4) {
            u8(mod << 6 | reg << 3 | 4);
            u8(scale_bits(memory.scale) << 6 |
               (memory.index == kNoGpr ? 4U : memory.index & 7U) << 3 | base);
        } else {
            u8(mod << 6 | reg << 3 | base);
        }
        if (mod == 1) u8(static_cast<std::uint8_t>(memory.disp));
        if (mod == 2) u32(static_cast<std::uint32_t>(memory.disp));
    }
    void lea(unsigned reg, const Address& memory, bool wide = true) {
        with_memory(0x8d, reg, memory, wide);
    }
    // lea reg, [rip + x] for an address in reach, otherwise mov reg, imm64.
    void load_address(unsigned reg, std::uint64_t value) {
        const auto distance = static_cast<std::int64_t>(value - (address + 7));
        if (value <= 0xffffffff) {
            if (reg >= 8) u8(0x41);
            u8(0xb8 | (reg & 7));
            u32(static_cast<std::uint32_t>(value));
        } else if (fits32(distance)) {
            u8(0x48 | (reg >= 8 ? 4 : 0));
            u8(0x8d);
            u8(0x05 | (reg & 7) << 3);
            u32(static_cast<std::uint32_t>(distance));
        } else {
            move_imm64(reg, value);
        }
    }
    // Loads the address of an operand without its segment base. `offset` includes the instruction's
    // address if the operand is relative to rip.
    void load_offset(unsigned reg, const MemoryReference& form, std::int64_t offset) {
        if (form.index == kNoGpr && (form.base == kNoGpr || form.base == kRip))
            load_address(reg, form.address32 ? static_cast<std::uint32_t>(offset)
                                             : static_cast<std::uint64_t>(offset));
        else
            lea(reg, Address{form.base, form.index, form.scale, static_cast<std::int32_t>(offset)},
                !form.address32);
    }
    void move_imm64(unsigned reg, std::uint64_t value) {
        u8(0x48 | (reg >= 8 ? 1 : 0));
        u8(0xb8 | (reg & 7));
        u64(value);
    }
    // op reg, reg. For opcodes like 0x89, `reg` is the source.
    void registers(unsigned opcode, unsigned rm, unsigned reg, bool wide = true) {
        const unsigned rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) | (rm >= 8 ? 1 : 0);
        if (rex != 0x40) u8(rex);
        u8(opcode);
        u8(0xc0 | (reg & 7) << 3 | (rm & 7));
    }
    // shlx reg, from, count; uses the low six bits of `count`: VEX.66.0F38.W1 F7 (SDM volume 2).
    void shift_left(unsigned reg, unsigned from, unsigned count) {
        u8(0xc4);
        u8((reg >= 8 ? 0 : 0x80) | 0x40 | (from >= 8 ? 0 : 0x20) | 2);
        u8(0x80 | (~count & 15U) << 3 | 1);
        u8(0xf7);
        u8(0xc0 | (reg & 7) << 3 | (from & 7));
    }
    void shift_left_by_three(unsigned reg) {  // 64 bits
        registers(0xc1, reg, 4);
        u8(3);
    }
    // shr reg, 1 with a 32-bit operand.
    void shift_right_by_one(unsigned reg) { registers(0xd1, reg, 5, false); }
    // A group-1 operation with an immediate.
    void group1(unsigned extension, unsigned reg, std::int32_t value, bool wide) {
        const unsigned rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 1 : 0);
        if (rex != 0x40) u8(rex);
        const bool small = value == static_cast<std::int8_t>(value);
        u8(small ? 0x83 : 0x81);
        u8(0xc0 | extension << 3 | (reg & 7));
        if (small)
            u8(static_cast<std::uint8_t>(value));
        else
            u32(static_cast<std::uint32_t>(value));
    }
    // The low 1, 2, 4 or 8 bytes of a register or of memory, zero-extended: movzx or mov.
    void zero_extend(unsigned reg, unsigned from, unsigned bytes) {
        if (bytes >= 4) return registers(kStore, reg, from, bytes == 8);
        u8(0x40 | (reg >= 8 ? 4 : 0) | (from >= 8 ? 1 : 0));  // without REX, 4 to 7 are ah to bh
        u8(0x0f);
        u8(bytes == 1 ? 0xb6 : 0xb7);
        u8(0xc0 | (reg & 7) << 3 | (from & 7));
    }
    void load_zero_extended(unsigned reg, const Address& memory, unsigned bytes) {
        if (bytes >= 4) return with_memory(kLoad, reg, memory, bytes == 8);
        u8(0x40 | (reg >= 8 ? 4 : 0) | (memory.index != kNoGpr && memory.index >= 8 ? 2 : 0) |
           (memory.base != kNoGpr && memory.base >= 8 ? 1 : 0));
        u8(0x0f);
        u8(bytes == 1 ? 0xb6 : 0xb7);
        operand(reg & 7, memory);
    }
    void load_context_zero_extended(unsigned reg, std::size_t offset, unsigned bytes) {
        u8(0x65);
        load_zero_extended(reg, Address{kNoGpr, kNoGpr, 1, static_cast<std::int32_t>(offset)},
                           bytes);
    }
    // movq: the low 64 bits of a vector register, 66 REX.W 0F 7E, in the encoding that has the
    // register. With AVX, this is VEX, because legacy SSE would cost a transition while the upper
    // halves are in use (Intel Optimization Reference Manual, "Mixing AVX code with SSE code").
    enum class VectorEncoding : std::uint8_t { kLegacy, kVex, kEvex };
    void move_from_vector(unsigned reg, unsigned vector, VectorEncoding encoding) {
        const unsigned r = vector >> 3 & 1, r2 = vector >> 4 & 1, b = reg >> 3 & 1;
        switch (encoding) {
            case VectorEncoding::kLegacy:
                u8(0x66);
                u8(0x48 | r << 2 | b);
                u8(0x0f);
                break;
            case VectorEncoding::kVex:
                u8(0xc4);
                u8((r ^ 1) << 7 | 1 << 6 | (b ^ 1) << 5 | 1);
                u8(0xf9);
                break;
            case VectorEncoding::kEvex:
                u8(0x62);
                u8((r ^ 1) << 7 | 1 << 6 | (b ^ 1) << 5 | (r2 ^ 1) << 4 | 1);
                u8(0xfd);
                u8(0x08);
                break;
        }
        u8(0x7e);
        u8(0xc0 | (vector & 7) << 3 | (reg & 7));
    }
    // Stores a whole vector register to gs:[offset]: MOVUPS, 0F 11; VMOVUPS in VEX.128 or VEX.256;
    // EVEX.512 for the upper 16 registers and for 64 bytes.
    void store_vector(std::size_t offset, unsigned vector, unsigned bytes,
                      VectorEncoding encoding) {
        const unsigned r = vector >> 3 & 1, r2 = vector >> 4 & 1;
        u8(0x65);
        switch (encoding) {
            case VectorEncoding::kLegacy:
                if (r != 0) u8(0x44);
                u8(0x0f);
                break;
            case VectorEncoding::kVex:
                u8(0xc4);
                u8((r ^ 1) << 7 | 0x61);
                u8(bytes > 16 ? 0x7c : 0x78);
                break;
            case VectorEncoding::kEvex:
                u8(0x62);
                u8((r ^ 1) << 7 | 0x61 | (r2 ^ 1) << 4);
                u8(0x7c);
                u8(0x48);
                break;
        }
        u8(0x11);
        operand(vector & 7, Address{kNoGpr, kNoGpr, 1, static_cast<std::int32_t>(offset)});
    }
    // The low 64 or 16 bits of a mask register: KMOVQ, VEX.L0.F2.0F.W1 93, or KMOVW, VEX.L0.0F.W0
    // 93.
    void move_from_mask(unsigned reg, unsigned mask, unsigned bytes) {
        u8(0xc4);
        u8((reg >= 8 ? 0 : 0x80) | 0x61);
        u8(bytes == 8 ? 0xfb : 0x78);
        u8(0x93);
        u8(0xc0 | (reg & 7) << 3 | mask);
    }
    // MOVQ: REX.W 0F 7E.
    void move_from_mmx(unsigned reg, unsigned mmx) {
        u8(0x48 | (reg >= 8 ? 1 : 0));
        u8(0x0f);
        u8(0x7e);
        u8(0xc0 | mmx << 3 | (reg & 7));
    }
    // movzx eax, cx: the index of the target in rcx in the indirect table.
    void load_index_of_target() {
        for (const unsigned byte : {0x0f, 0xb7, 0xc1}) u8(byte);
    }
    // not reg. Changes no flag.
    void complement(unsigned reg) {
        u8(0x48 | (reg >= 8 ? 1 : 0));
        u8(0xf7);
        u8(0xd0 | (reg & 7));
    }
    // The time-stamp counter in edx:eax, after all earlier instructions (SDM volume 2, RDTSC).
    void read_time() {
        for (const unsigned byte : {0x0f, 0xae, 0xe8, 0x0f, 0x31}) u8(byte);
    }
    void load_fence() {
        for (const unsigned byte : {0x0f, 0xae, 0xe8}) u8(byte);
    }
    // Never faults, and does nothing on processors without it (Intel SDM volume 2, PREFETCHW).
    void prefetch_for_write(const Address& memory) {
        if (memory.base != kNoGpr && memory.base >= 8) u8(0x41);
        u8(0x0f);
        u8(0x0d);
        operand(1, memory);
    }
    // test reg, mask. Tests the low byte if the mask has no other bits.
    void test_bits(unsigned reg, std::uint32_t mask) {
        const bool low = mask <= 0xff;
        u8(0x40 | (reg >= 8 ? 1 : 0));  // with REX, 4 to 7 are spl, bpl, sil, dil
        u8(low ? 0xf6 : 0xf7);
        u8(0xc0 | (reg & 7));
        if (low)
            u8(mask);
        else
            u32(mask);
    }
    void move_if(unsigned condition, unsigned reg, unsigned from) {
        u8(0x48 | (reg >= 8 ? 4 : 0) | (from >= 8 ? 1 : 0));
        u8(0x0f);
        u8(0x40 | condition);
        u8(0xc0 | (reg & 7) << 3 | (from & 7));
    }
    // For a displacement that will be changed while threads may execute it. `emit` emits the
    // instruction, and returns the address of the displacement. patchable() places this within an
    // aligned quadword by a NOP, so that threads fetch the old or the new displacement (AMD64 APM
    // volume 2, 7.6.1, asynchronous modification). To stay within a cache line is not enough: Zen 5
    // has fetched half of a store across the middle of a line.
    template <typename Emit>
    std::uint64_t patchable(const Emit& emit) {
        constexpr unsigned kQuadword = 8, kDisplacement = 4;
        const Assembler before = *this;
        const std::uint64_t site = emit();
        if (site % kQuadword <= kQuadword - kDisplacement) return site;
        *this = before;
        no_operation(kQuadword - site % kQuadword);
        return emit();
    }
    // Directs the jump with the displacement at `site` to `target`. This assembler must have
    // emitted the jump.
    void patch(std::uint64_t site, std::uint64_t target) {
        const auto distance = static_cast<std::uint32_t>(target - (site + 4));
        std::memcpy(out - (address - site), &distance, sizeof distance);
    }
    // Jumps with a 32-bit displacement. They return the address of the displacement.
    std::uint64_t jump(std::uint64_t target) {
        u8(0xe9);
        return relative(target);
    }
    std::uint64_t jump_if(unsigned condition, std::uint64_t target) {
        u8(0x0f);
        u8(0x80 | condition);
        return relative(target);
    }
    // A jump over less than 128 bytes. It returns its `site`; patch_short() directs it to the next
    // instruction.
    std::uint64_t short_jump_if(unsigned condition) {
        u8(0x70 | condition);
        u8(0);
        return address - 1;
    }
    void patch_short(std::uint64_t site) {
        out[-static_cast<std::ptrdiff_t>(address - site)] =
            static_cast<std::uint8_t>(address - (site + 1));
    }
    void call(std::uint64_t target) {
        u8(0xe8);
        relative(target);
    }
    void push(unsigned reg) {
        if (reg >= 8) u8(0x41);
        u8(0x50 | (reg & 7));
    }
    void pop(unsigned reg) {
        if (reg >= 8) u8(0x41);
        u8(0x58 | (reg & 7));
    }
    void push_literal(std::uint64_t where) {  // push qword [rip + x]
        u8(0xff);
        u8(0x35);
        relative(where);
    }
    void push_constant(std::uint32_t value) {  // sign-extended
        const auto small = static_cast<std::int8_t>(value);
        if (value == static_cast<std::uint32_t>(small)) return u8(0x6a), u8(value);
        u8(0x68);
        u32(value);
    }
    void jump_context(std::size_t offset) {  // jmp *gs:offset
        u8(0x65);
        u8(0xff);
        u8(0x24);
        u8(0x25);
        u32(static_cast<std::uint32_t>(offset));
    }

  private:
    // SDM volume 2, NOP: the recommended sequences of one to three bytes.
    void no_operation(unsigned bytes) {
        if (bytes == 2) u8(0x66);
        if (bytes == 3) {
            u8(0x0f);
            u8(0x1f);
            u8(0x00);
        } else {
            u8(0x90);
        }
    }
    std::uint64_t relative(std::uint64_t target) {
        const std::uint64_t at = address;
        u32(static_cast<std::uint32_t>(target - (address + 4)));
        return at;
    }
    void byte_with_context(unsigned opcode, unsigned reg, std::size_t offset, std::uint8_t base,
                           bool two_bytes) {
        const unsigned rex = 0x40 | (reg >= 8 ? 4 : 0) | (base != kNoGpr && base >= 8 ? 1 : 0);
        u8(0x65);
        if (rex != 0x40 || reg >= 4) u8(rex);  // with REX, 4 to 7 are spl, bpl, sil, dil
        if (two_bytes) u8(0x0f);
        u8(opcode);
        operand(reg & 7, Address{base, kNoGpr, 1, static_cast<std::int32_t>(offset)});
    }
    static unsigned scale_bits(unsigned scale) {
        return scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
    }
};

}  // namespace assay::native
