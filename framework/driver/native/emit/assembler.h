// Emits the x86-64 instructions that instrumentation is made of. Code is written to `out`, and
// will run at `address`: the two differ when a translation is repeated to recover the state of
// a fault.
#pragma once

#include "framework/x86/instruction.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace assay::native {

// How code best reaches memory that it changes again within a few cycles.

// Processors that take what was just stored from a register, instead of waiting for it, do so for
// some addresses only. Cycles that a loop of one increment in memory takes per round (measured):
//
//                  relative to rip    absolute, behind gs
//   Golden Cove    7                  1
//   Zen 5          1                  7
//
// Zen 5 never does so for bytes. True if it is as with Zen 5, false if as with Golden Cove.
bool forwards_relative_stores();

// True for what a sign-extended displacement or immediate of 32 bits can hold.
inline bool fits32(std::int64_t value) {
    return value == static_cast<std::int32_t>(value);
}

// An address expression. The base of a segment is the caller's to add.
struct Address {
    std::uint8_t base = kNoGpr;
    std::uint8_t index = kNoGpr;
    std::uint8_t scale = 1;
    std::int32_t disp = 0;
};

// Opcodes for with_memory(), and /n of group 1.
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
    kIncrement = 0xff,   // /1: decrement
    kGroup1 = 0x81,      // with 32 bits, sign-extended
    kGroup1Byte = 0x83,  // with a sign-extended byte
};
// What a function may change (System V psABI, 3.2.1), in the order in which stubs save it.
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
    std::uint64_t context = 0;  // where it is, if only one thread will run the code

    void u8(unsigned value) { *out++ = static_cast<std::uint8_t>(value), ++address; }
    void ret() { u8(0xc3); }
    void u32(std::uint32_t value) { raw(&value, 4); }
    void u64(std::uint64_t value) { raw(&value, 8); }
    void raw(const void* bytes, std::size_t count) {
        std::memcpy(out, bytes, count);
        out += count;
        address += count;
    }

    // Between data and code, where nothing is executed.
    void align_data(unsigned bytes) {
        constexpr unsigned kInt3 = 0xcc;
        while (address % bytes != 0) u8(kInt3);
    }

    // op reg, [memory] and op [memory], reg with a 64-bit operand.
    void with_memory(unsigned opcode, unsigned reg, const Address& memory, bool wide = true) {
        const unsigned rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) |
                             (memory.index != kNoGpr && memory.index >= 8 ? 2 : 0) |
                             (memory.base != kNoGpr && memory.base >= 8 ? 1 : 0);
        if (rex != 0x40) u8(rex);
        u8(opcode);
        operand(reg & 7, memory);
    }
    // The same with gs:[offset] (+ index * 1).
    void with_context(unsigned opcode, unsigned reg, std::size_t offset, bool wide = true,
                      std::uint8_t base = kNoGpr) {
        u8(0x65);
        with_memory(opcode, reg, Address{base, kNoGpr, 1, static_cast<std::int32_t>(offset)}, wide);
    }
    // The same with gs:[offset], by an address relative to rip where that is possible: see
    // increment_context(). So many bytes of an immediate operand follow.
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
    // The same for 32 or 64 bits that are likely to be changed again within a few cycles.
    void with_context_again(unsigned opcode, unsigned reg, std::size_t offset, bool wide = true,
                            unsigned immediate_bytes = 0) {
        if (forwards_relative_stores())
            with_thread(opcode, reg, offset, wide, immediate_bytes);
        else
            with_context(opcode, reg, offset, wide);
    }
    // Adds 1 to 64 bits of the context. Changes flags. An address relative to rip makes a shorter
    // instruction than one through gs, and a faster one; with `add`, it would be slower again.
    void increment_context(std::size_t offset) { with_thread(kIncrement, 0, offset); }
    void increment_context_again(std::size_t offset) { with_context_again(kIncrement, 0, offset); }
    void load_context(unsigned reg, std::size_t offset) { with_context(0x8b, reg, offset); }
    void store_context(std::size_t offset, unsigned reg) { with_context(0x89, reg, offset); }
    // movzx reg, byte gs:[offset + base], and mov the other way with its low byte.
    void load_context_byte(unsigned reg, std::size_t offset, std::uint8_t base = kNoGpr) {
        byte_with_context(0xb6, reg, offset, base, true);
    }
    // movzx reg, word gs:[offset + base].
    void load_context_word(unsigned reg, std::size_t offset, std::uint8_t base = kNoGpr) {
        byte_with_context(0xb7, reg, offset, base, true);
    }
    // The same of the one thread, see with_thread().
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
    // op reg, gs:[offset + index * scale] and the other way, with a 64-bit operand.
    void with_context_indexed(unsigned opcode, unsigned reg, std::size_t offset, std::uint8_t index,
                              std::uint8_t scale) {
        u8(0x65);
        with_memory(opcode, reg, Address{kNoGpr, index, scale, static_cast<std::int32_t>(offset)});
    }
    void multiply(unsigned reg, std::uint32_t by) {  // 32 bits
        registers(0x69, reg, reg, false);
        u32(by);
    }
    // mov gs:[offset + index * scale], reg with its low 16 bits.
    void store_context_word(std::size_t offset, unsigned reg, std::uint8_t index,
                            std::uint8_t scale) {
        u8(0x66);
        u8(0x65);
        with_memory(kStore, reg, Address{kNoGpr, index, scale, static_cast<std::int32_t>(offset)},
                    false);
    }
    void shift_right(unsigned reg, unsigned bits) {  // of 32 bits
        registers(0xc1, reg, 5, false);
        u8(bits);
    }
    void set_if(unsigned condition, unsigned reg) {  // the low byte
        if (reg >= 4) u8(0x40 | (reg >= 8 ? 1 : 0));
        u8(0x0f);
        u8(0x90 | condition);
        u8(0xc0 | (reg & 7));
    }
    // Group-1 operations with the low byte of a register, or with byte gs:[offset + base].
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
    // ModRM and what belongs to it, with low three bits of `reg`; extensions of registers are the
    // prefix's to have. `whole_displacement`: none of 8 bits.
    void operand(unsigned reg, const Address& memory, bool whole_displacement = false) {
        if (memory.base == kNoGpr) {  // absolute or index only: SIB without base
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
    // lea reg, [rip + x] for an address in reach, else mov reg, imm64.
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
    // Address of an operand but for the base of its segment; `offset` has that of the instruction
    // in it where it is relative to rip.
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
    // op reg, reg (the second operand is `reg` of ModRM for 0x89-style opcodes).
    void registers(unsigned opcode, unsigned rm, unsigned reg, bool wide = true) {
        const unsigned rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) | (rm >= 8 ? 1 : 0);
        if (rex != 0x40) u8(rex);
        u8(opcode);
        u8(0xc0 | (reg & 7) << 3 | (rm & 7));
    }
    // shlx reg, from, count, by the low six bits of `count`: VEX.66.0F38.W1 F7 (SDM volume 2).
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
    // Group-1 operations with an immediate: /4 and, /7 cmp, /0 add ...
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
        u8(0x40 | (reg >= 8 ? 4 : 0) | (from >= 8 ? 1 : 0));  // without, 4 to 7 are ah to bh
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
    // The low 64 bits of a vector register: movq, 66 REX.W 0F 7E, in the encoding that has the
    // register. With AVX that is VEX: legacy SSE would cost a transition where the upper halves
    // are in use (Intel Optimization Reference Manual, "Mixing AVX code with SSE code").
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
    // A whole vector register to gs:[offset]: MOVUPS, 0F 11, VMOVUPS in VEX.128, VEX.256 or, for
    // the upper 16 registers and for 64 bytes, EVEX.512.
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
    // The low 64 bits of a mask register, or 16: KMOVQ, VEX.L0.F2.0F.W1 93, and KMOVW,
    // VEX.L0.0F.W0 93.
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
    // movzx eax, cx: the index in the indirect table of the target in rcx.
    void load_index_of_target() {
        for (const unsigned byte : {0x0f, 0xb7, 0xc1}) u8(byte);
    }
    // Changes no flag.
    void complement(unsigned reg) {
        u8(0x48 | (reg >= 8 ? 1 : 0));
        u8(0xf7);
        u8(0xd0 | (reg & 7));
    }
    // The time-stamp counter in edx:eax, once all before has completed (SDM volume 2, RDTSC).
    void read_time() {
        for (const unsigned byte : {0x0f, 0xae, 0xe8, 0x0f, 0x31}) u8(byte);
    }
    void load_fence() {
        for (const unsigned byte : {0x0f, 0xae, 0xe8}) u8(byte);
    }
    // Intel SDM volume 2, PREFETCHW: never faults, and does nothing on processors without it.
    void prefetch_for_write(const Address& memory) {
        if (memory.base != kNoGpr && memory.base >= 8) u8(0x41);
        u8(0x0f);
        u8(0x0d);
        operand(1, memory);
    }
    // test reg, mask, on the low byte if the mask has no other bits.
    void test_bits(unsigned reg, std::uint32_t mask) {
        const bool low = mask <= 0xff;
        u8(0x40 | (reg >= 8 ? 1 : 0));  // with a REX prefix 4 to 7 are spl bpl sil dil
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
    // Calls `emit`, which returns the address of a displacement that will be changed while threads
    // may execute it, and sees to it, by a few bytes of nothing before, that it lies within an
    // aligned quadword: then it is fetched as it was or as it is (AMD64 APM volume 2, 7.6.1,
    // asynchronous modification). A whole line is not enough: Zen 5 has fetched half of what was
    // stored across the middle of one.
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
    // Makes the jump whose displacement is at `site`, in what this assembler emitted, go to
    // `target`.
    void patch(std::uint64_t site, std::uint64_t target) {
        const auto distance = static_cast<std::uint32_t>(target - (site + 4));
        std::memcpy(out - (address - site), &distance, sizeof distance);
    }
    // Jumps with a 32-bit displacement; return the address of the displacement.
    std::uint64_t jump(std::uint64_t target) {
        u8(0xe9);
        return relative(target);
    }
    std::uint64_t jump_if(unsigned condition, std::uint64_t target) {
        u8(0x0f);
        u8(0x80 | condition);
        return relative(target);
    }
    // A jump over less than 128 bytes to what comes next when patch_short() is called with where
    // this says that its displacement is.
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
        if (rex != 0x40 || reg >= 4) u8(rex);  // with a REX prefix 4 to 7 are spl bpl sil dil
        if (two_bytes) u8(0x0f);
        u8(opcode);
        operand(reg & 7, Address{base, kNoGpr, 1, static_cast<std::int32_t>(offset)});
    }
    static unsigned scale_bits(unsigned scale) {
        return scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
    }
};

}  // namespace assay::native
