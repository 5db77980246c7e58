#include "tools/code/disassembler.h"

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <string_view>

namespace assay {
namespace {

// Operands begin in one column.
std::string aligned(std::string_view mnemonic, std::string_view operands) {
    constexpr std::size_t kWidth = 7;
    if (operands.empty()) return std::string(mnemonic);
    return fmt::format("{:<{}} {}", mnemonic, kWidth, operands);
}

template <typename Function>
Function* function_of(void* library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

// Loaded when it is needed: its 75,000 relocations would take every other command, and every run
// of a program, a millisecond.
struct Disassembler::Capstone {
    static constexpr int kVersion = CS_API_MAJOR;
    const std::string name = fmt::format("libcapstone.so.{}", kVersion);
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    decltype(&cs_open) open = function_of<decltype(cs_open)>(library, "cs_open");
    decltype(&cs_option) option = function_of<decltype(cs_option)>(library, "cs_option");
    decltype(&cs_disasm) disasm = function_of<decltype(cs_disasm)>(library, "cs_disasm");
    decltype(&cs_free) free = function_of<decltype(cs_free)>(library, "cs_free");
    decltype(&cs_close) close = function_of<decltype(cs_close)>(library, "cs_close");
    decltype(&cs_version) version = function_of<decltype(cs_version)>(library, "cs_version");

    // 0 if it cannot be used.
    csh begin(Syntax syntax) const {
        csh handle = 0;
        if (library == nullptr || !open || !option || !disasm || !free || !close ||
            open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
            return 0;
        option(handle, CS_OPT_SYNTAX,
               syntax == Syntax::kAtt ? CS_OPT_SYNTAX_ATT : CS_OPT_SYNTAX_INTEL);
        return handle;
    }
};

const Disassembler::Capstone& Disassembler::capstone() {
    static const Capstone loaded;
    return loaded;
}

std::string Disassembler::capstone_version() {
    if (capstone().library == nullptr || !capstone().version) return "none";
    int major = 0, minor = 0;
    capstone().version(&major, &minor);
    return fmt::format("{}.{}", major, minor);
}

Disassembler::Disassembler(Syntax syntax) : syntax_(syntax), handle_(capstone().begin(syntax)) {}

Disassembler::~Disassembler() {
    csh handle = handle_;
    if (handle != 0) capstone().close(&handle);
}

Disassembler::Text Disassembler::print(std::span<const std::uint8_t> code,
                                       std::uint64_t address) const {
    cs_insn* found = nullptr;
    if (handle_ == 0 ||
        capstone().disasm(handle_, code.data(), code.size(), address, 1, &found) != 1)
        return print_with_zydis(code, address);
    Text text{aligned(found->mnemonic, found->op_str), found->size};
    capstone().free(found, 1);
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

}  // namespace assay
