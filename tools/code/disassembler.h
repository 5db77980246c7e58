// Instructions as text: Capstone's, and Zydis's where Capstone does not know an x86 instruction
// (Capstone 4.0 has no AVX-512 comparisons, and few instructions on mask registers, which libc's
// string functions consist of).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace assay {

enum class Syntax : std::uint8_t { kAtt, kIntel };

class Disassembler {
  public:
    explicit Disassembler(Syntax syntax);
    ~Disassembler();
    Disassembler(const Disassembler&) = delete;
    Disassembler& operator=(const Disassembler&) = delete;

    // `code` is one instruction, or more, at `address`; only its first is printed. Its length is
    // 0, and its text "(bad)", if it is none.
    struct Text {
        std::string text;
        std::size_t length;
    };
    Text print(std::span<const std::uint8_t> code, std::uint64_t address) const;

    // "none" if Capstone is not there.
    static std::string capstone_version();

  private:
    struct Capstone;
    static const Capstone& capstone();
    Text print_with_zydis(std::span<const std::uint8_t> code, std::uint64_t address) const;

    Syntax syntax_;
    std::size_t handle_ = 0;  // csh; 0 if Capstone is not there
};

}  // namespace assay
