// The facts that the translator needs about one instruction. Most of them depend only on the
// instruction's form, the bytes up to the ModRM and SIB bytes. Two instructions of one form differ
// only in displacement and immediate.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <optional>

namespace assay::native {

// General-purpose registers by their number in encodings; masks have bit 1 << number.
enum Gpr : std::uint8_t {
    RAX,
    RCX,
    RDX,
    RBX,
    RSP,
    RBP,
    RSI,
    RDI,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15
};
inline constexpr std::uint8_t kNoGpr = 0xff;
inline constexpr std::uint8_t kRip = 16;
using GprMask = std::uint16_t;
// The bit of a register; 0 if it is no general-purpose register.
inline constexpr GprMask bit(unsigned reg) {
    return reg < 16 ? static_cast<GprMask>(1U << reg) : GprMask{0};
}
inline constexpr GprMask kAllGprs = 0xffff;

// The arithmetic flags, in their EFLAGS positions: CF PF AF ZF SF OF. Instrumentation changes
// no other flag.
inline constexpr std::uint16_t kArithmeticFlags = 0x8d5;

enum class Flow : std::uint8_t {
    kNone,
    kJump,         // direct
    kConditional,  // jcc rel
    kCounted,      // loop, loope, loopne, jrcxz, jecxz
    kCall,         // direct
    kJumpIndirect,
    kCallIndirect,
    kReturn,
    kSyscall,
    kMarker,           // see assay/client.h
    kInterruptReturn,  // iretq
    kTrap,             // int3, ud2 and others that fault: executed in place
    kUnsupported,
};

// Extensions that some processors lack. The driver cannot run these instructions where the
// processor has them.
enum class ProcessorExtension : std::uint8_t {
    kNone,
    kTransactions,  // RTM: xbegin, xend
    kTiles,         // AMX
};

// The base that is added to an address. Segments other than fs and gs have the base 0.
enum class Segment : std::uint8_t { kFlat, kFs, kGs };

// One data reference. The address is base + index * scale + displacement, truncated to 32 bits with
// an address-size prefix, plus the segment's base.
struct MemoryReference {
    std::uint8_t base = kNoGpr;  // Gpr, kRip or kNoGpr
    std::uint8_t index = kNoGpr;
    std::uint16_t bytes = 0;
    std::int16_t bias = 0;      // added to the address: -8 for a push
    std::uint8_t kind : 3 = 0;  // TRACE_SITE_READ, _WRITE or _MODIFY
    std::uint8_t scale : 4 = 1;
    bool encoded : 1 = false;  // displacement comes from the instruction's bytes
    Segment segment : 2 = Segment::kFlat;
    bool address32 : 1 = false;
};

inline GprMask address_registers(const MemoryReference& reference) {
    GprMask mask = 0;
    if (reference.base < 16) mask |= bit(reference.base);
    if (reference.index < 16) mask |= bit(reference.index);
    return mask;
}

// True if the address depends only on the code.
inline bool is_constant(const MemoryReference& reference) {
    return reference.segment == Segment::kFlat && reference.index == kNoGpr &&
           (reference.base == kRip || reference.base == kNoGpr);
}

// The driver's own code computes these references at run time: see special_references.cpp.
enum class Special : std::uint8_t {
    kNone,
    kString,     // movs stos lods cmps scas, repeated
    kGather,     // gathers and scatters
    kBitString,  // bt bts btr btc with a memory and a register operand
    kTranslate,  // xlat
    kClearLine,  // clzero
    kFlushLine,  // clflush, clflushopt, clwb: no references, but filters must forget the line
};

// The bytes that clzero clears: a line on all processors that have it.
inline constexpr std::uint16_t kClearedBytes = 64;

// Instructions that describe the processor, or whose effect depends on the description.
enum class ProcessorUse : std::uint8_t {
    kNone,
    kIdentify,   // cpuid, xgetbv
    kSaveState,  // xsave, xsavec, xsaveopt, xrstor: edx:eax names the components
};

// A register as an operand.
struct RegisterOperand {
    // kHighByte: ah, ch, dh, bh. kX87: st(number) before the instruction; st(7) if the instruction
    // pushes it.
    enum Kind : std::uint8_t { kNone, kGpr, kHighByte, kVector, kMask, kMmx, kX87 };
    Kind kind : 3 = kNone;
    std::uint8_t number : 5 = 0;
    std::uint8_t bytes = 0;
};

// A look-up costs as much as the cache lines that it touches. A form and its key together fit into
// one line.
struct Form {
    std::uint8_t length : 4 = 0;  // of the whole instruction
    std::uint8_t opcode_offset : 4 = 0;
    std::uint8_t modrm_offset : 4 = 0;  // or 0
    std::uint8_t disp_offset : 4 = 0;   // or 0
    std::uint8_t disp_bytes : 4 = 0;
    std::uint8_t imm_offset : 4 = 0;
    std::uint8_t imm_bytes : 4 = 0;
    std::uint8_t reference_count : 2 = 0;
    bool names_line : 1 = false;  // prefetches, clflush and others: references[0], which does not
                                  // count as a reference
    ProcessorUse processor_use : 2 = ProcessorUse::kNone;
    Flow flow : 4 = Flow::kNone;
    Special special : 3 = Special::kNone;
    bool masked : 1 = false;  // may access only a part of its memory operand
    bool rip_relative : 1 = false;
    bool shift_by_immediate : 1 = false;  // leaves the flags unchanged if the count is 0
    bool reads_base : 1 = false;          // rdfsbase, rdgsbase: reads the base of `segment`
    bool sets_base : 1 = false;           // wrfsbase, wrgsbase: sets it
    ProcessorExtension extension : 2 = ProcessorExtension::kNone;
    bool retried : 1 = false;              // locked, which Valgrind turns into a loop: see
                                           // is_predicted()
    Segment segment : 2 = Segment::kFlat;  // of an operand in fs or gs, or of the base that is read
                                           // or set
    bool may_fault : 1 = true;             // false only if it surely cannot fault
    std::uint8_t disp_scale = 1;           // EVEX compressed displacement
    std::uint8_t trace_flags = 0;          // TRACE_INSTR_*
    std::uint16_t opcode = 0;              // TRACE_OPCODE
    std::uint16_t mnemonic = 0;            // ZydisMnemonic
    GprMask reads = 0;                     // read, or written only in part
    GprMask writes = 0;                    // written in any way
    GprMask kills = 0;                     // surely overwritten completely
    std::uint16_t flags_read = 0;
    std::uint16_t flags_killed = 0;  // surely overwritten
    // The operands of TRACE_DESTINATION, TRACE_SOURCE0 and TRACE_SOURCE1.
    RegisterOperand destination, sources[2];
    MemoryReference references[2];
};
static_assert(sizeof(Form) <= 48);

// Registers that can hold an operand's address in a changed copy of the instruction: the
// instruction does not use them, and they need no other prefix or encoding.
inline GprMask registers_for_address(const Form& form) {
    constexpr GprMask kLow = bit(RAX) | bit(RCX) | bit(RDX) | bit(RBX) | bit(RSI) | bit(RDI);
    return static_cast<GprMask>(kLow & ~(form.reads | form.writes));
}

struct Instruction {
    const Form* form = nullptr;
    std::uint64_t pc = 0;
    std::uint8_t bytes[16] = {};

    std::uint64_t next_pc() const { return pc + form->length; }
    std::int64_t displacement() const;
    std::int64_t immediate() const;
    // The target of a direct jump or call.
    std::uint64_t target() const { return next_pc() + static_cast<std::uint64_t>(immediate()); }
    // The address of a RIP-relative operand.
    std::uint64_t rip_address() const {
        return next_pc() + static_cast<std::uint64_t>(displacement());
    }
    std::uint16_t flags_killed() const;
    // The change of rsp by the instruction; no value if it is not constant. Ignores branches,
    // because they end a block.
    std::optional<std::int64_t> stack_change() const;
    // True if rsp gets a value from elsewhere, which may point into another stack. Not from rbp,
    // because functions end in that way.
    bool sets_stack() const;
};

// The instruction's row in a trace's table, without its block.
trace_instr_t row_of(const Instruction& instruction);

// True for instructions that the predictor of trace_capture_predictions treats as one branch.
inline bool is_predicted(const Instruction& instruction) {
    switch (instruction.form->flow) {
        case Flow::kConditional:
        case Flow::kCounted:
        case Flow::kJumpIndirect:
        case Flow::kCallIndirect:
            return true;
        case Flow::kNone:
            return instruction.form->retried;
        default:
            return false;
    }
}

}  // namespace assay::native
