// The instruction sets of profiled programs: how an ELF file names them, and what drivers and tools
// need to know about a single instruction. The file architecture.cpp has the table.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace assay::isa {

// A data operand in memory. One execution makes one reference to it.
struct Operand {
    std::uint8_t kind = 0;  // TRACE_SITE_READ, _WRITE or _MODIFY
    std::uint16_t bytes = 0;
};

struct Instruction {
    static constexpr unsigned kMostOperands = 2;

    std::uint8_t length = 0;  // bytes
    // TRACE_INSTR_*. With TRACE_INSTR_VARIABLE, an execution can leave its operands alone.
    std::uint8_t flags = 0;
    std::uint16_t opcode = 0;  // TRACE_OPCODE; 0 except for x86
    std::uint8_t operand_count = 0;
    // Refers to memory, but QEMU reports no reference: the instruction clears a line.
    bool clears_line = false;
    std::uint8_t address_register = 0;  // of the line, as the instruction numbers registers
    bool ends_handler = false;  // a return that only handlers of exceptions and interrupts make
    // Can cause an exception without a reference to memory, in the middle of a block.
    bool may_fault = false;
    bool is_direct = false;     // a direct jump or call
    std::int32_t distance = 0;  // from it to its target
    // How many following instructions execute only under a condition: Arm's IT.
    std::uint8_t conditional_followers = 0;
    Operand operands[kMostOperands];

    void jumps(std::int32_t to) {
        is_direct = true;
        distance = to;
    }
    void add(std::uint8_t kind, unsigned bytes) {
        operands[operand_count++] = {kind, static_cast<std::uint16_t>(bytes)};
        if (kind != TRACE_SITE_WRITE) flags |= TRACE_INSTR_LOAD;
        if (kind != TRACE_SITE_READ) flags |= TRACE_INSTR_STORE;
    }
};

// How an ELF header names an instruction set (elf.h).
struct ElfKind {
    std::uint16_t machine = 0;     // EM_*
    std::uint8_t word_class = 0;   // ELFCLASS*
    std::uint8_t byte_order = 0;   // ELFDATA*
    bool microcontroller = false;  // Arm's M profile: all code is Thumb code

    friend bool operator==(const ElfKind&, const ElfKind&) = default;
};

struct Architecture {
    ElfKind elf;
    std::string_view name;     // for messages: "AArch64"
    std::string_view qemu;     // the end of the name of QEMU's program: "aarch64"
    std::string_view triplet;  // Debian's: "aarch64-linux-gnu"
    std::string_view library;  // the Debian package of a C library for this host
    std::string_view cpu;      // the processor that QEMU shows; "": QEMU's default
    // Describes the first instruction of `code`. False if it is unknown. nullptr: no instruction is
    // known, so only executions can be counted, and references as QEMU makes them.
    bool (*describe)(std::span<const std::uint8_t> code, Instruction& described) = nullptr;
};

// Returns nullptr for an instruction set that no driver runs.
const Architecture* architecture_of(const ElfKind& elf);
std::span<const Architecture> architectures();
// The instruction set of an open file. All zeros for a file that is no ELF file.
ElfKind kind_of_file(int descriptor);
inline constexpr ElfKind kX86{62, 2, 1};  // EM_X86_64, ELFCLASS64, ELFDATA2LSB
// Of this machine.
#if defined(__x86_64__)
inline constexpr ElfKind kHost = kX86;
#elif defined(__aarch64__)
inline constexpr ElfKind kHost{183, 2, 1};  // EM_AARCH64
#elif defined(__riscv)
inline constexpr ElfKind kHost{243, 2, 1};  // EM_RISCV
#else
inline constexpr ElfKind kHost{};
#endif
// The native driver runs x86-64 programs on x86-64 machines.
inline constexpr bool kHasNativeDriver = kHost == kX86;
inline constexpr bool runs_natively(const ElfKind& program) {
    return kHasNativeDriver && program == kX86;
}

// Entries of the table.
bool describe_aarch64(std::span<const std::uint8_t> code, Instruction& described);
bool describe_riscv(std::span<const std::uint8_t> code, Instruction& described);
bool describe_thumb(std::span<const std::uint8_t> code, Instruction& described);
bool describe_i386(std::span<const std::uint8_t> code, Instruction& described);
bool describe_x86(std::span<const std::uint8_t> code, Instruction& described);

// Describes only how control leaves an instruction of x86. `code` is exactly the instruction, of
// 64, 32 or 16 bits. Nothing if it is an instruction in none of these modes.
void describe_x86_flow(std::span<const std::uint8_t> code, Instruction& described);

}  // namespace assay::isa
