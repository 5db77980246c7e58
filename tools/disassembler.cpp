#include "tools/disassembler.h"

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>
#include <fmt/format.h>
#include <string_view>

namespace assay::list {
namespace {

// Operands begin in one column.
std::string aligned(std::string_view mnemonic, std::string_view operands) {
    constexpr std::size_t kWidth = 7;
    if (operands.empty()) return std::string(mnemonic);
    return fmt::format("{:<{}} {}", mnemonic, kWidth, operands);
}

}  // namespace

Disassembler::Disassembler(Syntax syntax) : syntax_(syntax) {
    csh handle = 0;
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return;
    cs_option(handle, CS_OPT_SYNTAX,
              syntax == Syntax::kAtt ? CS_OPT_SYNTAX_ATT : CS_OPT_SYNTAX_INTEL);
    capstone_ = handle;
}

Disassembler::~Disassembler() {
    csh handle = capstone_;
    if (handle != 0) cs_close(&handle);
}

Disassembler::Text Disassembler::print(std::span<const std::uint8_t> code,
                                       std::uint64_t address) const {
    cs_insn* found = nullptr;
    if (capstone_ == 0 || cs_disasm(capstone_, code.data(), code.size(), address, 1, &found) != 1)
        return print_with_zydis(code, address);
    Text text{aligned(found->mnemonic, found->op_str), found->size};
    cs_free(found, 1);
    return text;
}

Disassembler::Text Disassembler::print_with_zydis(std::span<const std::uint8_t> code,
                                                  std::uint64_t address) const {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, syntax_ == Syntax::kAtt ? ZYDIS_FORMATTER_STYLE_ATT
                                                           : ZYDIS_FORMATTER_STYLE_INTEL);
    // As Capstone has them.
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    char text[256];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &instruction, operands,
                                                      instruction.operand_count_visible, text,
                                                      sizeof text, address, nullptr)))
        return {"(bad)", 0};
    const std::string_view whole = text;
    const std::size_t blank = whole.find(' ');
    const bool bare = blank == std::string_view::npos;
    return {aligned(whole.substr(0, blank), bare ? "" : whole.substr(blank + 1)),
            instruction.length};
}

}  // namespace assay::list
