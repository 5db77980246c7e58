// Instructions as text.
#pragma once

#include "framework/isa/architecture.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace assay::isa {

// Prints instructions with Capstone, or those of x86-64 with Zydis if Capstone does not know them.
// Capstone 4.0 lacks AVX-512 comparisons and many mask register instructions, which libc's string
// functions use.

enum class Syntax : std::uint8_t { kAtt, kIntel };

class Disassembler {
  public:
    explicit Disassembler(Syntax syntax);
    ~Disassembler();
    Disassembler(const Disassembler&) = delete;
    Disassembler& operator=(const Disassembler&) = delete;

    // The text of the first instruction in `code`, which begins at `address`. Length 0 and the text
    // "(bad)" if there is no valid instruction.
    struct Text {
        std::string text;
        std::size_t length;
    };
    Text print(std::span<const std::uint8_t> code, std::uint64_t address,
               const ElfKind& elf = kX86) const;

    // "none" if Capstone is not installed.
    static std::string capstone_version();

  private:
    struct Capstone;
    static const Capstone& capstone();
    static Text print_bytes(std::span<const std::uint8_t> code, const ElfKind& elf);
    Text print_with_zydis(std::span<const std::uint8_t> code, std::uint64_t address) const;

    // A csh; 0 if Capstone is not installed, or does not know the instruction set.
    std::size_t handle_of(const ElfKind& elf) const;

    Syntax syntax_;
    mutable std::map<std::uint32_t, std::size_t> handles_;  // by machine, class and byte order
};

}  // namespace assay::isa
